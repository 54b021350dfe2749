/** The list of executions of a project, with its filters. */

import { toDay } from "../../../wording/numbers.ts";
import * as v from "valibot";
import { firstIdAt } from "../../../database/time_bounds.ts";
import type { Html, Path } from "../../../http/html.ts";
import { executionStatus } from "../../../schema/executions.ts";
import { branchName, mayBeEmpty, text, uuid } from "../../../schema/fields.ts";
import { splitTags, tagFilter } from "../../../schema/tags.ts";
import { selectSummaries } from "../../../store/execution_list.ts";
import { selectBuildOrigins } from "../../../store/overview.ts";
import { Empty, FirstReportLink, Pager } from "../../components/list.tsx";
import { ExecutionTable } from "../../components/execution_table.tsx";
import { FilterBar, FilterSelect, FilterText } from "../../components/filters.tsx";
import type { Choice } from "../../components/form.tsx";
import { wordOf } from "../../components/status.tsx";
import { type View, page, type ProjectContext } from "../../site/page.ts";
import { toAddress } from "../../site/paths.ts";

const PAGE_SIZE = 30;

const DAY_MS = 86_400_000;

const day = v.pipe(
  v.string(),
  v.check(
    (text) => /^\d{4}-\d\d-\d\d$/.test(text) && Number.isFinite(Date.parse(text)),
    "expected a day as 2026-01-31",
  ),
);

const listQuery = v.strictObject({
  q: mayBeEmpty(text(200)),
  branch: mayBeEmpty(branchName),
  status: mayBeEmpty(executionStatus),
  environment: mayBeEmpty(text(200)),
  tag: tagFilter,
  day: mayBeEmpty(day),
  untrusted: mayBeEmpty(v.picklist(["true", "false"], `expected "true" or "false"`)),
  probe: mayBeEmpty(v.literal("true", `expected "true"`)),
  cursor: v.optional(uuid),
});

const UNTRUSTED_OPTIONS: readonly Choice[] = [
  ["", "any"],
  ["false", "without forks"],
  ["true", "untrusted (fork)"],
];

const STATUS_OPTIONS: readonly Choice[] = [
  ["", "any"],
  ...["running", "queued", "failed", "passed", "timed_out", "cancelled"].map((one): Choice => [one, wordOf(one)]),
];

type ListQuery = v.InferOutput<typeof listQuery>;

type Context = ProjectContext & { query: ListQuery };

async function loadList({ sql, project, query }: Context) {
  const { q, branch, status, environment, tag, day, cursor } = query;
  // Days are in UTC. Ids begin with their time.
  const untrusted = query.untrusted === undefined ? undefined : query.untrusted === "true";
  const start = day === undefined ? undefined : Date.parse(day);
  const end = start === undefined ? undefined : firstIdAt(start + DAY_MS);
  const before = [cursor, end].filter((id) => id !== undefined).toSorted()[0];
  const from = start === undefined ? undefined : firstIdAt(start);
  const [rows, origins] = await Promise.all([
    selectSummaries(sql, project.id, PAGE_SIZE, {
      ...{ q, branch, status, environment, before, from, untrusted, probe: query.probe === "true" },
      tag: splitTags(tag ?? ""),
    }),
    selectBuildOrigins(sql, project.id),
  ]);
  const executions = rows.slice(0, PAGE_SIZE);
  return { executions, next: rows.length > PAGE_SIZE ? executions.at(-1)!.id : undefined, origins };
}

type ListData = Awaited<ReturnType<typeof loadList>>;

/** Returns a title such as "Failed executions of main on 31 January". */
function titleOf({ status, branch, environment, tag, day, probe }: ListQuery): string {
  const subject = `${status ? `${wordOf(status)} ` : ""}${probe ? "probes" : "executions"}`;
  const conditions = [
    branch ? `of ${branch}` : null,
    environment ? `on ${environment}` : null,
    tag ? `with ${tag}` : null,
    day ? `on ${toDay(day)}` : null,
  ].filter(Boolean);
  return [`${subject[0]!.toUpperCase()}${subject.slice(1)}`, ...conditions].join(" ");
}

type FiltersProperties = { path: Path; query: ListQuery; origins: ListData["origins"]; isFiltered: boolean };

const Filters = ({ path, query, origins, isFiltered }: FiltersProperties): Html => (
  <FilterBar path={path} isFiltered={isFiltered}>
    {[
      <FilterText label="Key or commit" name="q" value={query.q} type="search" />,
      <FilterText label="Branch" name="branch" value={query.branch} max={500} suggestions={origins.branches} />,
      <FilterSelect label="Status" name="status" options={STATUS_OPTIONS} value={query.status} />,
      <FilterText
        label="Environment"
        name="environment"
        value={query.environment}
        suggestions={origins.environments}
      />,
      <FilterText label="Tag" name="tag" value={query.tag} max={600} />,
      <FilterSelect label="Forks" name="untrusted" options={UNTRUSTED_OPTIONS} value={query.untrusted} />,
      <FilterText label="Day" name="day" value={query.day} type="date" />,
    ]}
  </FilterBar>
);

function listView({ project, query, path, now }: Context, { executions, next, origins }: ListData): View {
  const { cursor: _, ...filters } = query;
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const title = titleOf(query);
  const none = isFiltered ? (
    <Empty
      action={
        <a class="button" href={path}>
          Show all
        </a>
      }
    >
      No executions match the filters.
    </Empty>
  ) : (
    <Empty action={<FirstReportLink projectId={project.id} />}>No reports yet.</Empty>
  );
  const body = (
    <>
      <h1>{title}</h1>
      <Filters path={path} query={query} origins={origins} isFiltered={isFiltered} />
      {executions.length > 0 ? (
        <ExecutionTable projectId={project.id} executions={executions} now={now} caption={title} />
      ) : (
        none
      )}
      <Pager path={path} query={query} cursor={next} />
      {query.probe ? null : (
        <p class="hint after">
          <a href={toAddress(path, { probe: "true" })}>Probes</a>, which run one test alone, are listed separately.
        </p>
      )}
    </>
  );
  return { title, body, section: "executions" };
}

export const listPage = page(
  "/projects/:projectId/executions",
  { access: "viewer", query: listQuery },
  async (context) => listView(context, await loadList(context)),
);
