/** Executions: the list, and one of them: what broke, is it new, whose is it? */

import { write } from "../../site/write.ts";
import type { AuditAction, NewAuditEntry } from "../../../schema/audit.ts";
import * as v from "valibot";
import { type Html, type Piece, safeUrl, type Path } from "../../../http/html.ts";
import { absent, fail } from "../../../http/problem.ts";
import { cancelExecution, completeExecution, removeExecution } from "../../../operations/executions/executions.ts";
import { isAnswered, rerunEnded } from "../../../operations/executions/reruns.ts";
import { type CauseFailures, type CausePage, readCauses } from "../../../operations/executions/failures.ts";
import { hasEnded } from "../../../rules/execution.ts";
import { executionHeadline, sumOf, type HeadlineWord } from "../../../wording/execution.ts";
import { failureReason } from "../../../wording/failure_reason.ts";
import { taskLine } from "../../../wording/reasons.ts";
import { missingShardsOf, toShardList } from "../../../rules/shards.ts";
import { ownFrames } from "../../../rules/stack.ts";
import type { Blame } from "../../../schema/failures.ts";
import { executionStatus } from "../../../schema/executions.ts";
import { branchName, text, uuid } from "../../../schema/fields.ts";
import { type ComparedRow, selectComparison } from "../../../store/comparisons.ts";
import { type ExecutionRow, type TaskRow } from "../../../store/executions.ts";
import { countFailures, type FailureEvidence, selectFailureEvidence } from "../../../store/failures.ts";
import { selectCaseResults } from "../../../store/case_results.ts";
import type { Sql } from "../../../database/connect.ts";
import { firstIdAt } from "../../../database/moment.ts";
import { selectRunId } from "../../../store/test_runs.ts";
import { selectBuildOrigins } from "../../../store/overview.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import {
  type ExecutionName,
  selectExecution,
  selectExecutionNames,
  selectReruns,
  type TimedExecutionRow,
  selectSummaries,
} from "../../../store/execution_list.ts";
import { bugPath, executionPath, taskPath, testPath, toAddress } from "../../site/paths.ts";
import { ExecutionTable, executionName } from "../../components/execution_table.tsx";
import { causeCursor, readCauseCursor, writeCauseCursor } from "../../components/causes.ts";
import { BRIEF, Evidence, FULL, History, firstPlainLine } from "../../components/failure.tsx";
import { ActionForm, Danger } from "../../components/form.tsx";
import { howToRepeat, rerunsOf } from "./rerun.tsx";
import { type Page, SeeOther, form, page } from "../../site/page.ts";
import { Ago, Breakable, Commit, toDay, toPercent } from "../../components/text.tsx";
import { counted, toCount, toDuration } from "../../../wording/numbers.ts";
import { Mark, Tag, wordOf } from "../../components/status.tsx";
import { Pager } from "../../components/pager.tsx";
import { shareForm } from "../../components/share_parts.tsx";

const PAGE = 30;
const DAY_MS = 86_400_000;

/** Where a filter was left empty, the browser sends it all the same. */
const maybe = <const Schema extends v.GenericSchema<string, string>>(schema: Schema) =>
  v.optional(
    v.union([
      v.pipe(
        v.literal(""),
        v.transform(() => undefined),
      ),
      schema,
    ]),
  );

const day = v.pipe(
  v.string(),
  v.check(
    (text) => /^\d{4}-\d\d-\d\d$/.test(text) && Number.isFinite(Date.parse(text)),
    "expected a day as 2026-01-31",
  ),
);

const listQuery = v.strictObject({
  q: maybe(text(200)),
  branch: maybe(branchName),
  status: maybe(executionStatus),
  environment: maybe(text(200)),
  day: maybe(day),
  cursor: v.optional(uuid),
});

const STATUSES = ["running", "queued", "failed", "passed", "timed_out", "cancelled"];

// ── One execution in words

const toText = (words: readonly HeadlineWord[]) =>
  words.map((word) => (typeof word === "string" ? word : word.text)).join("");
const toHtml = (words: readonly HeadlineWord[]) =>
  words.map((word): Piece => (typeof word === "string" ? word : <a href={word.href}>{word.text}</a>));

/** Long keys are for machines. */
export function shortNameOf(name: ExecutionName): string {
  const long = executionName(name);
  return long.length <= 24 ? long : (name.commit?.slice(0, 7) ?? toDay(name.createdAt));
}

export type ExecutionView = {
  projectId: string;
  execution: TimedExecutionRow;
  counts: Partial<Record<Blame, number>>;
  baseline: HeadlineWord | null;
  defaultBranch: string;
  /** Only where exactly one test is flaky. */
  flakyTestId: string | undefined;
};

