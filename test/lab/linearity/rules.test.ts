/** Decisions read texts of test frameworks, logs and people: none of them takes superlinear time. */

import { MAX_NAME } from "../../../src/reports/text.ts";
import { meets } from "../../../src/rules/automation.ts";
import { readAnsiLines, stripAnsi } from "../../../src/rules/ansi.ts";
import { isBlame } from "../../../src/rules/blame.ts";
import { findOverlaps } from "../../../src/rules/culprit_evidence.ts";
import { isSameCommit } from "../../../src/rules/commit.ts";
import { readDiff } from "../../../src/rules/diff.ts";
import { parseDotenv } from "../../../src/rules/dotenv.ts";
import { isPlainName, plainName } from "../../../src/rules/drawn_name.ts";
import { isFromOutside } from "../../../src/rules/outside.ts";
import {
  caseFingerprint,
  fingerprint,
  normalizeMessage,
  readFailure,
  saysTheSame,
} from "../../../src/rules/fingerprint.ts";
import { identify, identifyOtherNames, isAbsolute } from "../../../src/rules/identity.ts";
import { attachmentName, findPictureComparisons, normalizeAttachmentPath } from "../../../src/rules/attachment_path.ts";
import { losesFile, mayBeSameFile, normalizeFile, toSlashes } from "../../../src/rules/identity.ts";
import { detectSyntax, parseOwners, splitClassName } from "../../../src/rules/codeowners.ts";
import { compilePattern, matchesRest } from "../../../src/rules/owner_patterns.ts";
import { createOwnership } from "../../../src/rules/owners.ts";
import { createRuleSearch } from "../../../src/rules/infrastructure.ts";
import { isErrorLine } from "../../../src/rules/log_errors.ts";
import { resolveBranch } from "../../../src/rules/branch.ts";
import { joinLog } from "../../../src/rules/log_parts.ts";
import {
  batchesPath,
  createFileMatch,
  matchTimings,
  planPath,
  plannedFiles,
  splitFiles,
  toFileName,
  unitOf,
} from "../../../src/rules/plan.ts";
import { readPosition } from "../../../src/rules/stream_position.ts";
import { plainWord } from "../../../src/rules/randomness.ts";
import { emptyReport, erroredCase } from "../../../src/reports/report.ts";
import { probeOnly, repeatOnly } from "../../../src/rules/repeat.ts";
import { rootOf, withRelativePaths } from "../../../src/rules/repository_root.ts";
import { findRenamed } from "../../../src/rules/rename.ts";
import { locateFile, toContainedPath, toPathWord, withoutTrailingSlashes } from "../../../src/rules/report_path.ts";
import { mistakeInRerun, toRerunCommand } from "../../../src/rules/rerun_command.ts";
import { PRESETS } from "../../../src/rules/rerun_cases.ts";
import { quoted, scanShell } from "../../../src/rules/shell.ts";
import { isTestFrame, ownFrames, readStack } from "../../../src/rules/stack.ts";
import { adviceFor } from "../../../src/rules/upload_advice.ts";
import { progressOf } from "../../../src/rules/execution.ts";
import { sourceLinks } from "../../../src/rules/source_links.ts";
import { describeClaims, explainRefusal, isOfRepository, matchesPattern } from "../../../src/rules/trust_rule.ts";
import type { TrustRule } from "../../../src/schema/trust_rules.ts";
import { statusContext } from "../../../src/rules/status_context.ts";
import { isTaskAmong, nameVariant, readVariant } from "../../../src/rules/variants.ts";
import { isOutsideOfTests, isRepeated } from "../../../src/rules/outside_of_tests.ts";
import { markThroughChild } from "../../../src/rules/through_child.ts";
import { testLinearity, withFewTexts } from "./growth.ts";

const TRUST_RULE: TrustRule = {
  ...{ id: "", kind: "github", issuer: "", repositoryId: "1", ownerId: "2", repository: null },
  ...{ events: [], refs: [], keys: null },
};
const failureOf = (text: string) => ({
  kind: null,
  message: text,
  stack: `Error: ${text}\n    at run (${text})\n${text}`,
  suite: text,
  name: text,
  file: text,
});
const PATTERNS = ["**/*a*a*a*b", "a/**/a/**/b", "*.x", "[a-z]*[!a]/b"].map((pattern) =>
  compilePattern(pattern, "gitlab")!,
);
const caseOf = (text: string) => ({ suite: text, name: text, file: text });

