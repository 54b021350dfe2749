/** The list of tests of a project, with filters and bulk changes. */

import * as v from "valibot";
import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import { catchUp } from "../../../operations/health/catch_up.ts";
import { integerText, mayBeEmpty, text, uuid } from "../../../schema/fields.ts";
import { refuse } from "../../../schema/refusal.ts";
import { type TestCasePatch, type TestCaseSort, health } from "../../../schema/test_cases.ts";
import { type OwnerTally, selectOwnerTally } from "../../../store/case_record.ts";
import { selectOwners, selectTaskSlugs } from "../../../store/filter_options.ts";
import { type ProjectCounts, selectTally } from "../../../store/overview.ts";
import { selectTestCases } from "../../../store/test_cases.ts";
import { counted, toCount, toDuration } from "../../../wording/numbers.ts";
import { FilterBar, FilterName, FilterSelect, FilterText, MAX_CHOICES } from "../../components/filters.tsx";
import { type Choice, Csrf } from "../../components/form.tsx";
import { Pager } from "../../components/pager.tsx";
import { Mark } from "../../components/status.tsx";
import { PART, readCursor, writeCursor } from "../../site/cursor.ts";
import { SeeOther, form, page } from "../../site/page.ts";
import { testPath, toAddress, toQuery } from "../../site/paths.ts";
import { brokenTable, bulkFields, catalogueTable, isTicked } from "./catalogue_tables.tsx";
import { COUNT_TIMEOUT_MS, change, day, testsPath, toQuarantine } from "./changes.tsx";

const PAGE_SIZE = 20;

const MAX_BROKEN_TESTS = 5;

const SORTS = ["flakeRate", "failures", "p95Ms", "lastRunAt", "firstSeen"] as const;

const SORT_OPTIONS: readonly Choice[] = [
  ["", "flakiest first"],
  ["failures", "most failures first"],
  ["p95Ms", "slowest first"],
  ["lastRunAt", "last run first"],
  ["firstSeen", "first seen"],
];

const HEALTH_OPTIONS: readonly Choice[] = [
  ["", "any"],
  ["flaky", "flaky"],
  ["broken", "broken"],
  ["new", "new"],
  ["healthy", "healthy"],
  ["removed", "removed"],
];

const catalogueQuery = v.strictObject({
  q: mayBeEmpty(text(200)),
  health: mayBeEmpty(health),
  task: mayBeEmpty(text(200)),
  owner: mayBeEmpty(text(200)),
  quarantined: mayBeEmpty(v.picklist(["true", "false"], `expected "true" or "false"`)),
  sort: mayBeEmpty(v.picklist(SORTS, "expected a known order")),
  cursor: mayBeEmpty(text(200)),
  /** The number of test cases that the form changed. */
  changed: v.optional(integerText(0, 100)),
});

type CatalogueQuery = v.InferOutput<typeof catalogueQuery>;

const KEYS: Record<TestCaseSort, (text: string) => boolean> = {
  flakeRate: PART.real,
  failures: PART.number,
  p95Ms: PART.number,
  lastRunAt: PART.time,
};

async function selectCatalogue(sql: Sql, projectId: string, query: CatalogueQuery) {
  const { q, health, task, owner, quarantined, sort = "flakeRate", cursor } = query;
  const by = sort === "firstSeen" ? undefined : sort;
  const isKey = by === undefined ? PART.none : (text: string) => text === "" || KEYS[by](text);
  const rows = await selectTestCases(sql, projectId, {
    limit: PAGE_SIZE,
    q,
    health: health && [health],
    task_slug: task,
    owner,
    quarantined: quarantined && quarantined === "true",
    sort: by,
    after: readCursor(cursor, [isKey, PART.number]),
  });
  const shown = rows.slice(0, PAGE_SIZE);
  const last = rows.length > PAGE_SIZE ? shown.at(-1) : undefined;
  return { shown, next: last && writeCursor([last.key ?? "", String(last.number)]) };
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
      whose:{" "}
      {owners.map(({ owner, flaky, broken }, index) => [
        index === 0 ? "" : ", ",
        owner === null ? "nobody" : <a href={toAddress(base, { owner })}>{owner}</a>,
        ` ${toCount(flaky + broken)}`,
      ])}
    </span>
  );

