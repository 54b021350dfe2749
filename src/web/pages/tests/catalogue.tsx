/** The list of tests of a project, with filters and bulk changes. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { catchUp } from "../../../operations/health/catch_up.ts";
import { integerText, mayBeEmpty, text, uuid } from "../../../schema/fields.ts";
import { refuse } from "../../../schema/refusal.ts";
import { addSearchWords, toSearchWord } from "../../../rules/search_words.ts";
import { TEST_KEYS, readTestSearch } from "../../../rules/test_search.ts";
import type { TestCasePatch } from "../../../schema/test_cases.ts";
import { type OwnerTally, selectOwnerTally } from "../../../store/case_record.ts";
import { selectOwners, selectTaskSlugs } from "../../../store/filter_options.ts";
import { type ProjectCounts, selectTally } from "../../../store/overview.ts";
import { selectTestCases } from "../../../store/test_cases.ts";
import { counted, toCount, toDuration } from "../../../wording/numbers.ts";
import { Empty, FirstReportLink, Pager } from "../../components/list.tsx";
import { MAX_CHOICES } from "../../components/filters.tsx";
import { Csrf } from "../../components/form.tsx";
import { Mark } from "../../components/status.tsx";
import { SeeOther, type View, form, page, type ProjectContext } from "../../site/page.ts";
import { testPath, toAddress, toQuery } from "../../site/paths.ts";
import { CatalogueSearch, chosenTestWords, searchFields } from "./catalogue_search.tsx";
import { brokenTable, bulkFields, catalogueTable, isTicked } from "./catalogue_tables.tsx";
import { COUNT_TIMEOUT_MS, change, day, testsPath, toQuarantine } from "./changes.tsx";

const PAGE_SIZE = 20;

const MAX_BROKEN_TESTS = 5;

const MAX_OWNERS = 6;

const catalogueQuery = v.strictObject({
  ...searchFields,
  cursor: mayBeEmpty(text(200)),
  /** The number of test cases that the form changed. */
  changed: v.optional(integerText(0, 100)),
});

type CatalogueQuery = v.InferOutput<typeof catalogueQuery>;

const toSearch = (q: string | undefined) => (q === undefined ? { conditions: [] } : readTestSearch(q));

async function selectCatalogue({ sql, project, query, cursors }: Context) {
  const { q, sort = "flakeRate", cursor } = query;
  const search = toSearch(q);
  if ("problem" in search) return { shown: [], next: undefined, problem: search.problem };
  const list = `tests ${project.id} ${sort}`;
  const rows = await selectTestCases(sql, project.id, {
    limit: PAGE_SIZE,
    conditions: search.conditions,
    sort: sort === "firstSeen" ? undefined : sort,
    after: cursor === undefined ? undefined : cursors.read(list, cursor),
  });
  const shown = rows.slice(0, PAGE_SIZE);
  const last = rows.length > PAGE_SIZE ? shown.at(-1) : undefined;
  return { shown, next: last && cursors.write(list, [last.key ?? "", String(last.number)]), problem: undefined };
}

function headlineOf({ broken, flaky, quarantined }: ProjectCounts): { status: string; text: string } {
  const parts = [
    broken > 0 && counted(broken, "broken test"),
    flaky > 0 && `${counted(flaky, "flaky test")}`,
    quarantined > 0 && `${toCount(quarantined)} quarantined`,
  ].filter((part) => part !== false);
  const status = broken > 0 ? "broken" : flaky > 0 ? "flaky" : "passed";
  return { status, text: parts.length === 0 ? "No flaky or broken tests" : parts.join(", ") };
}

const ownerLinks = (base: Path, owners: readonly OwnerTally[]): Html | null =>
  owners.length === 0 || owners.every(({ owner }) => owner === null) ? null : (
    <span>
      by owner:{" "}
      {owners.map(({ owner, flaky, broken }, index) => [
        index === 0 ? "" : ", ",
        owner === null ? (
          <a href={`${base}?q=is:unowned`}>nobody</a>
        ) : (
          <a href={toAddress(base, { q: toSearchWord("owner", owner) })}>{owner}</a>
        ),
        ` ${toCount(flaky + broken)}`,
      ])}
    </span>
  );

type Context = ProjectContext & { query: CatalogueQuery };

/** Whether one of the filters is set. The order counts as one. */
const isFiltered = ({ cursor: _, changed: __, ...filters }: CatalogueQuery): boolean =>
  Object.values(filters).some((value) => value !== undefined);

async function loadCatalogue(context: Context) {
  const {
    sql,
    begin,
    project: { id },
    query,
  } = context;
  await catchUp(sql, begin, id, COUNT_TIMEOUT_MS);
  const isFirstPage = !isFiltered(query) && query.cursor === undefined;
  const [{ shown, next, problem }, tally, ownerTally, tasks, owners, slowest, broken] = await Promise.all([
    selectCatalogue(context),
    selectTally(sql, id),
    selectOwnerTally(sql, id, MAX_OWNERS),
    selectTaskSlugs(sql, id, MAX_CHOICES + 1),
    selectOwners(sql, id, MAX_CHOICES + 1),
    // One row more than the limit is returned.
    selectTestCases(sql, id, { limit: 0, sort: "p95Ms" }),
    isFirstPage
      ? selectTestCases(sql, id, { limit: MAX_BROKEN_TESTS, conditions: [{ field: "health", is: ["broken"] }] })
      : [],
  ]);
  return { tests: shown, next, problem, tally, ownerTally, tasks, owners, slowest: slowest[0], broken };
}

