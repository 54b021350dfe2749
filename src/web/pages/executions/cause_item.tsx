/** A cause of failures: a line that expands to the evidence of the first failure and the list of all. */

import type { Html, Piece } from "../../../http/html.ts";
import type { CauseFailures } from "../../../operations/executions/failures.ts";
import { ownFrames } from "../../../rules/stack.ts";
import type { Blame } from "../../../schema/failures.ts";
import type { JoinedBug } from "../../../schema/known_bugs.ts";
import type { CaseAttachmentRow } from "../../../store/attachments.ts";
import type { ListedCommit } from "../../../store/commits.ts";
import type { FailureEvidence } from "../../../store/failures.ts";
import type { PassAtCommit } from "../../../store/same_commit.ts";
import { shownCaseTitle, shownTaskTitle } from "../../../wording/case_title.ts";
import { failureReason } from "../../../wording/failure_reason.ts";
import { firstPlainLine } from "../../../wording/first_line.ts";
import { joinedBugTitle, knownBugMention } from "../../../wording/known_bug.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { listWords, ranOnWords } from "../../../wording/machines.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { bugWords, onlyWithWords, ownerWords, sinceWords } from "../../../wording/why.ts";
import { Attachments } from "../../components/attachments.tsx";
import { BRIEF, Evidence, FULL, History } from "../../components/failure.tsx";
import { Mark, Tag, wordOf } from "../../components/status.tsx";
import { Ago, Breakable, Commit, CommitText, External } from "../../components/text.tsx";
import { bugPath, executionPath, taskPath, testPath, toAddress } from "../../site/paths.ts";

export const SECTIONS: Record<
  string,
  { title: (defaultBranch: string) => string; hint: string; mark: string; tag: string }
> = {
  new: {
    title: () => "New failures",
    hint: "not explained by the baseline, the default branch or the tests' history",
    mark: "failed",
    tag: "new",
  },
  unclear: {
    title: () => "Unclear",
    hint: "no gate forgives them and nobody is blamed; a rerun tells",
    mark: "failed",
    tag: "unclear",
  },
  main: {
    title: (branch) => `Also failing on ${branch}`,
    hint: "not caused by this build",
    mark: "failed",
    tag: "on main",
  },
  still: { title: () => "Still failing", hint: "also failed in the baseline", mark: "failed", tag: "still failing" },
  flaky: {
    title: () => "Known flaky",
    hint: "they fail occasionally without a code change",
    mark: "flaky",
    tag: "flaky",
  },
  incident: {
    title: () => "Incident",
    hint: "a cause outside the code, in many tests at once or by an infrastructure rule",
    mark: "failed",
    tag: "incident",
  },
  quarantined: { title: () => "Quarantined", hint: "not counted", mark: "skipped", tag: "quarantined" },
  none: { title: () => "Failures", hint: "not attributed", mark: "failed", tag: "failed" },
};

/** Number of causes with full evidence. */
const CAUSES_WITH_EVIDENCE = 12;

export const blameOf = ({ blame }: { blame: Blame | null }) => blame ?? "none";

export type CauseContext = {
  projectId: string;
  executionId: string;
  defaultBranch: string;
  isLive: boolean;
  /** The machine with all failures of the execution, where it is known. */
  failingHost: string | undefined;
  now: Date;
};

type Failure = CauseFailures["failures"][number];

type FailureDetails = {
  evidence: FailureEvidence | undefined;
  files: readonly CaseAttachmentRow[];
  /** Its pass in another execution of the commit. */
  pass: PassAtCommit | undefined;
  /** The commits between the last pass and the first failure, newest first; empty: unknown. */
  commits: readonly ListedCommit[];
};

type CauseProperties = {
  cause: CauseFailures;
  first: Failure;
  firstLine: string;
  owners: readonly string[];
  /** The host of all failures, if they have the same one. */
  onlyHost: string | null;
  /** Whether the failures began in an earlier execution. */
  isOld: boolean;
  context: CauseContext;
} & Omit<FailureDetails, "files">;

const isSingle = ({ failed }: CauseFailures): boolean => failed === 1;

const testsOf = ({ failed }: CauseFailures): string => `${toCount(failed)} tests`;

