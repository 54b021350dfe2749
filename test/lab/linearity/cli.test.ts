/** What the command line prints of servers, reports and environments takes linear time, whatever these say. */

import { toAnnotations, toWarning } from "../../../src/cli/annotations.ts";
import { readCase } from "../../../src/cli/bisect_case.ts";
import { endLines } from "../../../src/cli/bisect_lines.ts";
import { readBisectOptions } from "../../../src/cli/bisect_options.ts";
import { findBaseCommit } from "../../../src/cli/base_commit.ts";
import { detectBuild } from "../../../src/cli/ci.ts";
import { detectMachine } from "../../../src/cli/machine.ts";
import { readAddressSource } from "../../../src/cli/ci_key.ts";
import { createExportLines } from "../../../src/cli/export_lines.ts";
import { endGate, readGateOptions } from "../../../src/cli/gate.ts";
import { messageOf, readServerAddress, shown } from "../../../src/cli/client.ts";
import { toProblemSummary, toSummary } from "../../../src/cli/job_summary.ts";
import { cleanTexts, createOutputMask, createSecrets, toJsonLine } from "../../../src/cli/output.ts";
import { toPlainLine, toPlainLines, withoutWorkflowCommands } from "../../../src/cli/output.ts";
import { filesOfPlan, parsePlaywrightList } from "../../../src/cli/split_files.ts";
import { readImportArguments } from "../../../src/cli/import_options.ts";
import { toOption } from "../../../src/cli/admin_options.ts";
import { readTags } from "../../../src/cli/tags.ts";
import { readArguments } from "../../../src/cli/upload_options.ts";
import {
  parseFileOptions,
  parseOptions,
  readSeconds,
  require as requireOption,
  toUsageError,
} from "../../../src/cli/usage.ts";
import { readShard } from "../../../src/cli/shard_option.ts";
import { whyLines } from "../../../src/cli/why_lines.ts";
import { FEW_TEXTS, testLinearity } from "./growth.ts";

const failureOf = (text: string) => ({ suite: text, name: text, file: text, line: 1, message: text, blame: "new" });
const runOf = (text: string) =>
  ({
    ...{ taskSlug: text, url: text, status: "passed", verdict: "failed", outage: false, attempt: 1, flaky: 0 },
    ...{ passed: 1, failed: 1, skipped: 0, total: 2, arrivedShards: [], missingShards: [], warnings: [text] },
    ...{
      newFailures: [],
      flakyFailures: [],
      alsoFailingOnMain: [],
      stillFailing: [],
      quarantinedFailures: [],
      incidentFailures: [],
    },
  }) as never;

/** What tells systems apart, and what each of them says of a build. */
const SYSTEMS = ["GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL", "CIRCLECI", "TF_BUILD", "BUILDKITE"];
const BUILD = [
  ...["GITHUB_REF", "GITHUB_REPOSITORY", "CI_MERGE_REQUEST_REF_PATH", "CI_COMMIT_BRANCH", "GIT_BRANCH", "GIT_URL"],
  ...["CIRCLE_PULL_REQUEST", "CIRCLE_BRANCH", "BUILD_SOURCEBRANCH", "BUILDKITE_REPO", "BUILDKITE_PULL_REQUEST_REPO"],
];

const mask = createOutputMask(["aaaaaaaab", "        x", "a.a.a.a.a.b"], [encodeURIComponent]);
const attempt = (work: () => unknown): void => {
  try {
    work();
  } catch {
    // A refusal is an answer.
  }
};

