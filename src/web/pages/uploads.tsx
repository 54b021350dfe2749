/** Nothing arrives, why? The uploads of the last day that were refused, or taken in with warnings. */

import * as v from "valibot";
import type { Html, Path } from "../../http/html.ts";
import { adviceFor } from "../../rules/upload_advice.ts";
import { uuid } from "../../schema/fields.ts";
import { KEPT_HOURS, type LoggedUpload, uploadFilter } from "../../schema/uploads.ts";
import { selectTaken, selectUploads, selectUploadTally, type UploadTally } from "../../store/uploads.ts";
import { selectSummaries } from "../../store/execution_list.ts";
import { executionPath, toAddress } from "../site/paths.ts";
import { type Page, page } from "../site/page.ts";
import { Ago, Breakable, toExact } from "../components/text.tsx";
import { counted, toCount } from "../../wording/numbers.ts";
import { Mark } from "../components/status.tsx";
import { Pager } from "../components/pager.tsx";

const PAGE = 25;
/** More are not counted. */
const MAX_TAKEN = 1_000;

type Taken = Awaited<ReturnType<typeof selectTaken>>;

const sum = (tally: readonly UploadTally[], outcome: string): number =>
  tally.reduce((total, row) => (row.outcome === outcome ? total + row.number : total), 0);
const newest = (tally: readonly UploadTally[], outcome: string): string | undefined =>
  tally
    .flatMap((row) => (row.outcome === outcome ? [row.lastAt] : []))
    .toSorted()
    .at(-1);

const LAST = `the last ${KEPT_HOURS} hours`;

type Headline = { status: string; text: string };

const was = (number: number) => (number === 1 ? "was" : "were");
const wholeOf = (number: number): string =>
  number === 1 ? "The only upload" : number === 2 ? "Both uploads" : `All ${counted(number, "upload")}`;

/** Refused ones first: they are what is missing. */
export function uploadsHeadline(tally: readonly UploadTally[], taken: Taken): Headline {
  const [refused, warned] = [sum(tally, "refused"), sum(tally, "warned")];
  const all = taken.number + refused;
  const isMany = taken.number >= MAX_TAKEN;
  const part = (number: number) =>
    number === all
      ? `${wholeOf(all)} of ${LAST}`
      : `${toCount(number)} of ${isMany ? `more than ${toCount(MAX_TAKEN)} uploads` : counted(all, "upload")} of ${LAST}`;
  if (refused > 0) return { status: "failed", text: `${part(refused)} ${was(refused)} refused` };
  if (warned > 0) return { status: "flaky", text: `${part(warned)} had warnings, none was refused` };
  if (all === 0) return { status: "queued", text: `Nothing has arrived in ${LAST}` };
  const these = isMany ? `More than ${toCount(MAX_TAKEN)} uploads of ${LAST}` : part(all);
  return { status: "passed", text: `${these} ${was(all)} taken in` };
}

/** "Both say", "2 of 5 say". */
function whoSays(number: number, all: number): string {
  if (number < all) return `${toCount(number)} of ${toCount(all)} ${number === 1 ? "says" : "say"}`;
  return all === 1 ? "It says" : all === 2 ? "Both say" : `All ${toCount(all)} say`;
}

const TOLD = 3;

/** What most of them say, and what to do about it. */
function reasons(tally: readonly UploadTally[], outcome: "refused" | "warned"): Html | null {
  const rows = tally.filter((row) => row.outcome === outcome);
  if (rows.length === 0) return null;
  const all = sum(rows, outcome);
  const told = rows.slice(0, TOLD).map((row) => ({ ...row, advice: adviceFor({ statusCode: 400, ...row }) }));
  const others = rows.length - told.length;
  return (
    <ul class="reasons">
      {told.map(({ text, number, advice }, index) => (
        <li class="long">
          {whoSays(number, all)}: <q>{text}</q>
          {advice === undefined || advice === told[index + 1]?.advice ? null : <p class="hint">{advice}</p>}
        </li>
      ))}{" "}
      {others > 0 ? <li class="soft small">and {counted(others, "other reason")}, below</li> : null}
    </ul>
  );
}