export function causeItem(
  cause: CauseFailures,
  index: number,
  context: CauseContext,
  { files, ...details }: FailureDetails,
): Html {
  const { evidence } = details;
  const [first] = cause.failures;
  const firstLine = firstPlainLine(first.message) || firstPlainLine(first.stack);
  const hosts = [...new Set(cause.failures.map(({ host }) => host))];
  const properties: CauseProperties = {
    ...{ cause, first, firstLine, ...details, context },
    owners: [...new Set(cause.failures.flatMap((failure) => failure.owners))],
    // The hosts of failures that are not listed are unknown.
    onlyHost: hosts.length === 1 && cause.failures.length === cause.failed ? hosts[0]! : (context.failingHost ?? null),
    isOld: Boolean(evidence?.sinceExecutionId && evidence.sinceExecutionId !== context.executionId),
  };
  const { projectId, executionId } = context;
  const measure = index < CAUSES_WITH_EVIDENCE ? FULL : BRIEF;
  // The first cause is open. On a live page the reader's choice is kept.
  const isOpen = index === 0 && !context.isLive;
  const id = `c${first.testCaseId.slice(-8)}-${first.runId.slice(-6)}`;
  const whole = toAddress(taskPath(projectId, executionId, first.taskSlug), { case: first.testCaseId });
  return (
    <details class="failure" id={id} open={isOpen}>
      <CauseSummary id={context.isLive ? `${id}s` : undefined} {...properties} />
      <div class="evidence beside">
        <div>
          <CauseFacts {...properties} />
          <p class="small">
            <a href={whole}>Open full result</a>
          </p>
        </div>
        <div class="stack">
          <Evidence failure={{ ...first, output: evidence?.output ?? null }} measure={measure} title={firstLine} />
          <Attachments projectId={projectId} files={files} />
        </div>
      </div>
    </details>
  );
}

/** Returns the label of a cause: "new", "flaky 3 of 25", "on main". */
function badgeOf({ blame, evidence }: Failure, defaultBranch: string): string {
  if (blame === "flaky" && evidence !== null) return `flaky ${evidence.failed} of ${evidence.results}`;
  return blame === "main" ? `on ${defaultBranch}` : SECTIONS[blameOf({ blame })]!.tag;
}

function subtitlesOf({ cause, first, firstLine, owners, onlyHost, isOld, evidence }: CauseProperties): Piece[] {
  const own = ownFrames(first.stack ?? "")[0];
  return [
    isSingle(cause) ? firstLine || null : testsOf(cause),
    own ? (
      <code>
        <Breakable text={[own.file, own.function].filter(Boolean).join(" ")} />
      </code>
    ) : null,
    onlyWithWords(cause.failures),
    ownerWords(owners),
    onlyHost === null ? null : ["on ", <Breakable text={onlyHost} />],
    isOld ? sinceWords(evidence!.sinceAt) : null,
    cause.bug === null ? null : cause.bug.known ? knownBugMention(cause.bug.number) : bugWords(cause.bug.number),
  ].filter((piece) => piece !== null);
}

function CauseSummary(properties: CauseProperties & { id: string | undefined }): Html {
  const { id, cause, first, firstLine, evidence, context } = properties;
  const { mark } = SECTIONS[blameOf(first)]!;
  return (
    <summary id={id}>
      <span>
        <Mark status={mark} />
      </span>
      <span class="long">
        {isSingle(cause) || firstLine === "" ? shownCaseTitle(first) : firstLine}
        <span class="small soft dots">
          {subtitlesOf(properties).map((piece) => (
            <span>{piece}</span>
          ))}
        </span>
      </span>
      <span>{evidence?.letters ? <History letters={evidence.letters} /> : null}</span>
      <span>
        <Tag kind={mark === "skipped" ? "" : mark}>{badgeOf(first, context.defaultBranch)}</Tag>
      </span>
    </summary>
  );
}

/** Maximum number of tests that are listed without being folded. */
const MAX_UNFOLDED_TESTS = 3;

/** Names another execution of the commit in which the test passed, and the machines there and here. */
function SameCommit({ pass, first, cause, onlyHost, context: { projectId } }: CauseProperties): Html | null {
  if (pass === undefined) return null;
  const here = isSingle(cause) ? first.host : onlyHost;
  return (
    <p class="small">
      {isSingle(cause) ? "It passed" : `${shownCaseTitle(first)} passed`} at this commit in{" "}
      <a href={executionPath(projectId, pass.executionId)}>
        {executionName({ key: pass.key, number: pass.executionNumber, branch: pass.branch })}
      </a>
      {ranOnWords(pass.hosts)}
      {here === null ? null : `; it failed here on ${here}`}.
    </p>
  );
}

