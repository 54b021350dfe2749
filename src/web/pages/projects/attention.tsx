/** The list of what needs attention in a project besides a red default branch. */

import type { Html } from "../../../http/html.ts";
import type { RegressedBug } from "../../../store/bug_reports.ts";
import type { LiveItemRow } from "../../../store/overview.ts";
import { selectTestCases } from "../../../store/test_cases.ts";
import { shownTaskTitle } from "../../../wording/case_title.ts";
import { firstLineOf } from "../../../wording/first_line.ts";
import { flakeWords } from "../../../wording/flake_rate.ts";
import { counted } from "../../../wording/numbers.ts";
import { executionNumber, lineName } from "../../../wording/execution_name.ts";
import { AgoCell, MarkCell, CardTable } from "../../components/list.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { bugPath, executionPath, testPath } from "../../site/paths.ts";

/** Maximum number of rows of each kind. */
export const MAX_ROWS_PER_KIND = 5;

type Needs = {
  news: readonly LiveItemRow[];
  regressed: readonly RegressedBug[];
  flaky: Awaited<ReturnType<typeof selectTestCases>>;
};

export function needsAttention(projectId: string, { news, regressed, flaky }: Needs, now: Date): Html | null {
  const rows = [
    ...news.map((row) => (
      <tr>
        <MarkCell status="failed" />
        <td class="long">
          <a href={executionPath(projectId, row.executionId)}>
            <b>{executionNumber(row)}</b> <code>{lineName(row)}</code> {counted(row.failures, "new failure")}
          </a>{" "}
          <span class="small soft">{firstLineOf(row.message ?? row.test)}</span>
        </td>
        <AgoCell at={row.createdAt} now={now} />
      </tr>
    )),
    ...regressed.map((bug) => (
      <tr>
        <td class="mark-cell">
          <span class="mark failed" aria-hidden="true">
            ▲
          </span>
          <span class="visually-hidden">regressed</span>
        </td>
        <td class="long">
          <a href={bugPath(projectId, bug.id)}>
            <b>Bug {bug.number}</b> came back: {bug.title}
          </a>{" "}
          <span class="small soft">
            {counted(bug.occurrences, "failure")}
            {bug.assignee === null ? "" : `, ${bug.assignee}`}
          </span>
        </td>
        <td class="number soft">{bug.lastSeenAt === null ? null : <Ago at={bug.lastSeenAt} now={now} />}</td>
      </tr>
    )),
    ...flaky.map((test) => (
      <tr>
        <MarkCell status="flaky" />
        <td class="long">
          <a href={testPath(projectId, test.id)}>
            <Breakable text={shownTaskTitle(test)} />
          </a>{" "}
          <span class="small soft">flaky, {flakeWords(test)}</span>
        </td>
        <td class="number soft">{test.flaky?.since ? <Ago at={test.flaky.since} now={now} /> : null}</td>
      </tr>
    )),
  ];
  return rows.length === 0 ? null : (
    <>
      <h2>Needs attention</h2>
      <CardTable caption="Needs attention">{rows}</CardTable>
    </>
  );
}