function nothing(base: Path, lastAt: string | undefined, now: Date): Html {
  return (
    <div class="card padded prose">
      <p>
        {lastAt === undefined ? (
          "No report has ever come to this project."
        ) : (
          <>
            The last execution began <Ago at={lastAt} now={now} />.
          </>
        )}{" "}
        Nothing was refused either: what CI sends does not get here, or not with the key of this project.
      </p>
      <ul>
        <li>
          Does the step run, also where tests fail? It is the step's log that says: curl prints why it did not get
          through.
        </li>
        <li>
          Is the address right, and does CI reach it? A wrong key is answered with 401, and is told nowhere here,
          because nobody knows whose it was.
        </li>
        <li>Was a new key generated? The one before stopped working at that moment.</li>
      </ul>
      <p>
        <a class="button" href={`${base}/onboarding`}>
          The line to paste
        </a>
      </p>
    </div>
  );
}

/** "curl/8.5.0 (x86_64-pc-linux-gnu) libcurl/8.5.0" → "curl 8.5.0". */
export function shortAgent(agent: string | null): string {
  if (!agent) return "no user agent";
  const match = /^([\w.@+-]{1,40})\/v?([\w.+-]{1,20})/.exec(agent);
  const short = match ? `${match[1]} ${match[2]}` : agent;
  return short.length > 40 ? `${short.slice(0, 40)}…` : short;
}

const NAMES: Record<keyof LoggedUpload["parameters"], string> = {
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
    ...Object.entries(NAMES).map(([key, name]) => [name, parameters[key as keyof typeof NAMES] ?? null] as const),
    ["Size", bytes === null ? null : toSize(bytes)],
    ["Answered", `${statusCode}, ${toExact(upload.answeredAt)}`],
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
      <td class="mark-cell">
        <Mark status={isRefused ? "failed" : "flaky"} word={false} />
        <span class="visually-hidden">{isRefused ? "refused" : "taken in with warnings"}</span>
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
            <a href={executionPath(projectId, executionId)}>Its execution</a>
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
  ["refused", "Refused"],
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
      selectTaken(sql, id, KEPT_HOURS, MAX_TAKEN),
      selectUploads(sql, id, KEPT_HOURS, { limit: PAGE, outcome, after: cursor === undefined ? undefined : [cursor] }),
    ]);
    const isEmpty = tally.length === 0 && taken.number === 0;
    const lastAt = isEmpty ? (await selectSummaries(sql, id, 0))[0]?.createdAt : undefined;
    const headline = uploadsHeadline(tally, taken);
    const rows = found.slice(0, PAGE);
    const next = found.length > PAGE ? rows.at(-1)!.id : undefined;
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
                last refused <Ago at={lastRefused} now={now} />
              </span>
            ) : null}
            {taken.lastAt ? (
              <span>
                last taken in <Ago at={taken.lastAt} now={now} />
              </span>
            ) : null}
            <span>
              kept for {KEPT_HOURS} hours; what came in clean is among the <a href={`${base}/executions`}>executions</a>
            </span>
          </div>
          {reasons(tally, "refused") ?? reasons(tally, "warned")}
        </div>
        {isEmpty ? nothing(base, lastAt, now) : null}{" "}
        {tally.length === 0 ? null : (
          <>
            <h2>Refused, or with warnings</h2>
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
                  <p>None of these.</p>
                </div>
              ) : (
                <div class="card">
                  <table>
                    <caption class="visually-hidden">Uploads of {LAST}, newest first</caption>
                    <thead>
                      <tr>
                        <th scope="col">
                          <span class="visually-hidden">Outcome</span>
                        </th>
                        <th scope="col">What was said</th>
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