/** "2 flaky", with a link to the flaky results of the first task that has any; one alone is linked to itself. */
function flakyWord({ projectId, execution, flakyTestId }: ExecutionView): HeadlineWord {
  const { id, tasks } = execution;
  const text = `${toCount(sumOf(tasks, "flaky"))} flaky`;
  const task = tasks.find(({ flaky }) => flaky > 0);
  if (!task) return text;
  const filter = flakyTestId === undefined ? { status: "flaky" } : { case: flakyTestId };
  return { text, href: toAddress(taskPath(projectId, id, task.slug), filter) };
}

/** The id of the only flaky test of an execution; undefined if there are none or several. */
async function findFlakyTest(sql: Sql, projectId: string, { id, tasks }: ExecutionRow): Promise<string | undefined> {
  const task = tasks.find(({ flaky }) => flaky > 0);
  if (!task || sumOf(tasks, "flaky") !== 1) return undefined;
  const runId = await selectRunId(sql, projectId, id, task.slug);
  if (runId === undefined) return undefined;
  const [row] = await selectCaseResults(sql, projectId, runId, { limit: 1, flaky: true });
  return row?.testCaseId;
}

const TRIGGERS: Record<string, string> = {
  automation: "by an automation",
  schedule: "by a schedule",
  api: "by the API",
  upload: "",
  rerun: "",
};

function metaOf(projectId: string, told: ExecutionView, names: ReadonlyMap<string, ExecutionName>, now: Date): Piece[] {
  const { execution, counts } = told;
  const { tasks, rerunOf, baselineId, durationMs, machineTimeMs } = execution;
  const [passed, recovered, skipped] = [sumOf(tasks, "passed"), sumOf(tasks, "flaky"), sumOf(tasks, "skipped")];
  const { flaky = 0, quarantined = 0, incident = 0 } = counts;
  const link = (id: string) => {
    const name = names.get(id);
    return name ? <a href={executionPath(projectId, id)}>{shortNameOf(name)}</a> : "one that was deleted";
  };
  const baseline = baselineId === null ? undefined : names.get(baselineId);
  const baselineName = baseline ? shortNameOf(baseline) : "its baseline";
  const build = safeUrl(execution.buildUrl);
  const at = execution.completedAt ?? execution.startedAt ?? execution.createdAt;
  const [ended, isOver] = [execution.completedAt !== null, hasEnded(execution.status)];
  const isGreen = execution.status === "passed";
  return [
    <span>
      <b>{executionName(execution)}</b>
      {execution.sample ? (
        <>
          {" "}
          <Tag>sample</Tag>
        </>
      ) : null}
    </span>,
    execution.branch === null ? null : <code>{execution.branch}</code>,
    execution.commit === null ? null : <Commit hash={execution.commit} />,
    execution.pullRequest === null ? null : <span>pull request {execution.pullRequest}</span>,
    execution.environment === null ? null : <span>on {execution.environment}</span>,
    !isGreen && passed > 0 ? (
      <span>
        {toCount(passed)} passed{durationMs > 0 ? ` in ${toDuration(durationMs)}` : ""}
      </span>
    ) : null,
    !isGreen && recovered > 0 ? <span>{toHtml([flakyWord(told)])}</span> : null,
    skipped > 0 ? <span>{toCount(skipped)} skipped</span> : null,
    machineTimeMs !== durationMs ? <span>{toDuration(machineTimeMs)} of machine time</span> : null,
    isOver && flaky > 0 && (counts.new ?? 0) > 0 ? <span>{toCount(flaky)} known flaky failed</span> : null,
    isOver && incident > 0 && (counts.new ?? 0) > 0 ? <span>{toCount(incident)} failed in an incident</span> : null,
    isOver && quarantined > 0 && !isGreen ? <span>{toCount(quarantined)} quarantined, not counted</span> : null,
    rerunOf === null ? null : <span>repeats {link(rerunOf)}</span>,
    TRIGGERS[execution.trigger] ? <span>{TRIGGERS[execution.trigger]}</span> : null,
    baselineId === null ? null : (
      <a href={`${executionPath(projectId, execution.id)}/comparison`}>compare with {baselineName}</a>
    ),
    build ? (
      <a href={build} rel="noreferrer">
        build
      </a>
    ) : null,
    <span>
      {ended ? "ended " : execution.startedAt === null ? "created " : "began "}
      <Ago at={at} now={now} />
    </span>,
  ];
}

// ── What can be done

type Doing = {
  projectId: string;
  base: Path;
  publicUrl: string;
  csrf: string;
  role: string;
  execution: ExecutionRow;
  share: Html | null;
  /** Somebody would run its tasks again. */
  isAnswered: boolean;
};

