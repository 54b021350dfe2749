/** The changes in an execution: what was slower than usual; if it passed, also fixed, added, absent and flaky tests by name. */

import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import { hasEnded, sumTasks } from "../../../rules/execution.ts";
import { selectCaseResults } from "../../../store/case_results.ts";
import { type ComparedRow, selectComparison } from "../../../store/comparisons.ts";
import type { TimedExecutionRow } from "../../../store/execution_list.ts";
import { selectRunId } from "../../../store/test_runs.ts";
import { selectSlowerTests, type SlowerRow } from "../../../store/slower.ts";
import { shownTaskTitle } from "../../../wording/case_title.ts";
import { toCount } from "../../../wording/numbers.ts";
import { CardTable } from "../../components/list.tsx";
import { SlowerTests } from "../../components/slower_tests.tsx";
import { Mark } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";
import { executionPath, taskPath, testPath, toAddress } from "../../site/paths.ts";

/** Maximum number of named tests of each kind. */
const MAX_TESTS_PER_KIND = 5;
/** Larger executions are compared on the comparison page instead. */
const MAX_COMPARED_RESULTS = 20_000;

type NamedTest = Pick<ComparedRow, "testCaseId" | "taskSlug" | "suite" | "name">;

type Changes = {
  compared: readonly ComparedRow[];
  slower: readonly SlowerRow[];
  flaky: readonly NamedTest[];
  /** The task with the flaky results that are not listed. */
  flakyTask: string | undefined;
};

/** The page of an execution that has not passed shows its failures, and only what was slower. Undefined while it runs. */
export async function readChanges(
  sql: Sql,
  projectId: string,
  { id, status, tasks, baselineId, untrusted }: TimedExecutionRow,
): Promise<Changes | undefined> {
  if (!hasEnded(status)) return undefined;
  if (status !== "passed") {
    const slower = await selectSlowerTests(sql, projectId, id, MAX_TESTS_PER_KIND);
    return { compared: [], slower, flaky: [], flakyTask: undefined };
  }
  const isSmall = sumTasks(tasks, "passed") + sumTasks(tasks, "skipped") <= MAX_COMPARED_RESULTS;
  const flakyTask = tasks.find(({ flaky }) => flaky > 0)?.slug;
  const [compared, slower, runId] = await Promise.all([
    baselineId === null || !isSmall ? [] : selectComparison(sql, projectId, id, undefined),
    selectSlowerTests(sql, projectId, id, MAX_TESTS_PER_KIND),
    flakyTask === undefined ? undefined : selectRunId(sql, projectId, id, flakyTask),
  ]);
  const flaky =
    runId === undefined
      ? []
      : await selectCaseResults(sql, projectId, { id: runId, untrusted }, { limit: MAX_TESTS_PER_KIND, flaky: true });
  return {
    compared,
    slower,
    flaky: flaky.slice(0, MAX_TESTS_PER_KIND).map((row) => ({ ...row, taskSlug: flakyTask! })),
    flakyTask,
  };
}

type Row = { kind: string; mark: string; tests: readonly NamedTest[]; total: number; more: Path };

/** Returns the kinds of changes that occur. */
function changesByKind(projectId: string, execution: TimedExecutionRow, changes: Changes): Row[] {
  const path = executionPath(projectId, execution.id);
  const compared = (kind: string, title: string, mark: string): Row => {
    const tests = changes.compared.filter((row) => row.kind === kind);
    return {
      kind: title,
      mark,
      tests: tests.slice(0, MAX_TESTS_PER_KIND),
      total: tests[0]?.total ?? 0,
      more: `${path}/comparison#${kind}`,
    };
  };
  return [
    compared("fixed", "Fixed", "passed"),
    {
      kind: "Flaky",
      mark: "flaky",
      tests: changes.flaky,
      total: sumTasks(execution.tasks, "flaky"),
      more: toAddress(taskPath(projectId, execution.id, changes.flakyTask ?? ""), { status: "flaky" }),
    },
    compared("added", "Added", "new"),
    // A rerun may repeat only some tests.
    ...(execution.buildId === null ? [compared("missing", "Did not run", "skipped")] : []),
    compared("skipped", "Newly skipped", "skipped"),
  ].filter(({ tests }) => tests.length > 0);
}

const ChangeRow = ({ projectId, row }: { projectId: string; row: Row }): Html => (
  <tr>
    <th scope="row" class="change">
      <Mark status={row.mark} word={false} /> {row.kind} {toCount(row.total)}
    </th>
    <td class="long">
      <ul class="plain">
        {row.tests.map((test) => (
          <li>
            <TestLink projectId={projectId} test={test} />
          </li>
        ))}
        {row.total > row.tests.length ? (
          <li class="small">
            <a href={row.more}>{toCount(row.total - row.tests.length)} more</a>
          </li>
        ) : null}
      </ul>
    </td>
  </tr>
);

const SlowerRow = ({ projectId, tests }: { projectId: string; tests: readonly SlowerRow[] }): Html => (
  <tr>
    <th scope="row" class="change">
      <Mark status="skipped" word={false} /> Slower than usual {toCount(tests[0]!.total)}
    </th>
    <td class="long">
      <SlowerTests projectId={projectId} tests={tests} />
    </td>
  </tr>
);

type ChangesProperties = { projectId: string; execution: TimedExecutionRow; changes: Changes | undefined };

export function ChangeList({ projectId, execution, changes }: ChangesProperties): Html | null {
  if (!changes) return null;
  const rows = execution.status === "passed" ? changesByKind(projectId, execution, changes) : [];
  if (rows.length === 0 && changes.slower.length === 0) return null;
  return (
    <>
      <h2>
        What changed{" "}
        {execution.baselineId === null ? null : (
          <small>
            <a href={`${executionPath(projectId, execution.id)}/comparison`}>full comparison</a>
          </small>
        )}
      </h2>
      <CardTable caption="Tests that changed in this execution" columns={["Change", "Tests"]} hidesHead>
        {rows.map((row) => (
          <ChangeRow projectId={projectId} row={row} />
        ))}
        {changes.slower.length === 0 ? null : <SlowerRow projectId={projectId} tests={changes.slower} />}
      </CardTable>
    </>
  );
}

const TestLink = ({ projectId, test }: { projectId: string; test: NamedTest }): Html => (
  <a href={testPath(projectId, test.testCaseId)}>
    <Breakable text={shownTaskTitle(test)} />
  </a>
);
