/** The tables of the list of tests. */

import { FilterText } from "../../components/filters.tsx";
import type { Html } from "../../../http/html.ts";
import type { TestCaseRow } from "../../../store/test_cases.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { flakeCountWords } from "../../../wording/flake_rate.ts";
import { toCount, toDuration } from "../../../wording/numbers.ts";
import { AgoCell, MarkCell, CardTable } from "../../components/list.tsx";
import { Tag, testStatusOf, wordOf } from "../../components/status.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { testPath } from "../../site/paths.ts";
import { quarantineTag, testsPath } from "./changes.tsx";

export const isTicked = (index: number) => `case${index}`;

function catalogueRow(projectId: string, test: TestCaseRow, index: number, mayChange: boolean, now: Date): Html {
  return (
    <tr>
      {mayChange ? (
        <td class="mark-cell">
          <input type="checkbox" name={isTicked(index)} value={test.id} aria-labelledby={`t${index}`} />
        </td>
      ) : null}
      <MarkCell status={testStatusOf(test)} />
      <td class="long">
        <a id={`t${index}`} href={testPath(projectId, test.id)}>
          <Breakable text={shownCaseTitle(test)} />
        </a>
        {test.quarantine ? [" ", quarantineTag(test, now)] : null}
        {test.sample ? [" ", <Tag>sample</Tag>] : null}
        <span class="small soft">{[test.file, test.taskSlug].filter(Boolean).join(" · ")}</span>
      </td>
      <td class="wide">
        {test.lastStatus === null ? (
          "–"
        ) : test.lastStatus === "failed" ? (
          <span class="failed">failed</span>
        ) : (
          wordOf(test.lastStatus)
        )}
      </td>
      <td class="number">{test.flakeFailures > 0 ? flakeCountWords(test) : "–"}</td>
      <td class="number wide">{test.runs === 0 ? "–" : `${toCount(test.failures)} of ${toCount(test.runs)}`}</td>
      <td class="number wide">{test.averageMs === null ? "–" : toDuration(test.averageMs)}</td>
      <td class="number">{test.p95Ms === null ? "–" : toDuration(test.p95Ms)}</td>
      <AgoCell at={test.lastRunAt} now={now} kind="number soft wide" never="–" />
      <td class="wide long">{test.owners.join(", ")}</td>
    </tr>
  );
}

/** Describes which results the counts of a test include. */
export const ALL_RESULTS = "on all branches, excluding skips and outages";

export const catalogueTable = (
  projectId: string,
  tests: readonly TestCaseRow[],
  mayChange: boolean,
  now: Date,
): Html => (
  <>
    <CardTable
      caption="Tests"
      columns={[
        mayChange && ["Select", "hidden"],
        ["Health", "hidden"],
        "Test",
        ["Last", "wide"],
        [<abbr title="Share of the last results that showed it to be flaky">Flaky</abbr>, "number"],
        ["Failed", "number", "wide"],
        ["Average", "number", "wide"],
        [<abbr title="95th percentile of the last 20 durations">p95</abbr>, "number"],
        ["Last run", "number", "wide"],
        ["Owner", "wide"],
      ]}
      scrolls
    >
      {tests.map((test, index) => catalogueRow(projectId, test, index, mayChange, now))}
    </CardTable>
    <p class="hint">“Failed” counts all results {ALL_RESULTS}.</p>
  </>
);

/** Tests that always fail on the default branch come before tests that fail sometimes. */
export const brokenTable = (
  projectId: string,
  tests: readonly TestCaseRow[],
  hasMore: boolean,
  now: Date,
): Html | null =>
  tests.length === 0 ? null : (
    <>
      <h2>
        Broken{" "}
        {hasMore ? (
          <small>
            the first {tests.length}: <a href={`${testsPath(projectId)}?q=is:broken`}>all</a>
          </small>
        ) : null}
      </h2>
      <CardTable caption="Broken tests">
        {tests.map((test) => (
          <tr>
            <MarkCell status="broken" />
            <td class="long">
              <a href={testPath(projectId, test.id)}>
                <Breakable text={shownCaseTitle(test)} />
              </a>
              {test.quarantine ? [" ", quarantineTag(test, now)] : null}
            </td>
            <td class="wide long">{test.owners.join(", ") || <span class="soft">no owner</span>}</td>
            <td class="number soft">
              {test.lastPassedAt === null ? "never passed" : ["passed last ", <Ago at={test.lastPassedAt} now={now} />]}
            </td>
          </tr>
        ))}
      </CardTable>
      <h2>All tests</h2>
    </>
  );

/** The form for the selected tests. The button that was pressed names the change. */
export const bulkFields = (
  <fieldset class="filters for-selected">
    <legend>Selected tests</legend>
    <FilterText label="Why" name="reason" max={1000} value={undefined} />
    <FilterText label="Until (optional)" name="until" type="date" value={undefined} />
    <button name="do" value="quarantine">
      Quarantine
    </button>
    <button name="do" value="release">
      End quarantine
    </button>
    <FilterText label="Owner" name="owner" value={undefined} />
    <button name="do" value="own">
      Set owner
    </button>
  </fieldset>
);