function actionsOf({ base, csrf, role, execution, share, ...more }: Doing): Html | null {
  const { status, mode, tasks } = execution;
  if (role === "viewer") return null;
  const red = tasks.filter(({ verdict, status }) => verdict !== "passed" || status === "timed_out");
  const failed = sumOf(tasks, "failed");
  // Runners run the tests that failed, everybody else the tasks in which they are.
  const again = mode === "run" && failed > 0 ? `${toCount(failed)} failed` : `${counted(red.length, "failed task")}`;
  const isOver = hasEnded(status);
  const forms = isOver
    ? [
        more.isAnswered && red.length > 0 ? (
          <ActionForm
            action={`${base}/rerun`}
            csrf={csrf}
            label={`Rerun ${again}`}
            kind="main"
            fields={<input type="hidden" name="failedOnly" value="true" />}
          />
        ) : null,
        more.isAnswered ? <ActionForm action={`${base}/rerun`} csrf={csrf} label="Rerun all" /> : null,
      ]
    : [
        <ActionForm action={`${base}/complete`} csrf={csrf} label="Complete" />,
        <ActionForm action={`${base}/cancel`} csrf={csrf} label="Cancel" />,
      ];
  const remove =
    role === "owner" ? (
      <Danger
        action={`${base}/delete`}
        csrf={csrf}
        label="Delete execution"
        loss={`Its ${counted(sumOf(tasks, "passed") + sumOf(tasks, "failed") + sumOf(tasks, "skipped"), "result")}, messages and logs are lost, and what was found by them of flaky tests and bugs is not told from them any more.`}
      />
    ) : null;
  const hint = isOver && tasks.length > 0 && !more.isAnswered ? howToRepeat({ execution, red, ...more }) : null;
  return (
    <>
      <div class="actions">
        {forms}
        {share}
        {remove}
      </div>
      {hint}
    </>
  );
}

// ── Failures by cause

const SECTIONS: Record<string, { title: (defaultBranch: string) => string; hint: string; mark: string; tag: string }> =
  {
    new: {
      title: () => "New failures",
      hint: "neither the baseline nor the default branch nor their own record explains them",
      mark: "failed",
      tag: "new",
    },
    main: {
      title: (branch) => `Also failing on ${branch}`,
      hint: "not this build's doing",
      mark: "failed",
      tag: "on main",
    },
    still: { title: () => "Still failing", hint: "they failed in the baseline", mark: "failed", tag: "still" },
    flaky: { title: () => "Known flaky", hint: "they fail now and then without a change", mark: "flaky", tag: "flaky" },
    incident: {
      title: () => "Incident",
      hint: "many failed at once for a cause outside of the code",
      mark: "failed",
      tag: "incident",
    },
    quarantined: { title: () => "Quarantined", hint: "not counted", mark: "skipped", tag: "quarantined" },
    none: { title: () => "Failures", hint: "nobody is blamed", mark: "failed", tag: "failed" },
  };

/** The number of causes on a page. */
const CAUSES = 25;
/** How many of them have their history, and how many have everything that they say. */
const DEEP = 20;
const WHOLE = 12;
/** The number of tests that are listed for one cause. */
const TESTS = 10;

type Failures = Pick<CausePage, "causes" | "totals"> & {
  evidence: ReadonlyMap<string, FailureEvidence>;
  next: string | undefined;
};

const keyOf = ({ runId, number }: { runId: string; number: number }) => `${runId} ${number}`;

async function readFailures(
  sql: Sql,
  projectId: string,
  executionId: string,
  cursor: string | undefined,
): Promise<Failures> {
  const query = { limit: CAUSES, members: TESTS, total: CAUSES * TESTS, after: readCauseCursor(cursor) };
  const { causes, totals, last } = await readCauses(sql, projectId, executionId, query);
  const heads = causes.map(({ failures }, index) => ({ ...failures[0], deep: index < DEEP }));
  const found = heads.length === 0 ? [] : await selectFailureEvidence(sql, projectId, executionId, heads);
  return { causes, totals, evidence: new Map(found.map((row) => [keyOf(row), row])), next: writeCauseCursor(last) };
}

const blameOf = ({ blame }: { blame: Blame | null }) => blame ?? "none";

type Around = { projectId: string; executionId: string; defaultBranch: string; isLive: boolean; now: Date };