type CatalogueData = Awaited<ReturnType<typeof loadCatalogue>>;

function CatalogueFacts({ projectId, data }: { projectId: string; data: CatalogueData }): Html {
  const { tally, slowest, ownerTally } = data;
  const path = testsPath(projectId);
  return (
    <div class="meta quiet">
      {tally.broken > 0 ? <a href={`${path}?q=is:broken`}>broken</a> : null}
      {tally.flaky > 0 ? <a href={`${path}?q=is:flaky`}>flaky</a> : null}
      {tally.quarantined > 0 ? <a href={`${path}?q=is:quarantined`}>quarantined</a> : null}
      {slowest && slowest.p95Ms !== null ? (
        <span>
          <a href={`${path}?sort=p95Ms`}>slowest</a>: <a href={testPath(projectId, slowest.id)}>{slowest.name}</a>,{" "}
          {toDuration(slowest.p95Ms)}
        </span>
      ) : null}
      {ownerLinks(path, ownerTally)}
    </div>
  );
}

const NoTests = ({ projectId, isFiltered }: { projectId: string; isFiltered: boolean }): Html =>
  isFiltered ? (
    <Empty action={<a href={testsPath(projectId)}>All tests</a>}>No tests match the filters.</Empty>
  ) : (
    <Empty action={<FirstReportLink projectId={projectId} />}>No tests yet.</Empty>
  );

/** The table of tests; for members, as a form that changes the selected ones. */
function Tests({ context, data: { tests } }: { context: Context; data: CatalogueData }): Html {
  const { project, query, role, csrf, now } = context;
  if (tests.length === 0) return <NoTests projectId={project.id} isFiltered={isFiltered(query)} />;
  const mayChange = role !== "viewer";
  const table = catalogueTable(project.id, tests, mayChange, now);
  if (!mayChange) return table;
  const { changed: _, ...list } = query;
  return (
    <form method="post" action={`${testsPath(project.id)}/change`}>
      <Csrf token={csrf} />
      <input type="hidden" name="back" value={toQuery(list)} />
      {table}
      {bulkFields}
    </form>
  );
}

function catalogueView(context: Context, data: CatalogueData): View {
  const { project, query, now } = context;
  const { changed, ...list } = query;
  const { tally, broken, next, problem, tasks, owners } = data;
  const path: Path = testsPath(project.id);
  const headline = headlineOf(tally);
  const body = (
    <>
      <h1>
        <Mark status={headline.status} word={false} /> {headline.text}
      </h1>
      <CatalogueFacts projectId={project.id} data={data} />
      {changed === undefined ? null : (
        <p class="message good" role="status">
          {changed === 0 ? "No changes needed." : `${counted(changed, "test")} changed.`}
        </p>
      )}
      {brokenTable(project.id, broken.slice(0, MAX_BROKEN_TESTS), broken.length > MAX_BROKEN_TESTS, now)}
      <CatalogueSearch {...{ path, query, problem, tasks, owners }} isFiltered={isFiltered(query)} />
      {problem === undefined ? <Tests context={context} data={data} /> : null}
      <Pager path={path} query={list} cursor={next} />
    </>
  );
  return { title: "Tests", body, section: "tests", ...(problem === undefined ? {} : { status: 400 }) };
}

export const cataloguePage = page(
  "/projects/:projectId/tests",
  { access: "viewer", query: catalogueQuery },
  async (context) => {
    const { query, project } = context;
    const chosen = chosenTestWords(query);
    if (chosen.length > 0) {
      const q = addSearchWords(query.q ?? "", TEST_KEYS, chosen);
      const changed = query.changed?.toString();
      return new SeeOther(toAddress(testsPath(project.id), { q, sort: query.sort, changed }));
    }
    return catalogueView(context, await loadCatalogue(context));
  },
);

const bulkForm = v.strictObject({
  ...Object.fromEntries(Array.from({ length: PAGE_SIZE }, (_, index) => [isTicked(index), v.optional(uuid)])),
  do: v.picklist(["quarantine", "release", "own"], "expected a known operation"),
  reason: mayBeEmpty(text(1_000)),
  until: mayBeEmpty(day),
  owner: mayBeEmpty(text(200)),
  back: v.pipe(v.string(), v.maxLength(6_000, "expected the address of the list")),
});

export const bulkChangeForm = form(
  "/projects/:projectId/tests/change",
  { access: "member", fields: bulkForm },
  async (context) => {
    const { project, fields } = context;
    const { do: what, reason, until, owner, back, ...ticked } = fields;
    const ids = Object.values(ticked as Record<string, string | undefined>).filter((id) => id !== undefined);
    if (ids.length === 0) refuse("Select at least one test");
    const patch: TestCasePatch =
      what === "own"
        ? { owner: owner ?? null }
        : what === "release"
          ? { quarantine: null }
          : toQuarantine(reason, until);
    const { changed } = await change(context, [...new Set(ids)], patch);
    const view = Object.fromEntries(new URLSearchParams(back));
    return new SeeOther(toAddress(testsPath(project.id), { ...view, changed: String(changed) }));
  },
);
