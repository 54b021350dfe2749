/** The uploads of a project. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { adviceFor } from "../../../rules/upload_advice.ts";
import { uuid } from "../../../schema/fields.ts";
import { KEPT_HOURS, type LoggedUpload, uploadFilter } from "../../../schema/uploads.ts";
import { selectSummaries } from "../../../store/execution_list.ts";
import { selectTaken, selectUploadTally, selectUploads } from "../../../store/uploads.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { Pager } from "../../components/pager.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago, Breakable, toExact } from "../../components/text.tsx";
import { type Page, page } from "../../site/page.ts";
import { executionPath, toAddress } from "../../site/paths.ts";
import { PERIOD, MAX_COUNTED, newest, nothing, reasons, sum, uploadsHeadline } from "./headline.tsx";

const PAGE_SIZE = 25;

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
  format: "format",
  leaseId: "lease_id",
};

const toSize = (bytes: number): string =>
  bytes < 1_000
    ? counted(bytes, "byte")
    : bytes < 1_000_000
      ? `${(bytes / 1_000).toFixed(1)} kB`
      : `${(bytes / 1_000_000).toFixed(1)} MB`;

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

export function row(projectId: string, upload: LoggedUpload, now: Date): Html {
  const { id, outcome, message, warnings, parameters, executionId, times } = upload;
  const isRefused = outcome === "refused";
  const text = message ?? warnings[0] ?? "";
  const advice = adviceFor({ ...upload, text });
  const task = upload.taskSlug ?? parameters.taskSlug;
  return (
    <tr>
      <td class="mark-cell">
        <Mark status={isRefused ? "failed" : "flaky"} word={false} />
        <span class="visually-hidden">{isRefused ? "rejected" : "accepted with warnings"}</span>
      </td>
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
      <td class="number soft">
        <Ago at={upload.answeredAt} now={now} />
      </td>
    </tr>
  );
}

const query = v.strictObject({ outcome: uploadFilter.entries.outcome, cursor: v.optional(uuid) });

const FILTERS = [
  [undefined, "All"],
  ["refused", "Rejected"],
  ["warned", "With warnings"],
] as const;

export const uploads: Page[] = [
  page("/projects/:projectId/uploads", { access: "viewer", query }, async ({ sql, project, query, now }) => {
    const { id } = project;
    const base: Path = `/projects/${id}`;
    const path: Path = `${base}/uploads`;
    const { outcome, cursor } = query;
    const [tally, taken, found] = await Promise.all([
      selectUploadTally(sql, id, KEPT_HOURS),
      selectTaken(sql, id, KEPT_HOURS, MAX_COUNTED),
      selectUploads(sql, id, KEPT_HOURS, {
        limit: PAGE_SIZE,
        outcome,
        after: cursor === undefined ? undefined : [cursor],
      }),
    ]);
    const isEmpty = tally.length === 0 && taken.number === 0;
    const lastAt = isEmpty ? (await selectSummaries(sql, id, 0))[0]?.createdAt : undefined;
    const headline = uploadsHeadline(tally, taken);
    const rows = found.slice(0, PAGE_SIZE);
    const next = found.length > PAGE_SIZE ? rows.at(-1)!.id : undefined;
    const lastRefused = newest(tally, "refused");
    const body = (
      <>
        <div data-region="state">
          <h1>
            <Mark status={headline.status} word={false} /> {headline.text}
          </h1>
          <div class="meta">
            {lastRefused ? (
              <span>
                last rejected <Ago at={lastRefused} now={now} />
              </span>
            ) : null}
            {taken.lastAt ? (
              <span>
                last accepted <Ago at={taken.lastAt} now={now} />
              </span>
            ) : null}
            <span>
              kept for {KEPT_HOURS} hours; uploads without warnings are listed as{" "}
              <a href={`${base}/executions`}>executions</a>
            </span>
          </div>
          {reasons(tally, "refused") ?? reasons(tally, "warned")}
        </div>
        {isEmpty ? nothing(base, lastAt, now) : null}
        {tally.length === 0 ? null : (
          <>
            <h2>Rejected or with warnings</h2>
            <nav class="tabs" aria-label="Outcome">
              {FILTERS.map(([value, name]) => (
                <a href={toAddress(path, { outcome: value })} aria-current={value === outcome ? "true" : undefined}>
                  {name}{" "}
                  <span class="soft">
                    {toCount(value === undefined ? sum(tally, "refused") + sum(tally, "warned") : sum(tally, value))}
                  </span>
                </a>
              ))}
            </nav>
            <div data-region="uploads">
              {rows.length === 0 ? (
                <div class="card empty">
                  <p>No uploads match.</p>
                </div>
              ) : (
                <div class="card">
                  <table>
                    <caption class="visually-hidden">Uploads of {PERIOD}, newest first</caption>
                    <thead>
                      <tr>
                        <th scope="col">
                          <span class="visually-hidden">Outcome</span>
                        </th>
                        <th scope="col">Message</th>
                        <th scope="col" class="wide">
                          Task
                        </th>
                        <th scope="col" class="number">
                          When
                        </th>
                      </tr>
                    </thead>
                    <tbody>{rows.map((upload) => row(id, upload, now))}</tbody>
                  </table>
                </div>
              )}
              <Pager path={path} query={{ outcome, cursor }} cursor={next} />
            </div>
          </>
        )}
      </>
    );
    return { title: headline.text, body, section: "uploads", live: `${base}/live` };
  }),
];