testLinearity(
  "cli",
  {
    "admin.ts": { admin: null, adminHelp: null, adminHelpTopic: null },
    "admin_options.ts": {
      ...{
        id: null,
        missing: null,
        option: null,
        orMissing: null,
        readName: null,
        requireTeam: null,
        toUsage: null,
        listOfTeam: null,
      },
      toOption,
    },
    "backup.ts": { backup: null },
    "command_line.ts": { runCommandLine: null },
    "doctor.ts": { doctor: null },
    "health.ts": { checkHealth: null },
    "import.ts": { importHistory: null },
    "import_lines.ts": {
      buildLine: null,
      importEndLines: null,
      importProgressLine: null,
      historyLines: null,
      plannedLine: null,
      problemLines: null,
    },
    "import_options.ts": {
      readImportArguments: (text) =>
        ["--date-from", "--utc-offset"].map((name) => attempt(() => readImportArguments([text, `${name}=${text}`]))),
    },
    "import_server.ts": { isStored: null, readExecutions: null, readProject: null },
    "interruption.ts": { untilInterrupted: null },
    "invocation.ts": { createInvocation: null, locate: null },
    "main.ts": { main: null },
    "process_io.ts": { runProcess: null },
    "restore.ts": { restore: null },
    "annotations.ts": {
      toAnnotations: (text) =>
        (["github", "azure", "teamcity"] as const).map((system) =>
          toAnnotations(system, runOf(text), [failureOf(text)] as never, (file) => file),
        ),
      toWarning: (text) => (["github", "azure", "teamcity"] as const).map((system) => toWarning(system, text)),
    },
    "bisect.ts": { bisect: null },
    "bisect_case.ts": {
      readCase,
      ...{ askServer: null, findBugId: null, readKnownCase: null },
    },
    "bisect_lines.ts": {
      endLines: (text) => {
        const commit = { hash: text, author: text, date: text, subject: text };
        const commits = [commit, commit, commit];
        const probes = [{ index: 1, result: "failed" as const, round: 0, exitCode: 1, seconds: 1, output: text }];
        const end = { commits, probes, isGoodKnown: true, files: [text] };
        endLines({ ...end, verdict: { kind: "culprit", index: 1, chance: 1 } });
        endLines({ ...end, verdict: { kind: "undecided", reason: "no_result", candidates: [1, 2], chance: 1 } });
      },
      ...{ culpritLines: null, endJson: null, itemLines: null, probeLine: null },
    },
    "base_commit.ts": {
      findBaseCommit: (text) => findBaseCommit({ commit: text, baseBranch: text }, () => text),
    },
    "bisect_options.ts": { readBisectOptions: (text) => attempt(() => readBisectOptions([`--${text}`, "--", text])) },
    "bisect_probe.ts": { createProber: null },
    "bisect_range.ts": { readRange: null },
    "bisect_server.ts": { searchLines: null, searchOnServer: null },
    "ci.ts": {
      ...{ askGit: null, describeCommits: null, findCiBuild: null },
      detectBuild: (text) =>
        SYSTEMS.map((system) =>
          detectBuild(
            { [system]: "true", ...Object.fromEntries(BUILD.map((name) => [name, text])) },
            () => text,
            () => text,
          ),
        ),
    },
    "ci_key.ts": {
      readAddressSource: (text) =>
        [{ ASSAY_URL: "http://a", ASSAY_PUBLIC_URL: text }, { ASSAY_URL: `http://a${text}` }].map((variables) =>
          attempt(() => readAddressSource({ ASSAY_PROJECT: text, ASSAY_ID_TOKEN: `a${text}`, ...variables })),
        ),
      toServerAddress: null,
    },
    "client.ts": {
      ...{
        ask: null,
        askStream: null,
        toPatience: null,
        askPatiently: null,
        askSocket: null,
        askUrl: null,
        readKeylessAddress: null,
      },
      ...{ tryPatiently: null, withoutEndSlashes: null },
      shown: (text) => shown({ url: `http://${text}`, project: text }),
      messageOf: (text) =>
        [text, JSON.stringify({ error: { message: text } })].map((body) =>
          messageOf({ status: 400, text: body, headers: new Headers() }),
        ),
      readServerAddress: (text) =>
        attempt(() => readServerAddress({ ASSAY_URL: `http://a${text}`, ASSAY_PROJECT: text, ASSAY_KEY: text })),
    },
    "export.ts": { exportProject: null },
    "export_attachments.ts": { downloadAttachments: null },
    "export_lines.ts": {
      createExportLines: (text) =>
        attempt(() => createExportLines().take(Buffer.from(`{"type":"header","format":"${text}"}\n${text}\n`))),
    },
    "gate.ts": {
      endGate: (text) =>
        endGate(
          { mode: "new", isDryRun: false, missingPercent: undefined },
          {
            exitCode: 1,
            problem: undefined,
            decision: {
              ...{ gate: "new", pass: false, reasons: [text], forgivenCount: 1 },
              forgiven: [{ suite: text, name: text, reason: text }],
              unclear: [{ suite: text, name: text, reason: text }],
            },
          },
        ),
      readGateOptions: (text) => attempt(() => readGateOptions({ gate: text, missing: text }, false)),
      toGateParameters: null,
    },
    "job_summary.ts": {
      toProblemSummary: (text) => toProblemSummary(text, 1_000_000),
      toSummary: (text) => toSummary(runOf(text), [failureOf(text)] as never, 1_000_000),
    },
    "machine.ts": {
      detectMachine: (text) =>
        detectMachine({ CI_RUNNER_DESCRIPTION: text, CI_JOB_IMAGE: text }, "gitlab", { host: text, system: text }),
    },
    "owners_file.ts": { findOwnersFile: null, sendOwnersFile: null },
    "output.ts": {
      cleanTexts: (text) => cleanTexts({ a: text }, mask),
      createOutputMask: (text) => mask(text),
      createSecrets: (text) => createSecrets({ ASSAY_KEY: text, ASSAY_URL: `http://a:${text}@b` }).list(),
      ...{ toJsonLine, toPlainLine, toPlainLines, withoutWorkflowCommands },
    },
    "report_files.ts": { findReports: null, keepFresh: null, readReportFiles: null },
    "runner.ts": { runner: null },
    "split.ts": { split: null },
    "split_options.ts": { readWish: null },
    "split_request.ts": { askBatch: null, askPlan: null, askRunnerForPlan: null, readAs: null },
    "split_files.ts": {
      filesOfPlan: (text) =>
        attempt(() =>
          filesOfPlan(
            { files: [text, `a/${text}`], timings: { [text]: 1, [`a/${text}`]: 2 } },
            { task: text, existing: false, directory: "/w", say: toPlainLine },
          ),
        ),
      parsePlaywrightList: (text) =>
        ["", "[chromium] › ", "  [", "a.ts:1:1 › "].map((before) =>
          attempt(() => parsePlaywrightList([before + text, `${before}${text} › a`])),
        ),
      readFiles: null,
    },
    "terminal.ts": { askPassword: null, readHiddenLine: null },
    "upload.ts": { upload: null },
    "upload_address.ts": { findAddress: null, openAddress: null },
    "upload_output.ts": { createVoice: null, tellProblem: null, tellRun: null },
    "upload_options.ts": {
      readArguments: (text) => attempt(() => readArguments([text, "--task", text, `--${text}`])),
      toParameters: null,
    },
    "upload_attachments.ts": { uploadAttachments: null },
    "upload_request.ts": { sendReports: null },
    "tags.ts": {
      readTags: (text) => [
        attempt(() => readTags({ options: [text, `a:${text}`], environment: {}, isShard: false })),
        attempt(() => readTags({ options: [], environment: { ASSAY_TAGS: `{"a":"${text}` }, isShard: true })),
      ],
    },
    "usage.ts": {
      parseOptions: (text) => attempt(() => parseOptions([text, `--${text}`], ["task"])),
      parseFileOptions: (text) => attempt(() => parseFileOptions([text, `--${text}`], ["task"])),
      readSeconds: (text) => attempt(() => readSeconds("a", text)),
      readShard: (text) => attempt(() => readShard(text)),
      require: (text) => requireOption({ a: text }, "a"),
      toUsageError: (text) => toUsageError(new Error(text)),
    },
    "why.ts": { why: null },
    "why_lines.ts": {
      whyLines: (text) => {
        const failure = { taskSlug: text, suite: text, name: text, file: text, owner: text, reason: text };
        const cause = { message: text, stack: text, bugReport: null, failed: 2, failures: [failure, failure] };
        const execution = { key: text, branch: text, commit: text, pullRequest: text, url: text };
        const failures = { headline: text, causes: [cause], causeCount: 2 };
        whyLines({ state: null, execution, failures, running: null } as never, { hasColours: true, columns: 80 });
      },
    },
    "wrapped_command.ts": { listenForStop: null, runCommand: null },
  },
  FEW_TEXTS,
);