/** Maximum number of commits that are listed without being folded. */
const MAX_UNFOLDED_COMMITS = 3;

/** Lists the commits between the last pass and the first failure, with their authors. */
function Changes({ commits }: { commits: readonly ListedCommit[] }): Html | null {
  if (commits.length === 0) return null;
  const authors = [...new Set(commits.map(({ author }) => author))].filter(Boolean);
  const list = (
    <ul class="plain">
      {commits.map(({ hash, subject, author }) => (
        <li>
          <Commit hash={hash} /> <CommitText of={{ commitSubject: subject, commitAuthor: author }} />
        </li>
      ))}
    </ul>
  );
  const title = `${counted(commits.length, "commit")} between its last pass and its first failure`;
  return commits.length <= MAX_UNFOLDED_COMMITS ? (
    <>
      <h3>{title}</h3>
      {list}
    </>
  ) : (
    <details class="bare">
      <summary>
        {title}, by {listWords(authors)}
      </summary>
      {list}
    </details>
  );
}

function CauseFacts(properties: CauseProperties): Html {
  const { cause, first, isOld, evidence, context } = properties;
  const { projectId, executionId, defaultBranch, now } = context;
  const rest = cause.failed - cause.failures.length;
  const why = failureReason(first, defaultBranch);
  const tests = (
    <ul class="plain">
      {cause.failures.map((failure) => (
        <FailureItem failure={failure} {...properties} />
      ))}
      {rest > 0 ? (
        <li>
          <a href={`${taskPath(projectId, executionId, first.taskSlug)}?status=failed`}>and {toCount(rest)} more</a>
        </li>
      ) : null}
    </ul>
  );
  return (
    <>
      {why === null ? null : (
        <p class="small">
          {why}. {first.ruleUrl === null ? null : <External href={first.ruleUrl} of={<>About this rule</>} />}
        </p>
      )}
      <SameCommit {...properties} />
      <Changes commits={properties.commits} />
      {cause.failed <= MAX_UNFOLDED_TESTS ? (
        tests
      ) : (
        <details class="bare">
          <summary>{testsOf(cause)}</summary>
          {tests}
        </details>
      )}
      {isOld ? (
        <p class="small">
          Failing since{" "}
          <a href={executionPath(projectId, evidence!.sinceExecutionId!)}>
            {evidence!.sinceAt === null ? "an earlier execution" : <Ago at={evidence!.sinceAt} now={now} />}
          </a>
          {evidence!.sinceCommit === null ? null : [", ", <Commit hash={evidence!.sinceCommit} />]}
        </p>
      ) : null}{" "}
      {cause.bug === null ? null : <JoinedBugFacts projectId={projectId} bug={cause.bug} />}
    </>
  );
}

const JoinedBugFacts = ({ projectId, bug }: { projectId: string; bug: JoinedBug }): Html => (
  <p class="small">
    <a href={bugPath(projectId, bug.id)}>{joinedBugTitle(bug)}</a> <Tag>{wordOf(bug.status)}</Tag>
    {bug.culprit === null ? null : (
      <>
        <br />
        <a href={`${bugPath(projectId, bug.id)}#culprit`}>{bug.culprit.summary}</a>
      </>
    )}
  </p>
);

/** A test that failed. It says what differs from the other failures of the cause. */
const FailureItem = ({
  failure,
  cause,
  first,
  owners,
  onlyHost,
  context,
}: CauseProperties & { failure: Failure }): Html => (
  <li>
    <a href={testPath(context.projectId, failure.testCaseId)}>
      {isSingle(cause) ? "Test history" : <Breakable text={shownTaskTitle(failure)} />}
    </a>
    {failure.file === null
      ? null
      : [
          " ",
          <code class="soft">
            <Breakable text={failure.file} />
            {failure.line === null ? null : `:${failure.line}`}
          </code>,
        ]}
    {blameOf(failure) === blameOf(first) ? null : [" ", <Tag>{SECTIONS[blameOf(failure)]!.tag}</Tag>]}
    {failure.owners.length === 0 || owners.length === failure.owners.length
      ? null
      : [" ", <span class="soft">{failure.owners.join(", ")}</span>]}
    {failure.host === null || failure.host === onlyHost
      ? null
      : [
          " ",
          <span class="soft">
            on <Breakable text={failure.host} />
          </span>,
        ]}
  </li>
);