function causeItem(cause: CauseFailures, index: number, around: Around, told: FailureEvidence | undefined): Html {
  const { projectId, executionId, now } = around;
  const [first] = cause.failures;
  const kind = blameOf(first);
  const section = SECTIONS[kind]!;
  const said = firstPlainLine(first.message) || firstPlainLine(first.stack);
  const title = said || shownCaseTitle(first);
  const own = ownFrames(first.stack ?? "")[0];
  const owners = [...new Set(cause.failures.flatMap(({ owner }) => owner ?? []))];
  const hosts = [...new Set(cause.failures.map(({ host }) => host))];
  // Nothing is known of failures that are not listed.
  const onlyHost = hosts.length === 1 && cause.failures.length === cause.failed ? hosts[0]! : null;
  const isOne = cause.failed === 1;
  const tests = `${toCount(cause.failed)} tests`;
  const measure = index < WHOLE ? FULL : BRIEF;
  const isMain = kind === "main";
  const badge =
    kind === "flaky" && first.flakeRate !== null
      ? `flaky ${toPercent(first.flakeRate)}`
      : isMain
        ? `on ${around.defaultBranch}`
        : section.tag;
  const isOld = told?.sinceExecutionId && told.sinceExecutionId !== executionId;
  const sub: Piece[] = [
    said === ""
      ? null
      : isOne
        ? [
            <span>
              <Breakable text={shownCaseTitle(first)} />
            </span>,
          ]
        : tests,
    own ? (
      <code>
        <Breakable text={[own.file, own.function].filter(Boolean).join(" ")} />
      </code>
    ) : null,
    owners.length > 0 ? `owner ${owners.slice(0, 3).join(", ")}` : null,
    onlyHost === null ? null : (
      <>
        on <Breakable text={onlyHost} />
      </>
    ),
    isOld ? <>since {told.sinceAt === null ? "before" : toDay(told.sinceAt)}</> : null,
    first.bugNumber === null ? null : `bug ${first.bugNumber}`,
  ].filter((piece) => piece !== null);
  // The first answer needs no click; live, what is open is the reader's.
  const isOpen = index === 0 && !around.isLive;
  const id = `c${first.testCaseId.slice(-8)}-${first.runId.slice(-6)}`;
  const whole = toAddress(taskPath(projectId, executionId, first.taskSlug), { case: first.testCaseId });
  return (
    <details class="failure" id={id} open={isOpen}>
      <summary id={around.isLive ? `${id}s` : undefined}>
        <span>
          <Mark status={section.mark} />
        </span>{" "}
        <span class="long">
          {title}
          <span class="small soft dots">
            {sub.map((piece) => (
              <span>{piece}</span>
            ))}
          </span>
        </span>{" "}
        <span>{told?.letters ? <History letters={told.letters} /> : null}</span>{" "}
        <span>
          <Tag kind={section.mark === "skipped" ? "" : section.mark}>{badge}</Tag>
        </span>
      </summary>
      <div class="evidence">
        <Evidence said={{ ...first, output: told?.output ?? null }} measure={measure} title={title} />
        <div>
          {facts(cause, told, around)}
          <p class="small">
            <a href={whole}>The whole of it</a>
          </p>
        </div>
      </div>
    </details>
  );

  function facts(cause: CauseFailures, told: FailureEvidence | undefined, around: Around): Html {
    const rest = cause.failed - cause.failures.length;
    const why = failureReason(first, around.defaultBranch);
    return (
      <>
        {why === null ? null : <p class="small">{why}.</p>}
        <h3>{isOne ? "Test" : tests}</h3>
        <ul class="plain">
          {cause.failures.map((failure) => (
            <li>
              <a href={testPath(projectId, failure.testCaseId)}>
                <Breakable text={[failure.taskSlug, shownCaseTitle(failure)].join(" › ")} />
              </a>
              {failure.file === null ? null : (
                <>
                  {" "}
                  <code class="soft">
                    <Breakable text={failure.file} />
                    {failure.line === null ? null : `:${failure.line}`}
                  </code>
                </>
              )}
              {blameOf(failure) === kind ? null : (
                <>
                  {" "}
                  <Tag>{SECTIONS[blameOf(failure)]!.tag}</Tag>
                </>
              )}
              {failure.owner === null || owners.length < 2 ? null : (
                <>
                  {" "}
                  <span class="soft">{failure.owner}</span>
                </>
              )}
              {failure.host === null || failure.host === onlyHost ? null : (
                <>
                  {" "}
                  <span class="soft">
                    on <Breakable text={failure.host} />
                  </span>
                </>
              )}
            </li>
          ))}
          {rest > 0 ? (
            <li>
              <a href={`${taskPath(projectId, executionId, first.taskSlug)}?status=failed`}>and {toCount(rest)} more</a>
            </li>
          ) : null}
        </ul>
        {isOld ? (
          <p class="small">
            Failing since{" "}
            <a href={executionPath(around.projectId, told!.sinceExecutionId!)}>
              {told!.sinceAt === null ? "an earlier execution" : <Ago at={told!.sinceAt} now={now} />}
            </a>
            {told!.sinceCommit === null ? null : (
              <>
                , <Commit hash={told!.sinceCommit} />
              </>
            )}
          </p>
        ) : null}{" "}
        {first.bugId === null ? null : (
          <p class="small">
            <a href={bugPath(projectId, first.bugId)}>
              Bug {first.bugNumber}: {first.bugTitle}
            </a>{" "}
            <Tag>{wordOf(first.bugStatus!)}</Tag>
          </p>
        )}
      </>
    );
  }
}

type Section = { kind: string; causes: CauseFailures[] };

