/** The tests that an execution has added, and the results of their further runs. */

import type { Html } from "../../../http/html.ts";
import type { TimedExecutionRow } from "../../../store/execution_list.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { newTestWords } from "../../../wording/verification.ts";
import { testPath } from "../../site/paths.ts";
import { MarkCell, CardTable } from "../../components/list.tsx";

const MARK_OF: Record<string, string> = { inconclusive: "incomplete" };

/** Shows nothing if no new test is run again. */
export function NewTests({ projectId, execution }: { projectId: string; execution: TimedExecutionRow }): Html | null {
  const { newTests } = execution;
  if (newTests.length === 0) return null;
  // Those that need attention come first.
  const sorted = newTests.toSorted((a, b) => Number(b.failed > 0) - Number(a.failed > 0));
  return (
    <>
      <h2>
        New tests <small>run again after the execution; the results count nowhere else</small>
      </h2>
      <CardTable caption="New tests and their further runs">
        {sorted.map((test) => (
          <tr>
            <MarkCell status={MARK_OF[test.status] ?? test.status} />
            <td class="long">
              <a href={`${testPath(projectId, test.testCase.testCaseId)}#verifications`}>
                {shownCaseTitle(test.testCase)}
              </a>
            </td>
            <td class="long">{newTestWords(test)}</td>
          </tr>
        ))}
      </CardTable>
    </>
  );
}
