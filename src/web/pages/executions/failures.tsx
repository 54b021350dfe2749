/** The failures of an execution by cause, in sections by blame. */

import type { Html, Path, Piece } from "../../../http/html.ts";
import type { CauseFailures } from "../../../operations/executions/failures.ts";
import { ownFrames } from "../../../rules/stack.ts";
import type { Blame } from "../../../schema/failures.ts";
import type { FailureEvidence } from "../../../store/failures.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { sumOf } from "../../../wording/execution.ts";
import { failureReason } from "../../../wording/failure_reason.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { BRIEF, Evidence, FULL, History } from "../../components/failure.tsx";
import { firstPlainLine } from "../../../wording/first_line.ts";
import { bugWords, ownerWords, sinceWords } from "../../../wording/why.ts";
import { Mark, Tag, wordOf } from "../../components/status.tsx";
import { Ago, Breakable, Commit, toPercent } from "../../components/text.tsx";
import { bugPath, executionPath, taskPath, testPath, toAddress } from "../../site/paths.ts";
import type { ExecutionView } from "./meta.tsx";
import { type Failures, keyOf } from "./read_failures.ts";

const SECTIONS: Record<string, { title: (defaultBranch: string) => string; hint: string; mark: string; tag: string }> =
  {
    new: {
      title: () => "New failures",
      hint: "not explained by the baseline, the default branch or the tests' history",
      mark: "failed",
      tag: "new",
    },
    main: {
      title: (branch) => `Also failing on ${branch}`,
      hint: "not caused by this build",
      mark: "failed",
      tag: "on main",
    },
    still: { title: () => "Still failing", hint: "also failed in the baseline", mark: "failed", tag: "still" },
    flaky: {
      title: () => "Known flaky",
      hint: "they fail occasionally without a code change",
      mark: "flaky",
      tag: "flaky",
    },
    incident: {
      title: () => "Incident",
      hint: "many tests failed at once because of a cause outside the code",
      mark: "failed",
      tag: "incident",
    },
    quarantined: { title: () => "Quarantined", hint: "not counted", mark: "skipped", tag: "quarantined" },
    none: { title: () => "Failures", hint: "not attributed", mark: "failed", tag: "failed" },
  };

/** Number of causes with full evidence. */
const CAUSES_WITH_EVIDENCE = 12;

const blameOf = ({ blame }: { blame: Blame | null }) => blame ?? "none";

type CauseContext = { projectId: string; executionId: string; defaultBranch: string; isLive: boolean; now: Date };

function causeItem(
  cause: CauseFailures,
  index: number,
  context: CauseContext,
  evidence: FailureEvidence | undefined,
): Html {
  const { projectId, executionId, now } = context;
  const [first] = cause.failures;
  const kind = blameOf(first);
  const section = SECTIONS[kind]!;
  const firstLine = firstPlainLine(first.message) || firstPlainLine(first.stack);
  const isOne = cause.failed === 1;
  const title = isOne || firstLine === "" ? shownCaseTitle(first) : firstLine;
  const own = ownFrames(first.stack ?? "")[0];
  const owners = [...new Set(cause.failures.flatMap(({ owner }) => owner ?? []))];
  const hosts = [...new Set(cause.failures.map(({ host }) => host))];
  // The hosts of failures that are not listed are unknown.
  const onlyHost = hosts.length === 1 && cause.failures.length === cause.failed ? hosts[0]! : null;
  const tests = `${toCount(cause.failed)} tests`;
  const measure = index < CAUSES_WITH_EVIDENCE ? FULL : BRIEF;
  const isMain = kind === "main";
  const badge =
    kind === "flaky" && first.flakeRate !== null
      ? `flaky ${toPercent(first.flakeRate)}`
      : isMain
        ? `on ${context.defaultBranch}`
        : section.tag;
  const isOld = evidence?.sinceExecutionId && evidence.sinceExecutionId !== executionId;
  const sub: Piece[] = [
    isOne ? firstLine || null : tests,
    own ? (
      <code>
        <Breakable text={[own.file, own.function].filter(Boolean).join(" ")} />
      </code>
    ) : null,
    ownerWords(owners),
    onlyHost === null ? null : (
      <>
        on <Breakable text={onlyHost} />
      </>
    ),
    isOld ? sinceWords(evidence.sinceAt) : null,
    first.bugNumber === null ? null : bugWords(first.bugNumber),
  ].filter((piece) => piece !== null);
  // The first cause is open. On a live page the reader's choice is kept.
  const isOpen = index === 0 && !context.isLive;
  const id = `c${first.testCaseId.slice(-8)}-${first.runId.slice(-6)}`;
  const whole = toAddress(taskPath(projectId, executionId, first.taskSlug), { case: first.testCaseId });
  return (
    <details class="failure" id={id} open={isOpen}>
      <summary id={context.isLive ? `${id}s` : undefined}>
        <span>
          <Mark status={section.mark} />
        </span>
        <span class="long">
          {title}
          <span class="small soft dots">
            {sub.map((piece) => (
              <span>{piece}</span>
            ))}
          </span>
        </span>
        <span>{evidence?.letters ? <History letters={evidence.letters} /> : null}</span>
        <span>
          <Tag kind={section.mark === "skipped" ? "" : section.mark}>{badge}</Tag>
        </span>
      </summary>
      <div class="evidence">
        <Evidence failure={{ ...first, output: evidence?.output ?? null }} measure={measure} title={firstLine} />
        <div>
          {facts(cause, evidence, context)}
          <p class="small">
            <a href={whole}>Open full result</a>
          </p>
        </div>
      </div>
    </details>
  );

  function facts(cause: CauseFailures, evidence: FailureEvidence | undefined, context: CauseContext): Html {
    const rest = cause.failed - cause.failures.length;
    const why = failureReason(first, context.defaultBranch);
    return (
      <>
        {why === null ? null : <p class="small">{why}.</p>}
        {isOne ? null : <h3>{tests}</h3>}
        <ul class="plain">
          {cause.failures.map((failure) => (
            <li>
              <a href={testPath(projectId, failure.testCaseId)}>
                {isOne ? "Test history" : <Breakable text={[failure.taskSlug, shownCaseTitle(failure)].join(" › ")} />}
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
            <a href={executionPath(context.projectId, evidence!.sinceExecutionId!)}>
              {evidence!.sinceAt === null ? "an earlier execution" : <Ago at={evidence!.sinceAt} now={now} />}
            </a>
            {evidence!.sinceCommit === null ? null : (
              <>
                , <Commit hash={evidence!.sinceCommit} />
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

export function failureSections(
  failures: Failures,
  { counts, execution }: ExecutionView,
  context: CauseContext,
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
  const path: Path = executionPath(context.projectId, context.executionId);
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
            {title(context.defaultBranch)}{" "}
            <small>
              {part}
              {counted(total, "cause")}, {counted(tests, "test")} · {hint}
            </small>
          </h2>
          <div class="card">
            {causes.map((cause) => causeItem(cause, index++, context, evidence.get(keyOf(cause.failures[0]))))}
          </div>
        </>
      );
    }),
    next || query.cause_after ? (
      <nav class="pages" aria-label="Pages of failures">
        {query.cause_after ? <a href={path}>First page</a> : null}
        {next ? (
          <a rel="next" href={toAddress(path, { cause_after: next })}>
            Next page
          </a>
        ) : null}
        <span class="hint">
          {toCount(causes.length)} of {counted(all, "cause")} on this page
        </span>
      </nav>
    ) : null,
  ];
}