function failureSections(
  failures: Failures,
  { counts, execution }: ExecutionView,
  around: Around,
  query: { cause_after?: string | undefined },
): Piece[] {
  const { causes, totals, evidence, next } = failures;
  const failed = sumOf(execution.tasks, "failed");
  if (causes.length === 0) return [];
  const sections = causes.reduce<Section[]>((all, cause) => {
    const kind = blameOf(cause.failures[0]);
    const last = all.at(-1);
    if (last?.kind === kind) last.causes.push(cause);
    else all.push({ kind, causes: [cause] });
    return all;
  }, []);
  let index = 0;
  const path: Path = executionPath(around.projectId, around.executionId);
  const all = Object.values(totals).reduce((sum, number) => sum + number, 0);
  const judged = Object.values(counts).reduce((sum, number) => sum + number, 0);
  return [
    sections.map(({ kind, causes }) => {
      const { title, hint } = SECTIONS[kind]!;
      const tests = kind === "none" ? failed - judged : (counts[kind as Blame] ?? 0);
      const total = totals[kind as Blame | "none"] ?? causes.length;
      const part = total > causes.length ? `${toCount(causes.length)} of ` : "";
      return (
        <>
          <h2>
            {title(around.defaultBranch)}{" "}
            <small>
              {part}
              {counted(total, "cause")}, {counted(tests, "test")} · {hint}
            </small>
          </h2>
          <div class="card">
            {causes.map((cause) => causeItem(cause, index++, around, evidence.get(keyOf(cause.failures[0]))))}
          </div>
        </>
      );
    }),
    next || query.cause_after ? (
      <nav class="pages" aria-label="Pages of failures">
        {query.cause_after ? <a href={path}>The first failures</a> : null}
        {next ? (
          <a rel="next" href={toAddress(path, { cause_after: next })}>
            Further failures
          </a>
        ) : null}
        <span class="hint">
          {toCount(causes.length)} of {counted(all, "cause")} on this page
        </span>
      </nav>
    ) : null,
  ];
}

// ── Tasks

const ORDER = ["timed_out", "incomplete", "failed", "running", "queued", "cancelled", "passed"];
const TASKS = 50;

