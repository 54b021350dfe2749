/** The public page of a shared execution. */

import type { Database, Sql } from "../../../database/connect.ts";
import type { Html, Path, Piece } from "../../../http/html.ts";
import { type CauseFailures, type CausePage, readCauses } from "../../../operations/executions/failures.ts";
import { hasEnded } from "../../../rules/execution.ts";
import type { Blame } from "../../../schema/failures.ts";
import { refuseAbsent } from "../../../schema/refusal.ts";
import type { SharedTarget } from "../../../schema/shares.ts";
import { type ExecutionSummary, selectExecution } from "../../../store/execution_list.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import type { TaskRow } from "../../../store/execution_tasks.ts";
import type { CauseMember } from "../../../store/causes.ts";
import { selectBuild } from "../../../store/overview.ts";
import { shownCaseTitle, shownTaskTitle } from "../../../wording/case_title.ts";
import { executionOutcome } from "../../../wording/execution.ts";
import { counted, toCount, toDuration } from "../../../wording/numbers.ts";
import { MarkCell, Pager, CardTable, TASK_COLUMNS } from "../../components/list.tsx";
import { readCauseCursor, writeCauseCursor } from "../../components/causes.ts";
import { executionName, lineName } from "../../../wording/execution_name.ts";
import { BRIEF, Evidence, FULL } from "../../components/failure.tsx";
import { firstPlainLine } from "../../../wording/first_line.ts";
import { Mark, Tag, wordOf, worstFirst } from "../../components/status.tsx";
import { Ago, Breakable, Commit } from "../../components/text.tsx";
import type { View } from "../../site/page.ts";
import { maskKeys } from "../../../secrets/keys.ts";

const BLAMES: Record<Blame | "none", readonly [mark: string, tag: string]> = {
  new: ["failed", "new"],
  unclear: ["failed", "unclear"],
  main: ["failed", "known"],
  still: ["failed", "known"],
  flaky: ["flaky", "flaky"],
  incident: ["failed", "incident"],
  quarantined: ["skipped", "quarantined"],
  none: ["failed", "failed"],
};

/** Number of causes on a page, of causes with full evidence, and of tests listed for one cause. */
const CAUSES_PER_PAGE = 40;

const CAUSES_WITH_EVIDENCE = 12;

const TESTS_PER_CAUSE = 20;

function causeItem({ failed, failures }: CauseFailures, index: number): Html {
  const [first] = failures;
  const failure = publicTextOf(first);
  const title = firstPlainLine(failure.message) || firstPlainLine(failure.stack) || maskKeys(shownCaseTitle(first));
  const [shape, word] = BLAMES[first.blame ?? "none"];
  const isOne = failed === 1;
  const more = failed - failures.length;
  return (
    <details class="failure" id={`c${index}`} open={index === 0}>
      <summary>
        <span>
          <Mark status={shape} word={false} />
        </span>
        <span class="long">
          {title}
          <span class="small soft">
            {isOne ? <Breakable text={maskKeys(shownCaseTitle(first))} /> : counted(failed, "test")} ·{" "}
            <Breakable text={first.taskSlug} />
          </span>
        </span>
        <span class="wide" />
        <span>
          <Tag kind={shape === "skipped" ? "" : shape}>{word}</Tag>
        </span>
      </summary>
      <div class="evidence">
        <Evidence failure={failure} measure={index < CAUSES_WITH_EVIDENCE ? FULL : BRIEF} title={title} />
        <div>
          <h3>{isOne ? "Test" : counted(failed, "test")}</h3>
          <ul class="reasons small">
            {failures.map((failure) => (
              <li class="long">
                <Breakable text={maskKeys(shownTaskTitle(failure))} />
                {failure.file === null
                  ? null
                  : [
                      " ",
                      <code class="soft">
                        <Breakable text={failure.file} />
                        {failure.line === null ? null : `:${failure.line}`}
                      </code>,
                    ]}
              </li>
            ))}
            {more > 0 ? <li class="soft">and {toCount(more)} more</li> : null}
          </ul>
        </div>
      </div>
    </details>
  );
}

const MAX_TASKS = 100;

