/** What a runner does with the output, the reports and the secrets of a task takes linear time, whatever these are. */

import { environmentOf } from "../../../src/runner/environment.ts";
import { inSlot, readRunnerConfig } from "../../../src/runner/config.ts";
import { checkoutFolder, passwordsOf } from "../../../src/runner/checkout.ts";
import { findOwnCgroup } from "../../../src/runner/cgroups.ts";
import { fitLogPart, jsonBytes } from "../../../src/runner/log_part.ts";
import { gitReasonIn } from "../../../src/runner/git_fetch.ts";
import { createMask } from "../../../src/secrets/mask.ts";
import { readSyncAnswer } from "../../../src/runner/protocol.ts";
import { listPaths, mayShareReport, reachesOf } from "../../../src/runner/report_files.ts";
import { createTaskLog, toLogNote } from "../../../src/runner/task_log.ts";
import { mismatchOf } from "../../../src/runner/tested_commit.ts";
import { fitsInForm, mediaTypeOf } from "../../../src/runner/attachment_body.ts";
import { openAttachment } from "../../../src/runner/attachment_file.ts";
import { testLinearity, withFewTexts } from "./growth.ts";

const indented = (lines: number) =>
  Array.from({ length: lines }, (_, line) => `${" ".repeat(40)}key${line}: value`).join("\n");
/** Secrets that begin like the text, and like each other. */
const masks = [
  "aaaaaaaa",
  "        ",
  "\n".repeat(8),
  `${"a".repeat(2_000)}b`,
  `${" ".repeat(200)}x`,
  indented(60),
].map((secret) => createMask([secret, "a a a a a a a a b", "0.0.0.0.0.0.0.0"]));
const bytes = (text: string) => new TextEncoder().encode(text);

testLinearity("runner", {
  // The readers of reports are measured by themselves.
  "named_attachments.ts": { findNamedAttachments: null },
  "repository_root.ts": { findRepositoryRoot: null },
  "send_attachments.ts": { sendAttachments: null, toAttachmentLines: null },
  "task_attachments.ts": { sendTaskAttachments: null },
  "ask_files.ts": { askServerForFiles: null, askServerForPlan: null },
  "attachment_body.ts": {
    ...{ packForm: null, readAttachment: null, streamAttachment: null },
    fitsInForm,
    mediaTypeOf,
  },
  "attachment_file.ts": {
    openAttachRoot: null,
    openAttachment: (text) => openAttachment(text.slice(0, 4_096), "/nowhere", ["/nowhere/a"]),
  },
  "checkout.ts": {
    checkoutFolder: (text) => checkoutFolder("/w", { repository: text } as never),
    ...{ createCheckouts: null, openCheckout: null },
    passwordsOf: (text) => passwordsOf({ repository: text } as never),
  },
  "enter_tree.ts": { enterTree: null, toRunGit: null },
  "cgroups.ts": {
    findOwnCgroup: (text) => findOwnCgroup(`0::/${text}`, `${text} - cgroup2 ${text}`),
    findPidNamespace: null,
    openCgroups: null,
    openGroup: null,
  },
  "command.ts": { requireDirectory: null, runTaskCommand: null },
  // The file is the operator's own, of at most 1 MiB; it is read once, at the start.
  "config.ts": {
    inSlot: (text) => inSlot({ workingDirectory: text, report: [text] } as never, 1),
    openRunnerConfig: null,
    readRunnerConfig: withFewTexts((text) =>
      ["", "tasks:\n  a:\n    command: ", "tasks:\n  a:\n    report: '"].map((before) => {
        try {
          readRunnerConfig(before + text, "assay.yaml");
        } catch {
          // A mistake is named.
        }
      }),
    ),
  },
  "deliver.ts": { deliver: null },
  "environment.ts": {
    environmentOf: (text) =>
      environmentOf(
        {
          id: "l",
          execution: { key: text, branch: text },
          taskSlug: text,
          variables: [{ name: "A", value: text }],
        } as never,
        { PATH: text },
        ["PATH"],
      ),
  },
  "file_queue.ts": { serveFileQueue: null },
  "existing_repository.ts": { createExistingRepository: null },
  "commit_range.ts": {
    ...{ listChangedFiles: null, listCommits: null, listRange: null, listSince: null, requireAncestor: null },
  },
  "list_range.ts": { listLeaseRange: null },
  "git_fetch.ts": {
    ...{ collectOutput: null, createFetchRetry: null },
    gitReasonIn: (text) => ["", "fatal: ", "fatal: a://"].map((before) => gitReasonIn(before + text)),
  },
  "git_clone.ts": { createAskGit: null, createGitClone: null },
  "held_leases.ts": { createHeldLeases: null, logFieldsOf: null },
  "lease_loop.ts": { askForLeases: null },
  "lease_sync.ts": { createLeaseSync: null },
  "lifecycle.ts": { createLifecycle: null },
  // Masked logs, which task_log.ts has bounded.
  "log_part.ts": {
    fitLogPart: (text) => fitLogPart((maxBytes) => ({ offset: 0, text: text.slice(0, maxBytes) }), text.length),
    jsonBytes,
  },
  "line.ts": { backoffMs: null, createLine: null, keepAsking: null },
  "process_state.ts": { readProcess: null },
  "processes.ts": { endProcesses: null, startGuard: null },
  "protocol.ts": { readSyncAnswer: (text) => ["", '{"leases":["'].map((before) => readSyncAnswer(before + text)) },
  "report_files.ts": {
    fileClockMs: null,
    listPaths: (text) => listPaths([text, `/${text}`], "/w"),
    // A pattern has at most 1,000 characters.
    mayShareReport: (text) =>
      mayShareReport(
        reachesOf({ report: [text.slice(0, 1_000)], workingDirectory: "/w" }),
        reachesOf({ report: [`*${text.slice(0, 1_000)}`], workingDirectory: "/w" }),
      ),
    watchReports: null,
  },
  "run_lease.ts": { runLease: null },
  "runner.ts": { startRunner: null },
  "shield.ts": { shield: null },
  "own_key.ts": { askWithOwnKey: null },
  "task.ts": { runTask: null },
  "task_limits.ts": { watchTask: null },
  "task_outcome.ts": { toTaskOutcome: null, toStop: null },
  "task_command.ts": { commandOf: null },
  "tested_commit.ts": {
    ...{ createSettleCommit: null, readBranchHead: null, readHead: null },
    mismatchOf: (text) => mismatchOf({ commit: text, branch: text }, text),
  },
  // The files are those of the tree.
  "machine_trouble.ts": { troubleOf: null },
  "folder_lock.ts": { createFolderLocks: null, lockFolder: null },
  "tree_repository.ts": { copyFolder: null, createTreeRepository: null },
  "tree_state.ts": { readTree: null, removePath: null, restoreTree: null, toTreeState: null },
  "work_trees.ts": { createWorkTrees: null, gitCopyOf: null },
  "task_log.ts": {
    createTaskLog: withFewTexts((text) => {
      // A variable of the team holds at most 64 KiB.
      for (const mask of [...masks, createMask([text.slice(0, 16_384)])]) {
        const log = createTaskLog(mask);
        log.write(bytes(text));
        log.end();
      }
    }),
    toLogNote,
  },
  "upload.ts": { readReportBody: null },
});