function taskTable(projectId: string, { id, mode, tasks }: ExecutionRow, showsAll: boolean, now: Date): Piece[] {
  if (tasks.length === 0) return [];
  const worstFirst = tasks.toSorted(
    (a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || b.failed - a.failed || 0,
  );
  const shown = showsAll ? worstFirst : worstFirst.slice(0, TASKS);
  const hasRunners = mode === "run";
  return [
    <>
      <h2>
        Tasks <small>{counted(tasks.length, "task")}</small>
      </h2>
      <div class="card">
        <table>
          <caption class="visually-hidden">Tasks of this execution, the worst first</caption>
          <thead>
            <tr>
              <th scope="col">
                <span class="visually-hidden">Status</span>
              </th>
              <th scope="col">Task</th>
              <th scope="col" class="number">
                Passed
              </th>
              <th scope="col" class="number">
                Failed
              </th>
              <th scope="col" class="number wide">
                Skipped
              </th>
              <th scope="col" class="number">
                Duration
              </th>
              {hasRunners ? (
                <>
                  <th scope="col" class="wide">
                    Runner
                  </th>
                  <th scope="col" class="wide">
                    Log
                  </th>
                </>
              ) : null}
            </tr>
          </thead>
          <tbody>{shown.map((task) => taskRow(projectId, id, task, hasRunners, now))}</tbody>
        </table>
      </div>
    </>,
    shown.length < tasks.length ? (
      <p class="pages">
        <a href={`${executionPath(projectId, id)}?tasks=all`}>All {tasks.length} tasks</a>
      </p>
    ) : null,
  ];
}

export const shardsWord = (task: TaskRow): string | null => {
  if (task.shards === 1) return null;
  return `${task.shards - missingShardsOf(task).length} of ${task.shards} shards`;
};

/** Why a task is not in, or not all of it; null where there is nothing to say. */
export function whyMissing(task: TaskRow): string | null {
  if (hasEnded(task.status)) return taskLine(task) ?? task.reason;
  if (task.reason !== null) return task.reason;
  const missing = missingShardsOf(task);
  return missing.length > 0 && task.attempt > 0 ? `Waits for ${toShardList(missing)}` : null;
}

function taskRow(projectId: string, executionId: string, task: TaskRow, hasRunners: boolean, now: Date): Html {
  const path: Path = taskPath(projectId, executionId, task.slug);
  const shards = shardsWord(task);
  const why = whyMissing(task);
  const isRunning = task.status === "running" && task.startedAt !== null;
  const span = isRunning ? now.getTime() - Date.parse(task.startedAt!) : task.durationMs;
  return (
    <tr>
      <td class="mark-cell">
        <Mark status={task.status} />
      </td>
      <td class="long">
        <a href={path}>
          <Breakable text={task.slug} />
        </a>{" "}
        {shards ? <Tag>{shards}</Tag> : null} {task.attempt > 1 ? <Tag>{`attempt ${task.attempt}`}</Tag> : null}{" "}
        {task.outage ? <Tag kind="failed">outage</Tag> : null}
        {["queued", "running", "cancelled"].includes(task.status) ? (
          <>
            {" "}
            <Tag kind={task.status}>{wordOf(task.status)}</Tag>
          </>
        ) : null}
        {why ? <span class="small soft">{why}</span> : null}
      </td>
      <td class="number">{toCount(task.passed)}</td>
      <td class="number">
        {task.failed > 0 ? (
          <a class="failed" href={`${path}?status=failed`}>
            {toCount(task.failed)}
          </a>
        ) : (
          "0"
        )}
      </td>
      <td class="number soft wide">{toCount(task.skipped)}</td>
      <td class={`number${isRunning ? " running" : ""}`}>{span > 0 ? toDuration(span) : "–"}</td>
      {hasRunners ? (
        <>
          <td class="soft wide">{task.runner ?? "–"}</td>
          <td class="wide">
            {task.runner === null ? (
              "–"
            ) : (
              <a href={`${path}/log`}>
                Log<span class="visually-hidden"> of {task.slug}</span>
              </a>
            )}
          </td>
        </>
      ) : null}
    </tr>
  );
}

// ── Comparison

const COMPARED: Record<string, { title: string; hint: string; mark: string }> = {
  fixed: { title: "Fixed", hint: "passed, and failed there", mark: "passed" },
  new: { title: "New failures", hint: "failed, and nothing explains it", mark: "failed" },
  main: { title: "Also failing on the default branch", hint: "", mark: "failed" },
  still: { title: "Still failing", hint: "failed in both", mark: "failed" },
  flaky: { title: "Known flaky", hint: "failed, and its record explains it", mark: "flaky" },
  incident: { title: "Incident", hint: "failed with many others for a cause outside of the code", mark: "failed" },
  quarantined: { title: "Quarantined", hint: "failed, and not counted", mark: "skipped" },
  added: { title: "Added", hint: "not in the other", mark: "new" },
  missing: { title: "Missing", hint: "only in the other", mark: "skipped" },
};

/** More are told by the API. */
const COMPARED_OF_A_KIND = 40;

function comparedTable(projectId: string, kind: string, rows: readonly ComparedRow[]): Html {
  const { title, hint, mark: shape } = COMPARED[kind]!;
  const total = rows[0]!.total;
  const shown = rows.slice(0, COMPARED_OF_A_KIND);
  return (
    <>
      <h2 id={kind}>
        {title}{" "}
        <small>
          {counted(total, "test")}
          {hint ? `, ${hint}` : ""}
          {total > shown.length ? `; the first ${shown.length}` : ""}
        </small>
      </h2>
      <div class="card">
        <table>
          <caption class="visually-hidden">{title}</caption>
          <thead class="visually-hidden">
            <tr>
              <th scope="col">Kind</th>
              <th scope="col">Test</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr>
                <td class="mark-cell">
                  <Mark status={shape} word={false} />
                </td>
                <td class="long">
                  <span class="soft">
                    <Breakable text={row.taskSlug} /> ›{" "}
                  </span>
                  <a href={testPath(projectId, row.testCaseId)}>
                    <Breakable text={shownCaseTitle(row)} />
                  </a>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

export const executions: Page[] = [
  page(
    "/projects/:projectId/executions",
    { access: "viewer", query: listQuery },
    async ({ sql, project, query, path, now }) => {
      const { q, branch, status, environment, day, cursor } = query;
      // A day is one of UTC; ids begin with their time.
      const start = day === undefined ? undefined : Date.parse(day);
      const end = start === undefined ? undefined : firstIdAt(start + DAY_MS);
      const before = [cursor, end].filter((id) => id !== undefined).toSorted()[0];
      const from = start === undefined ? undefined : firstIdAt(start);
      const [rows, origins] = await Promise.all([
        selectSummaries(sql, project.id, PAGE, { q, branch, status, environment, before, from }),
        selectBuildOrigins(sql, project.id),
      ]);
      const builds = rows.slice(0, PAGE);
      const isFiltered = [q, branch, status, environment, day].some((value) => value !== undefined);
      const what = status ? `${wordOf(status)} executions` : "executions";
      const said = [
        branch ? `of ${branch}` : null,
        environment ? `on ${environment}` : null,
        day ? `on ${toDay(day)}` : null,
      ].filter(Boolean);
      const title = [`${what[0]!.toUpperCase()}${what.slice(1)}`, ...said].join(" ");
      const body = (
        <>
          <h1>{title}</h1>
          <form class="filters" method="get" action={path}>
            <label>
              Key or commit
              <input type="search" name="q" value={q} maxlength={200} />
            </label>{" "}
            <label>
              Branch
              <input name="branch" value={branch} list="branches" maxlength={500} />
            </label>{" "}
            <label>
              Status
              <select name="status">
                <option value="">any</option>
                {STATUSES.map((value) => (
                  <option value={value} selected={value === status}>
                    {wordOf(value)}
                  </option>
                ))}
              </select>
            </label>{" "}
            <label>
              Environment
              <input name="environment" value={environment} list="environments" maxlength={200} />
            </label>{" "}
            <label>
              Day
              <input type="date" name="day" value={day} />
            </label>{" "}
            <button>Filter</button>
            {isFiltered ? (
              <a class="button" href={path}>
                Clear
              </a>
            ) : null}{" "}
            <datalist id="branches">
              {origins.branches.map((name) => (
                <option value={name} />
              ))}
            </datalist>{" "}
            <datalist id="environments">
              {origins.environments.map((name) => (
                <option value={name} />
              ))}
            </datalist>
          </form>
          {builds.length > 0 ? (
            <ExecutionTable projectId={project.id} executions={builds} now={now} caption={title} />
          ) : (
            <div class="card empty">
              {isFiltered ? (
                <>
                  <p>No execution matches.</p>
                  <p>
                    <a class="button" href={path}>
                      Show all
                    </a>
                  </p>
                </>
              ) : (
                <>
                  <p>No report has arrived yet.</p>
                  <p>
                    <a class="button main" href={`/projects/${project.id}/onboarding`}>
                      Send the first one
                    </a>
                  </p>
                </>
              )}
            </div>
          )}{" "}
          <Pager
            path={path}
            query={{ q, branch, status, environment, day, cursor }}
            cursor={rows.length > PAGE ? builds.at(-1)!.id : undefined}
          />
        </>
      );
      return { title, body, section: "executions" };
    },
  ),

  page(
    "/projects/:projectId/executions/:executionId",
    {
      access: "viewer",
      query: v.strictObject({ cause_after: causeCursor, tasks: v.optional(v.literal("all")) }),
    },
    async ({ sql, project, params, query, role, csrf, now, publicUrl }) => {
      const { id: projectId, defaultBranch } = project;
      const { executionId } = params;
      const [found, counts, failures] = await Promise.all([
        selectExecution(sql, projectId, executionId),
        countFailures(sql, projectId, executionId),
        readFailures(sql, projectId, executionId, query.cause_after),
      ]);
      const execution = found ?? absent();
      const isOver = hasEnded(execution.status);
      const [names, reruns, canRepeat] = await Promise.all([
        selectExecutionNames(sql, projectId, [execution.baselineId, execution.rerunOf]),
        isOver && execution.buildId === null ? selectReruns(sql, projectId, executionId) : [],
        isOver && role !== "viewer" && isAnswered(sql, projectId, execution),
      ]);
      const baseline = execution.baselineId === null ? undefined : names.get(execution.baselineId);
      const told: ExecutionView = {
        projectId,
        execution,
        counts,
        flakyTestId: await findFlakyTest(sql, projectId, execution),
        baseline: baseline ? { text: shortNameOf(baseline), href: executionPath(projectId, baseline.id) } : null,
        defaultBranch,
      };
      const words = executionHeadline({ ...told, flaky: flakyWord(told) });
      const isLive = !hasEnded(execution.status);
      const base: Path = executionPath(projectId, executionId);
      const around = { projectId, executionId, defaultBranch, isLive, now };
      const body = (
        <>
          <div data-region="state">
            <h1>
              <Mark status={execution.status} word={false} /> {toHtml(words)}
            </h1>
            <div class="meta">
              {metaOf(projectId, told, names, now)}
              {rerunsOf(projectId, execution, reruns)}
            </div>
            {actionsOf({
              ...{ projectId, base, publicUrl, csrf, role, execution },
              share: shareForm({ csrf, role, project, params }),
              isAnswered: canRepeat,
            })}
          </div>
          <div data-region="failures">{failureSections(failures, told, around, query)}</div>
          <div data-region="tasks">{taskTable(projectId, execution, query.tasks === "all", now)}</div>
          {execution.tasks.length === 0 && !isLive ? (
            <div class="card empty">
              <p>No report has come of it.</p>
            </div>
          ) : null}{" "}
          {execution.tasks.length === 0 && isLive ? (
            <div class="card empty" data-region="waiting">
              <p>It waits for its first report.</p>
            </div>
          ) : null}
        </>
      );
      return {
        title: `${toText(words)} · ${shortNameOf(execution)}`,
        body,
        section: "executions",
        ...(isLive ? { live: `${base}/live` } : {}),
      };
    },
  ),

  page(
    "/projects/:projectId/executions/:executionId/comparison",
    { access: "viewer", query: v.strictObject({ baseline: maybe(uuid) }) },
    async ({ sql, project, params, query, path, now }) => {
      const { id: projectId, defaultBranch } = project;
      const { executionId } = params;
      const [found, offered] = await Promise.all([
        selectExecution(sql, projectId, executionId),
        selectSummaries(sql, projectId, 20, { branch: defaultBranch, before: executionId }),
      ]);
      const mine = found ?? absent();
      const baselineId = query.baseline ?? mine.baselineId;
      const [names, rows] = await Promise.all([
        selectExecutionNames(sql, projectId, [baselineId]),
        selectComparison(sql, projectId, executionId, query.baseline),
      ]);
      const baseline = baselineId === null ? undefined : names.get(baselineId);
      if (query.baseline !== undefined && !baseline)
        fail("VALIDATION_ERROR", `There is no execution "${query.baseline}" in this project`);
      const byKind = Map.groupBy(rows, ({ kind }) => kind as string);
      const kinds = Object.keys(COMPARED).filter((kind) => byKind.has(kind));
      const other = baseline ? shortNameOf(baseline) : "nothing";
      const title = `${shortNameOf(mine)} compared with ${other}`;
      const said = kinds.map(
        (kind) => `${toCount(byKind.get(kind)![0]!.total)} ${COMPARED[kind]!.title.toLowerCase()}`,
      );
      const options = offered.slice(0, 20).map(({ id, key, createdAt, status }) => {
        const label = `${executionName({ key, createdAt })}, ${wordOf(status)}`;
        return (
          <option value={id} selected={id === baselineId}>
            {label}
          </option>
        );
      });
      const isOffered = offered.slice(0, 20).some(({ id }) => id === baselineId);
      const body = (
        <>
          <h1>{said.length === 0 ? "Nothing has changed" : said.slice(0, 3).join(", ")}</h1>
          <div class="meta">
            <span>
              <a href={executionPath(projectId, executionId)}>
                <b>{shortNameOf(mine)}</b>
              </a>{" "}
              compared with{" "}
              {baseline ? (
                <a href={executionPath(projectId, baseline.id)}>{other}</a>
              ) : (
                "nothing: there was no execution to compare with when it began"
              )}
            </span>
            {baseline ? (
              <span>
                <Ago at={baseline.createdAt} now={now} />
              </span>
            ) : null}
          </div>
          <form class="filters" method="get" action={path}>
            <label>
              Compare with
              <select name="baseline">
                <option value="">its baseline</option>
                {isOffered || !query.baseline || !baseline ? null : (
                  <option value={baseline.id} selected>
                    {executionName(baseline)}
                  </option>
                )}
                {options}
              </select>
            </label>
            <button>Compare</button>
          </form>
          {kinds.map((kind) => comparedTable(projectId, kind, byKind.get(kind)!))}{" "}
          {kinds.length === 0 ? (
            <div class="card empty">
              <p>The same tests, with the same outcome.</p>
            </div>
          ) : null}
        </>
      );
      return { title, body, section: "executions" };
    },
  ),

  form(
    "/projects/:projectId/executions/:executionId/rerun",
    { access: "member", fields: v.strictObject({ failedOnly: v.optional(v.literal("true")) }) },
    async (context) => {
      const { project, params, fields, publicUrl } = context;
      const failedOnly = fields.failedOnly === "true";
      const asked = { failedOnly, teamId: project.teamId, publicUrl, now: new Date() };
      const id = await write(
        context,
        "member",
        (sql) => rerunEnded(sql, project.id, params.executionId, asked),
        (rerun) => ({
          action: "execution.rerun",
          subject: params.executionId,
          details: { projectId: project.id, rerun, failedOnly },
        }),
      );
      return new SeeOther(executionPath(project.id, id));
    },
  ),

  form("/projects/:projectId/executions/:executionId/complete", { access: "member" }, async (context) => {
    const { project, params } = context;
    await write(
      context,
      "member",
      (sql) => completeExecution(sql, project.id, params.executionId, new Date()),
      toEntry("execution.completed", project),
    );
    return new SeeOther(executionPath(project.id, params.executionId));
  }),

  form("/projects/:projectId/executions/:executionId/cancel", { access: "member" }, async (context) => {
    const { project, params } = context;
    await write(
      context,
      "member",
      (sql) => cancelExecution(sql, project.id, params.executionId, new Date()),
      toEntry("execution.cancelled", project),
    );
    return new SeeOther(executionPath(project.id, params.executionId));
  }),

  form("/projects/:projectId/executions/:executionId/delete", { access: "owner" }, async (context) => {
    const { project, params } = context;
    await write(
      context,
      "owner",
      async (sql) => (await removeExecution(sql, project.id, params.executionId)) || absent(),
      toEntry("execution.deleted", project),
    );
    return new SeeOther(`/projects/${project.id}/executions`);
  }),
];

const toEntry =
  (action: AuditAction, { id: projectId }: { id: string }) =>
  ({ id, key }: { id: string; key: string | null }): NewAuditEntry => ({
    action,
    subject: key ?? id,
    details: { projectId, executionId: id },
  });
