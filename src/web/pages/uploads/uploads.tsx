/** The uploads of a project. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { uuid } from "../../../schema/fields.ts";
import { KEPT_HOURS, uploadFilter } from "../../../schema/uploads.ts";
import { selectSummaries } from "../../../store/execution_list.ts";
import { selectTaken, selectUploadTally, selectUploads } from "../../../store/uploads.ts";
import { toCount } from "../../../wording/numbers.ts";
import { Empty, Pager } from "../../components/list.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago } from "../../components/text.tsx";
import { type Page, type View, page, type ProjectContext } from "../../site/page.ts";
import { toAddress } from "../../site/paths.ts";
import { MAX_COUNTED, newest, nothing, reasons, sum, uploadsHeadline } from "./headline.tsx";
import { UploadTable } from "./upload_table.tsx";

const PAGE_SIZE = 25;

const uploadsQuery = v.strictObject({ outcome: uploadFilter.entries.outcome, cursor: v.optional(uuid) });

const FILTERS = [
  [undefined, "All"],
  ["refused", "Rejected"],
  ["warned", "With warnings"],
] as const;

type Context = ProjectContext & { query: v.InferOutput<typeof uploadsQuery> };

/** `lastExecutionAt` is the time of the newest execution if there were no uploads, not even accepted ones. */
async function loadUploads({ sql, project: { id }, query: { outcome, cursor } }: Context) {
  const after = cursor === undefined ? undefined : [cursor];
  const [tally, taken, found] = await Promise.all([
    selectUploadTally(sql, id, KEPT_HOURS),
    selectTaken(sql, id, KEPT_HOURS, MAX_COUNTED),
    selectUploads(sql, id, KEPT_HOURS, { limit: PAGE_SIZE, outcome, after }),
  ]);
  const isEmpty = tally.length === 0 && taken.number === 0;
  const lastExecutionAt = isEmpty ? (await selectSummaries(sql, id, 0))[0]?.createdAt : undefined;
  const rows = found.slice(0, PAGE_SIZE);
  return { tally, taken, rows, next: found.length > PAGE_SIZE ? rows.at(-1)!.id : undefined, isEmpty, lastExecutionAt };
}

type UploadsData = Awaited<ReturnType<typeof loadUploads>>;

type StateProperties = { base: Path; data: UploadsData; headline: { status: string; text: string }; now: Date };

function UploadsState({ base, data: { tally, taken }, headline, now }: StateProperties): Html {
  const lastRefused = newest(tally, "refused");
  return (
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
  );
}

type TabsProperties = { path: Path; tally: UploadsData["tally"]; outcome: Context["query"]["outcome"] };

const OutcomeTabs = ({ path, tally, outcome }: TabsProperties): Html => (
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
);

function uploadsView({ project, query: { outcome, cursor }, now }: Context, data: UploadsData): View {
  const { tally, taken, rows, next, isEmpty, lastExecutionAt } = data;
  const base: Path = `/projects/${project.id}`;
  const path: Path = `${base}/uploads`;
  const headline = uploadsHeadline(tally, taken);
  const body = (
    <>
      <UploadsState base={base} data={data} headline={headline} now={now} />
      {isEmpty ? nothing(base, lastExecutionAt, now) : null}
      {tally.length === 0 ? null : (
        <>
          <h2>Rejected or with warnings</h2>
          <OutcomeTabs path={path} tally={tally} outcome={outcome} />
          <div data-region="uploads">
            {rows.length === 0 ? (
              <Empty>No uploads match.</Empty>
            ) : (
              <UploadTable projectId={project.id} uploads={rows} now={now} />
            )}
            <Pager path={path} query={{ outcome, cursor }} cursor={next} />
          </div>
        </>
      )}
    </>
  );
  return { title: headline.text, body, section: "uploads", live: `${base}/live` };
}

export const uploads: Page[] = [
  page("/projects/:projectId/uploads", { access: "viewer", query: uploadsQuery }, async (context) =>
    uploadsView(context, await loadUploads(context)),
  ),
];
