/** What needs attention in a project. */

import type { Html } from "../../../http/html.ts";
import type { BranchTask } from "../../../rules/branch_state.ts";
import type { RegressedBug } from "../../../store/bug_reports.ts";
import type { NewsRow, RedTaskRow } from "../../../store/overview.ts";
import { selectTestCases } from "../../../store/test_cases.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { firstLineOf } from "../../../wording/first_line.ts";
import { counted } from "../../../wording/numbers.ts";
import { redTaskWords } from "../../../wording/task.ts";
import { executionNumber } from "../../components/execution_table.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago, Breakable, toPercent, toSpan } from "../../components/text.tsx";
import { bugPath, executionPath, taskPath, testPath } from "../../site/paths.ts";

/** Of what needs somebody so much is told, of each kind. */
export const NEWS = 5;

type Needs = {
  branch: string;
  /** The tasks that keep the default branch red, and what they say. */
  red: readonly { task: BranchTask; said: RedTaskRow }[];
  /** The number of further ones. */
  moreRed: number;
  news: readonly NewsRow[];
  regressed: readonly RegressedBug[];
  flaky: Awaited<ReturnType<typeof selectTestCases>>;
};

export function needsYou(
  projectId: string,
  { branch, red, moreRed, news, regressed, flaky }: Needs,
  now: Date,
): Html | null {
  const rows = [
    ...red.map(({ task: { slug, status, failed, since, isLonger }, said }) => (
      <tr>
        <td class="mark-cell">
          <Mark status="failed" />
        </td>
        <td class="long">
          <a href={taskPath(projectId, said.executionId, slug)}>
            <b>{executionNumber(said)}</b> <code>{branch}</code> {slug}: {redTaskWords({ status, failed })}
            {said.newFailures > 0 ? `, ${said.newFailures} new` : ""}
          </a>{" "}
          <span class="small soft">{firstLineOf(said.message ?? said.test)}</span>
        </td>
        <td class="number soft">
          red for {isLonger ? "more than " : ""}
          {toSpan(now.getTime() - Date.parse(since))}
        </td>
      </tr>
    )),
    moreRed === 0 ? null : (
      <tr>
        <td class="mark-cell">
          <Mark status="failed" />
        </td>
        <td class="long" colspan={2}>
          {counted(moreRed, "more red task")} of <code>{branch}</code>
        </td>
      </tr>
    ),
    ...news.map((row) => (
      <tr>
        <td class="mark-cell">
          <Mark status="failed" />
        </td>
        <td class="long">
          <a href={executionPath(projectId, row.executionId)}>
            <b>{executionNumber(row)}</b> <code>{row.branch}</code> {counted(row.failures, "new failure")}
          </a>{" "}
          <span class="small soft">{firstLineOf(row.message ?? row.test)}</span>
        </td>
        <td class="number soft">
          <Ago at={row.createdAt} now={now} />
        </td>
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
        <td class="mark-cell">
          <Mark status="flaky" />
        </td>
        <td class="long">
          <a href={testPath(projectId, test.id)}>
            <Breakable text={`${test.taskSlug} › ${shownCaseTitle(test)}`} />
          </a>{" "}
          <span class="small soft">flaky, fails {toPercent(test.flakeRate)} of runs</span>
        </td>
        <td class="number soft">{test.flaky?.since ? <Ago at={test.flaky.since} now={now} /> : null}</td>
      </tr>
    )),
  ];
  return rows.every((row) => row === null) ? null : (
    <>
      <h2>Needs attention</h2>
      <div class="card">
        <table>
          <caption class="visually-hidden">Needs attention</caption>
          <tbody>{rows}</tbody>
        </table>
      </div>
    </>
  );
}
