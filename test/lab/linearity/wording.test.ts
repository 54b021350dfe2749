/** Sentences hold texts of test frameworks, runners and people: writing one takes linear time. */

import type { TaskEnd } from "../../../src/rules/red_reason.ts";
import { drawBadge, widthOf } from "../../../src/wording/badge.ts";
import { caseTitle, shownCaseTitle, shownTaskTitle } from "../../../src/wording/case_title.ts";
import { culpritSentence } from "../../../src/wording/culprit.ts";
import { toDigestNotice } from "../../../src/wording/digest.ts";
import { executionLine } from "../../../src/wording/execution.ts";
import { executionName, executionNumber, shortExecutionName } from "../../../src/wording/execution_name.ts";
import { gateHeadline, gateLines, gateSummary, taskGateReasons } from "../../../src/wording/gate.ts";
import { firstLineOf, firstPlainLine, messageLineOf } from "../../../src/wording/first_line.ts";
import { joinedBugLine, joinedBugTitle } from "../../../src/wording/known_bug.ts";
import { toNotice } from "../../../src/wording/notification.ts";
import { quarantineReason } from "../../../src/wording/quarantine_reason.ts";
import { executionReason, taskLine, taskReason } from "../../../src/wording/reasons.ts";
import { toRunLine } from "../../../src/wording/run_line.ts";
import { toFormMessage, toLabel } from "../../../src/wording/field_problem.ts";
import { slowerLine } from "../../../src/wording/slower.ts";
import { singleLine } from "../../../src/wording/single_line.ts";
import { blamePhrase, bugLines, causeTitle, onlyWithWords, ownerWords } from "../../../src/wording/why.ts";
import type { Digest } from "../../../src/schema/digest.ts";
import { testLinearity } from "./growth.ts";

const caseOf = (text: string) => ({ suite: text, name: text, file: text });

const bugOf = (text: string) => ({
  ...{ id: "b", number: 1, title: text, status: "open" as const, known: true, failed: 1 },
  culprit: { searchId: "s", commit: text, author: text, summary: text },
});

const digestOf = (text: string): Digest => {
  const none = { count: 1, before: 0 };
  const test = { testCaseId: "c", taskSlug: text, suite: text, name: text, file: text, url: text };
  return {
    ...{ since: "2026-01-24T09:00:00.000Z", until: "2026-01-31T09:00:00.000Z", owners: [text] },
    flaky: {
      ...none,
      became: [{ ...test, failed: 1, results: 9 }],
      becameCount: 1,
      recovered: [test],
      recoveredCount: 1,
    },
    bugs: {
      ...{ opened: none, resolved: none, open: 1 },
      oldest: [{ number: 1, title: text, createdAt: "2026-01-24T09:00:00.000Z", url: text }],
    },
    slower: [{ ...test, runs: 2, durationMs: 9, usualMs: 1 }],
    slowest: [{ ...test, p95Ms: 9 }],
    builds: null,
  };
};

const LOST_TASK: TaskEnd = {
  ...{ slug: "e2e", status: "timed_out", attempt: 0, shards: 1, namedShards: [], completedAt: null, failed: 0 },
  ...{ verdict: null, reason: null, flaws: null },
};

const gateOf = (text: string) => ({
  ...{ gate: "new" as const, pass: false, reasons: [text], forgivenCount: 1 },
  forgiven: [{ suite: text, name: text, reason: text }],
  unclear: [{ suite: text, name: text, reason: text }],
});

const project = { id: "p", name: "shop", defaultBranch: "main" };
const tellOf = (text: string) =>
  ({
    type: "execution.failed",
    teamId: "t",
    project: { ...project, name: text },
    data: {
      execution: {
        ...{ id: "e", key: text, branch: text, commit: text, status: "failed", url: text, taskSlugs: [text] },
        ...{
          passed: 1,
          failed: 1,
          skipped: 0,
          total: 2,
          flaky: 0,
          buildUrl: text,
          environment: text,
          pullRequest: "1",
        },
      },
    },
    occurredAt: "2026-01-31T00:00:00.000Z",
    failures: [{ ...caseOf(text), message: text, blame: "unclear", reason: text, owners: [text], knownBug: 1 }],
    knownBugs: [bugOf(text)],
  }) as never;