function taskTable(tasks: readonly TaskRow[]): Html | null {
  if (tasks.length === 0) return null;
  const more = tasks.length - MAX_TASKS;
  return (
    <>
      <h2>
        Tasks{" "}
        <small>
          {counted(tasks.length, "task")}
          {more > 0 ? `, the first ${MAX_TASKS}` : null}
        </small>
      </h2>
      <CardTable caption="Tasks, failed tasks first" columns={TASK_COLUMNS}>
        {worstFirst(tasks)
          .slice(0, MAX_TASKS)
          .map(({ slug, status, passed, failed, skipped, durationMs }) => (
            <tr>
              <MarkCell status={status} />
              <td class="long">
                <Breakable text={slug} />
                {["passed", "failed"].includes(status)
                  ? null
                  : [" ", <Tag kind={status === "running" ? "running" : "failed"}>{wordOf(status)}</Tag>]}
              </td>
              <td class="number">{toCount(passed)}</td>
              <td class={`number${failed > 0 ? " failed" : ""}`}>{toCount(failed)}</td>
              <td class="number soft wide">{toCount(skipped)}</td>
              <td class="number">{durationMs > 0 ? toDuration(durationMs) : "–"}</td>
            </tr>
          ))}
      </CardTable>
    </>
  );
}

/** Returns the reason of a result without messages of runners and pipelines, because those contain names. */
export const publicOutcomeOf = (build: ExecutionSummary): string =>
  executionOutcome({
    ...build,
    redTasks: build.redTasks.map((task) => ({
      ...task,
      reason: null,
      flaws: task.flaws && { ...task.flaws, says: null },
    })),
  });

function countsOf({ passed, failed, skipped, flaky, durationMs }: ExecutionSummary): string | null {
  const parts = [
    `${toCount(passed)} passed`,
    failed > 0 && `${toCount(failed)} failed`,
    skipped > 0 && `${toCount(skipped)} skipped`,
    flaky > 0 && `${toCount(flaky)} flaky`,
  ].filter(Boolean);
  return passed + failed + skipped === 0
    ? null
    : `${parts.join(", ")}${durationMs > 0 ? ` in ${toDuration(durationMs)}` : ""}`;
}

export type SharedPageContext = Pick<Database, "begin"> & {
  sql: Sql;
  path: Path;
  now: Date;
  cursor: string | undefined;
};

export async function sharedExecution(
  { projectId, projectName, executionId }: SharedTarget,
  context: SharedPageContext,
): Promise<View> {
  const { sql, path, now, cursor } = context;
  const query = {
    limit: CAUSES_PER_PAGE,
    members: TESTS_PER_CAUSE,
    total: CAUSES_PER_PAGE * TESTS_PER_CAUSE,
    after: readCauseCursor(cursor),
  };
  const [build, execution, page] = await Promise.all([
    selectBuild(sql, projectId, executionId!),
    selectExecution(sql, projectId, executionId!),
    readCauses(sql, projectId, executionId!, query),
  ]);
  if (!build || !execution) return refuseAbsent();
  const title = upper(publicOutcomeOf(build));
  const body = (
    <>
      <h1>
        <Mark status={build.status} word={false} /> {title}
      </h1>
      {executionMeta(projectName, build, execution, now)}
      {failureList(page, build)}
      <Pager path={path} query={{ cursor }} cursor={writeCauseCursor(page.last)} />
      {taskTable(execution.tasks)}
    </>
  );
  return { title: `${title} · ${projectName}`, body, isShared: true };
}

function executionMeta(projectName: string, build: ExecutionSummary, { pullRequest }: ExecutionRow, now: Date): Html {
  const at = build.completedAt ?? build.startedAt ?? build.createdAt;
  return (
    <div class="meta">
      <span>
        <b>{projectName}</b> {executionName(build)}
      </span>
      {lineName(build) === null ? null : <code>{lineName(build)}</code>}
      {build.commit === null ? null : <Commit hash={build.commit} />}
      {pullRequest === null ? null : <span>pull request {pullRequest}</span>}
      {countsOf(build) === null ? null : <span>{countsOf(build)}</span>}
      <span>
        {hasEnded(build.status as ExecutionRow["status"]) ? "ended" : "began"} <Ago at={at} now={now} />
      </span>
    </div>
  );
}

function failureList({ causes, totals }: CausePage, { failed }: ExecutionSummary): Piece {
  if (causes.length === 0) return null;
  const all = Object.values(totals).reduce((sum, number) => sum + number, 0);
  const part = all > causes.length ? `${toCount(causes.length)} of ` : "";
  return (
    <>
      <h2>
        Failures by cause{" "}
        <small>
          {part}
          {counted(all, "cause")}, {counted(failed, "failure")}
        </small>
      </h2>
      <div class="card">{causes.map(causeItem)}</div>
    </>
  );
}

const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * Returns the texts of a failure without information for members only. A case that stands for the exit code of a runner has
 * none, because its message is what the runner says. Keys inside texts are masked.
 */
const publicTextOf = ({ message, stack, isStandIn }: CauseMember) =>
  isStandIn
    ? { message: null, stack: null }
    : {
        message: message === null ? null : maskKeys(message),
        stack: stack === null ? null : maskKeys(stack),
      };