const bulkForm = v.strictObject({
  ...Object.fromEntries(Array.from({ length: PAGE_SIZE }, (_, index) => [isTicked(index), v.optional(uuid)])),
  do: v.picklist(["quarantine", "release", "own"], "expected a known operation"),
  reason: mayBeEmpty(text(1_000)),
  until: mayBeEmpty(day),
  owner: mayBeEmpty(text(200)),
  back: v.pipe(v.string(), v.maxLength(2_000, "expected the address of the list")),
});

export const cataloguePage = page(
  "/projects/:projectId/tests",
  { access: "viewer", query: catalogueQuery },
  async (context) => {
    const { sql, begin, project, query, role, csrf, now } = context;
    const { id } = project;
    const path: Path = testsPath(id);
    const mayChange = role !== "viewer";
    await catchUp(sql, begin, id, COUNT_TIMEOUT_MS);
    const { cursor, changed, ...filters } = query;
    const isFiltered = Object.values(filters).some((value) => value !== undefined);
    const [{ shown, next }, tally, owners, tasks, names, slowest, broken] = await Promise.all([
      selectCatalogue(sql, id, query),
      selectTally(sql, id),
      selectOwnerTally(sql, id, 6),
      selectTaskSlugs(sql, id, MAX_CHOICES + 1),
      selectOwners(sql, id, MAX_CHOICES + 1),
      // One row more than the limit is returned.
      selectTestCases(sql, id, { limit: 0, sort: "p95Ms" }),
      isFiltered || cursor !== undefined
        ? []
        : selectTestCases(sql, id, { limit: MAX_BROKEN_TESTS, health: ["broken"] }),
    ]);
    const { q, health, task, owner, quarantined, sort } = filters;
    const headline = headlineOf(tally);
    const [slow] = slowest;
    const table = catalogueTable(id, shown, mayChange, now);
    const none = (
      <div class="card empty">
        {isFiltered ? (
          <>
            <p>No tests match the filters.</p>
            <p>
              <a href={path}>All tests</a>
            </p>
          </>
        ) : (
          <>
            <p>No tests yet.</p>
            <p>
              <a class="button main" href={`/projects/${id}/onboarding`}>
                Send the first report
              </a>
            </p>
          </>
        )}
      </div>
    );
    const body = (
      <>
        <h1>
          <Mark status={headline.status} word={false} /> {headline.text}
        </h1>
        <div class="meta quiet">
          {tally.broken > 0 ? <a href={`${path}?health=broken`}>broken</a> : null}

          {tally.flaky > 0 ? <a href={`${path}?health=flaky`}>flaky</a> : null}

          {tally.quarantined > 0 ? <a href={`${path}?quarantined=true`}>quarantined</a> : null}

          {slow && slow.p95Ms !== null ? (
            <span>
              <a href={`${path}?sort=p95Ms`}>slowest</a>: <a href={testPath(id, slow.id)}>{slow.name}</a>,{" "}
              {toDuration(slow.p95Ms)}
            </span>
          ) : null}

          {ownerLinks(path, owners)}
        </div>
        {changed === undefined ? null : (
          <p class="message good" role="status">
            {changed === 0 ? "No changes needed." : `${counted(changed, "test")} changed.`}
          </p>
        )}
        {brokenTable(id, broken.slice(0, MAX_BROKEN_TESTS), broken.length > MAX_BROKEN_TESTS, now)}
        <FilterBar path={path} isFiltered={isFiltered}>
          {[
            <FilterText label="Name or file" name="q" value={q} type="search" />,
            <FilterSelect label="Health" name="health" options={HEALTH_OPTIONS} value={health} />,
            <FilterName label="Task" name="task" names={tasks} value={task} />,
            <FilterName label="Owner" name="owner" names={names} value={owner} />,
            <FilterSelect
              label="Quarantine"
              name="quarantined"
              options={[
                ["", "either"],
                ["true", "quarantined"],
                ["false", "not quarantined"],
              ]}
              value={quarantined}
            />,
            <FilterSelect label="Order" name="sort" options={SORT_OPTIONS} value={sort === "flakeRate" ? "" : sort} />,
          ]}
        </FilterBar>
        {shown.length === 0 ? (
          none
        ) : mayChange ? (
          <form method="post" action={`${path}/change`}>
            <Csrf token={csrf} />
            <input type="hidden" name="back" value={toQuery({ ...filters, cursor })} />
            {table}
            {bulkFields}
          </form>
        ) : (
          table
        )}
        <Pager path={path} query={{ ...filters, cursor }} cursor={next} />
      </>
    );
    return { title: "Tests", body, section: "tests" };
  },
);

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