testLinearity("wording", {
  "badge.ts": { drawBadge: (text) => drawBadge({ label: text, message: text, tone: "good", title: text }), widthOf },
  "absent_tests.ts": { absentKinds: null, absentLines: null, absentWords: null, notRerunWords: null },
  "blame.ts": { blameCountWords: null },
  "case_title.ts": {
    caseTitle: (text) => caseTitle(caseOf(text)),
    shownCaseTitle: (text) => shownCaseTitle(caseOf(text)),
    shownTaskTitle: (text) => shownTaskTitle({ ...caseOf(text), taskSlug: text }),
  },
  "culprit.ts": {
    culpritSentence: (text) => {
      const commit = { hash: text, author: text, date: text, subject: text };
      const end = { commits: [commit, commit, commit], probes: [], isGoodKnown: true };
      culpritSentence({ ...end, verdict: { kind: "culprit", index: 1, chance: 1 } });
      culpritSentence({ ...end, verdict: { kind: "environment", reason: "good_fails", chance: 1 } });
    },
    ...{
      describeCommit: null,
      proofWords: null,
      shortHash: null,
      suspectLine: null,
      unfinishedSentence: null,
      waitingWords: null,
    },
  },
  "first_line.ts": { firstLineOf: (text) => firstLineOf(text, 100), firstPlainLine, messageLineOf },
  "machines.ts": { failingHostOf: null, failingHostWords: null, listWords: null, ranOnWords: null },
  "digest.ts": {
    toDigestNotice: (text) => toDigestNotice({ ...project, name: text }, digestOf(text), "https://assay.example"),
  },
  "execution.ts": {
    executionHeadline: null,
    executionLine: (text) =>
      executionLine({ status: "failed", key: text, branch: text, tasks: [], url: text, reason: text } as never),
    executionOutcome: null,
    flakyWords: null,
    headlineText: null,
  },
  "execution_name.ts": {
    lineName: null,
    executionName: (text) => executionName({ key: text, number: 1, branch: text }),
    executionNumber: (text) => executionNumber({ key: text, number: 1 }),
    shortExecutionName: (text) => shortExecutionName({ key: text, number: 1, branch: text, commit: text }),
  },
  "failure_reason.ts": { failureReason: null },
  "gate_preview.ts": { gatePreviewSummary: null },
  "gate.ts": {
    executionGateReasons: null,
    forgivenWords: null,
    gateHeadline: (text) => gateHeadline(gateOf(text)),
    gateLines: (text) => gateLines(gateOf(text), 10),
    gateSummary: (text) => gateSummary(gateOf(text)),
    taskGateReasons: (text) =>
      taskGateReasons(
        { slug: text, reasons: [{ kind: "ended" }], forgiven: 0 },
        { slug: text, shards: 1, missingShards: [], reason: text },
      ),
  },
  "known_bug.ts": {
    joinedBugLine: (text) => joinedBugLine(bugOf(text)),
    joinedBugTitle: (text) => joinedBugTitle(bugOf(text)),
    knownBugMention: null,
  },
  "notification.ts": {
    toDispatchNotice: null,
    toNotice: (text) => toNotice(tellOf(text), "https://assay.example"),
    toSummaryNotice: null,
    toTestNotice: null,
  },
  "flake_rate.ts": { flakeCountWords: null, flakeWords: null },
  "numbers.ts": { toCount: null, counted: null, toDay: null, toDuration: null, toSize: null },
  "quarantine_reason.ts": {
    quarantineReason: (text) => quarantineReason({ flakeFailures: 1, flakeResults: 9, flakySigns: text }, text),
  },
  "reasons.ts": {
    executionReason: (text) => executionReason("failed", [{ ...LOST_TASK, slug: text, reason: text }]),
    exitMessage: null,
    taskLine: (text) => taskLine({ ...LOST_TASK, reason: text }),
    taskReason: (text) => {
      taskReason({ ...LOST_TASK, reason: text });
      const flaws = { brokeOff: false, standIns: 1, exitCode: 1, says: text, notRerun: 0 };
      taskReason({ ...LOST_TASK, status: "failed", verdict: "failed", attempt: 1, failed: 1, flaws });
    },
  },
  "run_line.ts": {
    runCounts: null,
    toRunLine: (text) =>
      toRunLine({
        taskSlug: text,
        status: "passed",
        verdict: "passed",
        missingShards: [],
        warnings: [text],
        url: text,
        counts: {},
        reason: text,
      } as never),
    runState: null,
  },
  "verification.ts": { failureRateWords: null, newTestWords: null, stopWords: null, verificationWords: null },
  "single_line.ts": { singleLine },
  "task.ts": { redTaskWords: null, taskHeadline: null },
  "slower.ts": {
    slowerLine: (text) => slowerLine([{ suite: text, name: text, taskSlug: text, usualMs: 1, durationMs: 9 }]),
    slowerWords: null,
  },
  "field_problem.ts": {
    toFormMessage: (text) => [toFormMessage(text), toFormMessage(`Cannot read "${text}": x`)],
    toLabel,
  },
  "why.ts": {
    blamePhrase,
    branchSentence: null,
    bugLines: (text) => bugLines({ bugReport: bugOf(text) } as never),
    bugWords: null,
    causeFacts: null,
    causeTitle: (text) =>
      causeTitle({ message: text, stack: text, failed: 1, failures: [{ suite: text, name: text }] } as never),
    noExecution: null,
    onlyWithWords: (text) => onlyWithWords([{ onlyWith: [text, text] }]),
    redElsewhere: null,
    ownerWords: (text) => ownerWords([text, text]),
    sinceWords: null,
  },
});
