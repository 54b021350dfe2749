/** The table of rejected uploads and of those with warnings. */

import type { Html } from "../../../http/html.ts";
import { adviceFor } from "../../../rules/upload_advice.ts";
import type { LoggedUpload } from "../../../schema/uploads.ts";
import { toCount, toSize } from "../../../wording/numbers.ts";
import { AgoCell, CardTable, MarkCell } from "../../components/list.tsx";
import { Ago, Breakable, toExact } from "../../components/text.tsx";
import { executionPath } from "../../site/paths.ts";
import { PERIOD } from "./headline.tsx";

/** Shortens "curl/8.5.0 (x86_64-pc-linux-gnu) libcurl/8.5.0" to "curl 8.5.0". */
export function shortAgent(agent: string | null): string {
  if (!agent) return "no user agent";
  const match = /^([\w.@+-]{1,40})\/v?([\w.+-]{1,20})/.exec(agent);
  const short = match ? `${match[1]} ${match[2]}` : agent;
  return short.length > 40 ? `${short.slice(0, 40)}…` : short;
}

const PARAMETER_LABELS: Record<keyof LoggedUpload["parameters"], string> = {
  executionId: "execution_id",
  executionKey: "execution_key",
  taskSlug: "task_slug",
  shard: "shard",
  branch: "branch",
  commit: "commit",
  pullRequest: "pull_request",
  baseBranch: "base_branch",
  format: "format",
  leaseId: "lease_id",
};

function facts(upload: LoggedUpload): Html {
  const { parameters, bytes, statusCode, keyLeading, requestId, userAgent, clientAddress } = upload;
  const rows: (readonly [string, string | null])[] = [
    ...Object.entries(PARAMETER_LABELS).map(
      ([key, name]) => [name, parameters[key as keyof typeof PARAMETER_LABELS] ?? null] as const,
    ),
    ["Size", bytes === null ? null : toSize(bytes)],
    ["Response", `${statusCode}, ${toExact(upload.answeredAt)}`],
    ["Key", `${keyLeading}…`],
    ["Client", [userAgent, clientAddress].filter(Boolean).join(", ")],
    ["Request", requestId],
  ];
  return (
    <dl class="facts small">
      {rows.map(([name, value]) =>
        value === null ? null : (
          <>
            <dt>{/^[a-z]/.test(name) ? <code>{name}</code> : name}</dt>
            <dd class="long">{value}</dd>
          </>
        ),
      )}
    </dl>
  );
}

function row(projectId: string, upload: LoggedUpload, now: Date): Html {
  const { id, outcome, message, warnings, parameters, executionId, times } = upload;
  const isRefused = outcome === "refused";
  const text = message ?? warnings[0] ?? "";
  const advice = adviceFor({ ...upload, text });
  const task = upload.taskSlug ?? parameters.taskSlug;
  return (
    <tr>
      <MarkCell status={isRefused ? "failed" : "flaky"} word={isRefused ? "rejected" : "accepted with warnings"} />
      <td class="long">
        {text}
        {times > 1 ? (
          <>
            {" "}
            <b>{toCount(times)} times</b>, the last <Ago at={upload.lastAnsweredAt} now={now} />
          </>
        ) : null}{" "}
        {warnings.slice(1).map((warning) => (
          <span class="small">{warning}</span>
        ))}{" "}
        {executionId === null ? null : (
          <span class="small">
            <a href={executionPath(projectId, executionId)}>Execution</a>
          </span>
        )}
        <details class="bare small" id={`u${id}`}>
          <summary>
            {shortAgent(upload.userAgent)}, {upload.clientAddress}
          </summary>
          {advice ? <p class="hint">{advice}</p> : null}
          {facts(upload)}
        </details>
      </td>
      <td class="long wide">
        {task === undefined || task === null ? <span class="soft">–</span> : <Breakable text={task} />}
      </td>
      <AgoCell at={upload.answeredAt} now={now} />
    </tr>
  );
}

type TableProperties = { projectId: string; uploads: readonly LoggedUpload[]; now: Date };

export const UploadTable = ({ projectId, uploads, now }: TableProperties): Html => (
  <CardTable
    caption={`Uploads of ${PERIOD}, newest first`}
    columns={[["Outcome", "hidden"], "Message", ["Task", "wide"], ["When", "number"]]}
  >
    {uploads.map((upload) => row(projectId, upload, now))}
  </CardTable>
);
