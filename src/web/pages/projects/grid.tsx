/** The newest executions of a branch and the tests that failed in them, as a grid. */

import type { Html } from "../../../http/html.ts";
import type { ExecutionSummary } from "../../../store/execution_list.ts";
import type { GridRow } from "../../../store/overview.ts";
import { toDuration, toDay } from "../../../wording/numbers.ts";
import { readVariant } from "../../../rules/variants.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { executionNumber } from "../../../wording/execution_name.ts";
import { type Column, CardTable } from "../../components/list.tsx";
import { Breakable } from "../../components/text.tsx";
import { executionPath, testPath } from "../../site/paths.ts";

export const GRID_TESTS = 8;

const LETTERS: Record<string, string> = {
  p: "passed",
  P: "flaky",
  f: "failed",
  F: "failed",
  s: "skipped",
  S: "skipped",
};

const SHAPES: Record<string, string> = { passed: "●", flaky: "◐", failed: "✕", skipped: "–" };

/** Shows tests in rows and executions in columns, newest right. */
export function grid(projectId: string, rows: readonly GridRow[], builds: readonly ExecutionSummary[]): Html | null {
  if (rows.length === 0) return null;
  const columns = builds.toReversed();
  return (
    <CardTable
      caption="Recently failed tests by execution, newest right"
      columns={[
        "Test",
        ...columns.map((build): Column => [<a href={executionPath(projectId, build.id)}>{shortNameOf(build)}</a>]),
      ]}
      kind="grid"
      scrolls
    >
      {rows.map((row) => {
        const cells = new Map(row.cells.map((cell) => [cell.executionId, cell]));
        return (
          <tr>
            <th scope="row">
              <a href={testPath(projectId, row.testCaseId)}>
                <span class="soft">
                  <Breakable text={row.suite || readVariant(row.taskSlug).task} /> ›{" "}
                </span>
                <Breakable text={shownCaseTitle({ ...row, suite: "" })} />
              </a>
            </th>
            {columns.map((build) => {
              const cell = cells.get(build.id);
              if (!cell)
                return (
                  <td>
                    <span class="soft" role="img" aria-label="not run">
                      ·
                    </span>
                  </td>
                );
              const status = LETTERS[cell.letter] ?? "skipped";
              const label = `${status}${cell.durationMs === null ? "" : `, ${toDuration(cell.durationMs)}`}`;
              const to = executionPath(projectId, build.id);
              return (
                <td>
                  <a class={`cell ${status}`} href={to} title={label} aria-label={label}>
                    {SHAPES[status]}
                  </a>
                </td>
              );
            })}
          </tr>
        );
      })}
    </CardTable>
  );
}

/** Shortens a name for the head of a narrow column. */
function shortNameOf(build: ExecutionSummary): string {
  const name = executionNumber(build).replace(/^#/, "");
  return name.length <= 8 ? name : toDay(build.createdAt);
}
