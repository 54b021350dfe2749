/** The occurrences and the tests of a bug. */

import type { Html } from "../../../http/html.ts";
import type { BugCaseRow } from "../../../store/bug_cases.ts";
import type { OccurrenceRow } from "../../../store/bug_occurrences.ts";
import type { ExecutionName } from "../../../store/execution_list.ts";
import type { TestCaseName } from "../../../store/test_cases.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { firstLineOf, messageLineOf } from "../../../wording/first_line.ts";
import { counted } from "../../../wording/numbers.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { AgoCell, MarkCell, CardTable } from "../../components/list.tsx";
import { testStatusOf } from "../../components/status.tsx";
import { Breakable, Commit } from "../../components/text.tsx";
import { executionPath, testPath } from "../../site/paths.ts";

type Names = { builds: ReadonlyMap<string, ExecutionName>; tests: ReadonlyMap<number, TestCaseName> };

/** Maximum length of the first line of a message. */
const MAX_MESSAGE_LENGTH = 200;

export const occurrenceTable = (
  projectId: string,
  rows: readonly OccurrenceRow[],
  { builds, tests }: Names,
  now: Date,
): Html => (
  <CardTable caption="Occurrences, newest first" columns={["Test and message", "Execution", ["When", "number"]]}>
    {rows.map((row) => {
      const build = builds.get(row.executionId);
      const test = tests.get(row.testCase);
      return (
        <tr>
          <td class="long">
            <a href={testPath(projectId, row.testCaseId)}>
              <Breakable text={test ? shownCaseTitle(test) : row.taskSlug} />
            </a>
            <span class="small soft">{firstLineOf(messageLineOf(row.message), MAX_MESSAGE_LENGTH)}</span>
          </td>
          <td class="long">
            <a href={executionPath(projectId, row.executionId)}>{build ? executionName(build) : "its execution"}</a>
            {row.branch === null ? null : [" ", <code class="wide">{row.branch}</code>]}
            {row.commit === null
              ? null
              : [
                  " ",
                  <span class="soft wide">
                    <Commit hash={row.commit} />
                  </span>,
                ]}
          </td>
          <AgoCell at={row.seenAt} now={now} />
        </tr>
      );
    })}
  </CardTable>
);

export const caseTable = (projectId: string, rows: readonly BugCaseRow[]): Html => (
  <CardTable caption="The tests of this bug" columns={[["Health", "hidden"], "Test", ["Passed since", "number"]]}>
    {rows.map((row) => (
      <tr>
        <MarkCell status={testStatusOf(row)} />
        <td class="long">
          <a href={testPath(projectId, row.id)}>
            <Breakable text={shownCaseTitle(row)} />
          </a>
          <span class="small soft">{[row.file, row.taskSlug].filter(Boolean).join(" · ")}</span>
        </td>
        <td class="number">{row.clean === 0 ? "–" : counted(row.clean, "time")}</td>
      </tr>
    ))}
  </CardTable>
);