testLinearity("rules", {
  "ansi.ts": { readAnsiLines, stripAnsi },
  "attachment_path.ts": {
    attachmentName,
    findPictureComparisons: (text) =>
      findPictureComparisons([{ name: `${text}-expected.png` }, { name: `${text}-actual.png` }]),
    isKeptWith: null,
    normalizeAttachmentPath,
  },
  "automation.ts": {
    meets: (text) =>
      // A pattern has at most 200 characters.
      meets(
        { branches: [text.slice(0, 200), "a*b*c*d"], environments: [text], taskSlugs: [text], owners: [text] } as never,
        {
          ...{ projectId: null, branch: text, environment: text, taskSlugs: [text], owners: [text] },
          ...{ failed: 0, severity: null },
        },
      ),
    toFacts: null,
  },
  "branch.ts": {
    ...{ lineOf: null, trainRef: null },
    resolveBranch: (text) => resolveBranch({ branch: `gh-readonly-queue/${text}` }),
  },
  "branch_state.ts": { isGreen: null, toBranchState: null },
  "batches.ts": { countUnrun: null, newQueue: null, nextBatch: null, orderFiles: null, releaseShard: null },
  "blame.ts": { isBlame, toCounts: null, toLists: null },
  "bug_transition.ts": { eventOf: null },
  "commit.ts": { isSameCommit: (text) => isSameCommit(text, `${text}1`) },
  // Of numbers alone
  "culprit.ts": {
    ...{
      assumeFlakeRate: null,
      believe: null,
      chanceOfFailure: null,
      chanceOfResult: null,
      failureRateGrid: null,
      flakeRateGrid: null,
    },
    ...{ measureFlakeRate: null, priorOf: null, weighCommits: null },
  },
  "culprit_evidence.ts": {
    ...{ mayShare: null, toEvidence: null },
    findOverlaps: (text) => findOverlaps([{ files: [text] }], { named: [text, `/${text}`], isOwned: () => false }),
  },
  "culprit_range.ts": { findSearchRange: null },
  "culprit_sharing.ts": { shareProbes: null },
  "culprit_probes.ts": { expectedBits: null, nextProbes: null, nextStep: null, resultChances: null },
  "culprit_suspects.ts": {
    ...{
      concludeCulprit: null,
      findLikely: null,
      findSuspects: null,
      findUntestable: null,
      missingConfirmations: null,
    },
  },
  "diff.ts": {
    readDiff: (text) => {
      readDiff(text, text);
      for (const before of ["Expected: ", "expected: <", "- Expected\n+ Received\n", "assert ", "AssertionError: "])
        readDiff(before + text, null);
      readDiff(`Failed asserting that ${text} matches expected ${text}.`, null);
    },
  },
  "digest_table.ts": {
    ...{ countOf: null, createDigestTable: null, createDigests: null, isSame: null, joinDigests: null },
    ...{ toDigests: null, toHex: null, toHexes: null },
  },
  "dotenv.ts": {
    parseDotenv: (text) => {
      for (const before of ["", "A=", "A='", 'A="', "export "]) parseDotenv(before + text);
    },
  },
  "gate.ts": {
    forgivenBlames: null,
    gateExecution: null,
    gateTask: null,
    isExplainedByFailures: null,
    mayBeForgiven: null,
  },
  // Of numbers alone
  "gate_preview.ts": { previewGate: null },
  "slower.ts": {
    ...{ addPass: null, findSlower: null, mayBeSlower: null, slownessOf: null, untrackedHistory: null, usualOf: null },
  },
  "execution.ts": {
    byResults: null,
    endOfTask: null,
    endWithoutLease: null,
    verdictAtEnd: null,
    executionVerdict: null,
    hasEnded: null,
    nextStatus: null,
    sumTasks: null,
    progressOf: (text) =>
      progressOf("running", [{ slug: text, status: "running", startedAt: null }], new Map([[text, 1]]), 0),
  },
  "drawn_name.ts": { isPlainName, plainName },
  "duration.ts": { startOf: null, timesOf: null },
  "explained_execution.ts": { explainedExecution: null },
  "fingerprint.ts": {
    caseFingerprint: (text) => caseFingerprint({ ...failureOf(text), testCase: 1 }),
    executionOutageFingerprint: null,
    fingerprint: (text) => fingerprint(failureOf(text)),
    flakyFingerprint: null,
    infrastructureFingerprint: null,
    normalizeMessage: (text) => normalizeMessage(text),
    outageFingerprint: null,
    readFailure: (text) => readFailure(failureOf(text)),
    saysTheSame: (text) => saysTheSame(text, text),
  },
  // Of numbers alone
  "flakiness.ts": { judgeFlakiness: null },
  "flaky_rates.ts": { fitRates: null, flakyChance: null, meanRate: null, passesAgain: null, readRates: null },
  "health.ts": { countChange: null, countResult: null, countedAt: null, isDisturbed: null },
  "identity.ts": {
    ...{
      isAbsolute,
      toSlashes,
      losesFile: (text) => losesFile(text, text),
      mayBeSameFile: (text) => mayBeSameFile(text, `${text}1`),
    },
    identify: (text) => identify("p", "t", [caseOf(text)]),
    identifyOtherNames: (text) => {
      const one = { ...caseOf(text), file: `/${text}` };
      identifyOtherNames("p", "t", [{ ...one, reportedName: one, otherNames: [one], keepOtherNames: true }], [0]);
    },
    identityOf: null,
    normalizeFile,
  },
  "log_errors.ts": { isErrorLine },
  "log_parts.ts": { joinLog: (text) => joinLog([{ start: 0, bytes: Buffer.from(text) }], 1) },
  "merge.ts": {
    ...{ blockOf: null, changesOf: null, countStatuses: null, mergeBlock: null, packResults: null },
    ...{ removeFromBlock: null, isFailure: null, toLetter: null, toStatus: null },
  },
  "infrastructure.ts": {
    createRuleSearch: (text) => {
      const patterns = [text.slice(0, 300), "a*a*a*b", "a*".repeat(150), "*x*"];
      createRuleSearch(patterns.map((pattern) => ({ pattern })))({ message: text, stack: text, output: text });
    },
  },
  "recency.ts": { isRecent: null },
  "odds.ts": { weigh: null },
  "absent_tests.ts": { hasStoppedEarly: null, isAbove: null, mayBeShort: null, toAbsence: null },
  "equal_names.ts": { foldCases: null },
  "outside_of_tests.ts": {
    isOutsideOfTests: (text) => isOutsideOfTests({ suite: "", name: `(${text} failed)`, file: null }),
    isRepeated: (text) =>
      isRepeated({ suite: "", name: `setUpClass (${text})`, file: text }, [{ suite: text, file: text }], {
        isComplete: true,
      }),
  },
  "rerun_results.ts": { toBuildResults: null },
  "through_child.ts": {
    markThroughChild: (text) =>
      markThroughChild([
        { ...erroredCase({ suite: "", name: "a", file: null }, text), stack: text },
        erroredCase({ suite: "", name: `a/${text}`, file: null }, text),
      ]),
  },
  "outside.ts": { isFromOutside: (text) => isFromOutside(failureOf(text)) },
  "codeowners.ts": {
    detectSyntax,
    parseOwners: withFewTexts((text) => {
      for (const before of ["", "[", "[a] ", "/a @"]) parseOwners(before + text, "gitlab");
      parseOwners(text, "github");
    }),
    splitClassName,
  },
  "owner_patterns.ts": {
    compilePattern: (text) => {
      for (const syntax of ["github", "gitlab"] as const) compilePattern(text, syntax);
    },
    matchesRest: (text) => {
      const path = text.split("/");
      for (const pattern of PATTERNS) matchesRest(pattern, path, 0, { taken: 0 });
    },
  },
  "owners.ts": {
    createOwnership: (text) => {
      createOwnership(parseOwners(`${text}\nclass:**.a*a*b @a\n**/a*a*a*b @a\n`))({ suite: text, file: text });
    },
  },
  "palette.ts": { nearestColour: null, rgbOf: null },
  "poll_interval.ts": { pollIntervalSeconds: null },
  "plan.ts": {
    batchesPath: (text) => batchesPath("e", text),
    createFileMatch: (text) => createFileMatch([text, `a/${text}`])(text),
    hashShard: null,
    longestShard: null,
    overheadsOf: null,
    unitOf: (text) => [text, `a.b$${text}`].map((suite) => unitOf({ file: null, suite })),
    matchTimings: (text) => matchTimings([{ file: text, ms: 1 }], [`a/${text}`]),
    planPath: (text) => planPath("e", text, { index: 1, of: 2 }),
    planShards: null,
    plannedFiles: (text) => plannedFiles({ files: [text], timings: { [text]: 1, [`a/${text}`]: 1 } }, "/w"),
    splitFiles: (text) =>
      splitFiles([text, `a/${text}`], {
        shard: { index: 1, of: 2 },
        plan: { files: [text], timings: { [text]: 1 } },
        directory: text,
      }),
    toFileName: (text) => {
      toFileName(text);
      toFileName(text, text);
    },
  },
  "stream_position.ts": { atEvent: null, atLog: null, before: null, compare: null, readPosition, writePosition: null },
  "randomness.ts": { plainWord },
  "rename.ts": {
    isWholeTask: null,
    findRenamed: (text) => {
      findRenamed([caseOf(text)], [caseOf(`${text}1`)], new Set(), true);
      findRenamed([{ ...caseOf(text), file: `/${text}` }], [{ ...caseOf(text), file: `a${text}` }], new Set(), true);
    },
  },
  "repeat.ts": {
    probeOnly: (text) =>
      probeOnly(
        { ...emptyReport("junit"), cases: [erroredCase(caseOf(text), "m"), erroredCase(caseOf(`${text}1`), "m")] },
        [caseOf(text)],
      ),
    repeatOnly: (text) =>
      repeatOnly({ ...emptyReport("junit"), cases: [erroredCase(caseOf(text), "m")] }, [
        caseOf(text),
        caseOf(`${text}1`),
      ]),
  },
  "report_path.ts": {
    locateFile: (text) => locateFile(text, `/w/${text.slice(0, 1_000)}`, () => false),
    toContainedPath: (text) => toContainedPath(text, "/w"),
    toPathWord,
    withoutTrailingSlashes,
  },
  "repository_root.ts": {
    rootOf: (text) => [rootOf(`/${text}`, [`/${text}/a`]), rootOf(undefined, [`/a/b/${text}/src/c`, text])],
    withRelativePaths: (text) =>
      withRelativePaths(
        { ...emptyReport("junit"), cases: [erroredCase(caseOf(`/srv/shop/${text}`), text.slice(0, 65_536))] },
        "/srv/shop",
      ),
  },
  // Called through toRerunCommand.
  "rerun_cases.ts": { cannot: null, quote: null, toCases: null, toFileWord: null, toNameWord: null },
  "rerun_command.ts": {
    mistakeInRerun: (text) => mistakeInRerun(`run {files} ${text}`),
    toRerunCommand: withFewTexts((text) => {
      for (const rerun of [...PRESETS, "run {pattern} {namePattern} {names}"])
        toRerunCommand({
          ...{ rerun, command: `${rerun} run ${text.slice(0, 8_192)}`, directory: "/w", exists: () => true },
          // The command is of the runner's own file; reports hold names of at most 1,000 characters.
          only: [caseOf(text.slice(0, MAX_NAME))],
        });
    }),
  },
  "rerun_insertion.ts": { toInsertion: null },
  "rerun_pattern.ts": {
    ...{ anchored: null, either: null, escape: null, flatten: null, isCut: null, titlePattern: null, titles: null },
  },
  "ran_on.ts": { machineText: null, toRanOn: null },
  "red_reason.ts": { flawsOf: null },
  "run_outcome.ts": {
    furtherRows: null,
    isComplete: null,
    isOutageRun: null,
    isOutageTogether: null,
    mayBeOutage: null,
    latestAttempts: null,
    nextNumber: null,
    outcomeOf: null,
  },
  "shards.ts": { missingShardsOf: null, shardsOf: null, toShardList: null },
  "shell.ts": { quoted, scanShell },
  "snippets.ts": { createSnippets: null, shellSnippet: null, uploadUrl: null },
  "source_links.ts": {
    sourceLinks: (text) => sourceLinks({ buildUrl: `https://a/${text}`, pullRequest: text, commit: text }),
  },
  "stack.ts": {
    isTestFrame: (text) => isTestFrame({ file: text, function: text }),
    ownFrames: (text) => ownFrames(`    at ${text}\n${text}\n  File "${text}`),
    readStack: (text) => readStack(`    at ${text}\n${text}\n  File "${text}`),
  },
  "status_context.ts": { statusContext: (text) => statusContext("assay", text) },
  "test_case_id.ts": { numberOfTestCase: null, toTestCaseId: null },
  "untrusted.ts": { isUntrustedCase: null, toStoredBlock: null, toUntrustedIdentity: null },
  "trust_rule.ts": {
    describeClaims: (text) => describeClaims({ repository_id: text, ref: text }),
    explainRefusal: (text) =>
      explainRefusal(
        { ...TRUST_RULE, events: ["push"], refs: ["refs/*a*b*c"] },
        { event_name: "push", ref: `refs/${text}` },
      ),
    isOfRepository: (text) => isOfRepository(TRUST_RULE, { repository_id: "1", repository_owner_id: text }),
    matchesPattern: (text) => matchesPattern("refs/*a*ab*c", `refs/${text}`),
  },
  "upload_advice.ts": { adviceFor: (text) => adviceFor({ outcome: "refused", statusCode: 400, text }) },
  "failure_rate.ts": { failureInterval: null },
  "verification.ts": { countWantedProbes: null, decideVerification: null },
  "weeks.ts": { toWeeks: null },
  "variants.ts": {
    isTaskAmong: (text) => isTaskAmong(text, [text]),
    nameVariant: (text) => nameVariant(text, [text, text]),
    onlyWithTags: null,
    readVariant: (text) => [text, `${text} [a:b]`, `e2e [a:${text}]`, `e2e [${text}]`].map(readVariant),
    resultsByTag: null,
  },
});
