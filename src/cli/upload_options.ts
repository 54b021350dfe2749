/** The command line of `assay upload`, and what it, the environment and the CI system make of an upload's parameters. */

import { parseArgs } from "node:util";
import { findRepositoryRoot } from "../runner/repository_root.ts";
import { type CiBuild, describeCommits } from "./ci.ts";
import type { BuildContext } from "./invocation.ts";
import type { Machine } from "./machine.ts";
import type { AttachmentScope } from "../runner/named_attachments.ts";
import { readTags, TAG_HELP } from "./tags.ts";
import { GATE_HELP, GATE_HELP_TEXT, type GateOptions, readGateOptions } from "./gate.ts";
import { type AttemptOptions, readAttemptOptions, RETRY_HELP, RETRY_NAMES } from "./retry_options.ts";
import { readShard } from "./shard_option.ts";
import { readSeconds, toUsageError, UsageError } from "./usage.ts";

export const UPLOAD_HELP = `Usage: assay upload FILE|GLOB… [options] [-- command …]

Sends test reports to a server as one upload, and prints the verdict and a link. If you pass a command, it runs the command
first and then sends the reports that the command has written. The exit code is the exit code of the command. The command
keeps its standard streams and receives signals.

  --task NAME             the task of the build (default: the name of the CI job)
  --execution-key KEY     a value that all jobs of the build share (default: the id of the CI build)
  --execution-id ID       an execution of the server (default: ASSAY_EXECUTION_ID)
  --shard 2/4             one of several slices of the task
${TAG_HELP}
  --branch, --commit, --pull-request, --build-url
                          where the build comes from (default: from the CI system or git)
  --base-branch BRANCH    the branch that a pull request is merged into (default: from the CI system)
  --base-commit COMMIT    the newest commit of that branch in the tested tree (default: from the CI system or git)
  --environment NAME      the environment that the tests ran against
  --host, --system, --image NAME
                          the machine that the tests ran on, its system and its image (default: from the CI system or the
                          machine itself)
  --repository-root DIR   paths of the report below it are stored relative to it (default: the checkout that git manages)
  --format NAME           the format of the report, such as "junit" (default: recognised from the content)
  --exit-code N           the exit code of the tests, if they do not run in the command
  --attempts merged       equal names in the reports are attempts of one test, the last of which counts
  --allow-empty           accept a report without test cases
  --complete              this is the last upload of the build
  --no-owners             do not send the CODEOWNERS file of the repository (default: send it from the default branch)
  --untrusted             the reports come from a fork: show them, but do not use them for anything else (default: set in a
                          workflow_run job of GitHub whose workflow belongs to a fork)
  --patience SECONDS      time limit for further attempts if the server is unavailable, and for waiting if the rate limit is
                          exceeded (default: 120; 0: one attempt)
  --attach FILE|GLOB      send a file for the run as a whole, such as the log of a server; may be repeated
  --attachments all       also send files that reports name for test cases that passed (default: failed)
  --no-attachments        send no files that reports name
  --attach-root DIR       only files below this directory are sent (default: the working directory)
${RETRY_HELP}
  --skip-quarantined      leave out the tests whose quarantine says so
${GATE_HELP}
  --strict                exit with an error if the upload fails (see below)
  --json                  print one line of JSON: the server's answer, or { "error": { "message" } }

Required: ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY. ASSAY_KEY is not required if the project has a trust rule for the
repository: the id token of the CI job is then exchanged for a key. GitLab provides the token in ASSAY_ID_TOKEN, GitHub in
jobs with the permission "id-token: write". If links and tokens need another address than ASSAY_URL, set ASSAY_PUBLIC_URL.
Empty options are ignored. Globs are expanded by this command, without node_modules and .git; "**" matches any number of
folders.

If the report is missing, older than the command, unreadable or without test cases, and the exit code of the tests is known,
a failure is recorded in its place. If the command is stopped by SIGINT,
SIGTERM or SIGHUP, nothing is uploaded: a cancelled build has no result.

Attachments are files that a report names (screenshots, videos, traces, logs). They are sent after the results. An attachment
that cannot be sent is a warning and never changes the exit code. Hidden files such as .env are never sent.

Exit code: the exit code of the command, as in a shell (128 + n for signal n, 127 not found, 126 not executable). Without a
command it is 0, even if tests failed. A failed upload is only a warning, so that an unavailable server cannot break a build.
With --strict, if the command itself did not fail, the exit code is 1 for a missing or refused report, and 3 if the server is
unavailable or its address is not set. Wrong usage exits with 2.

${GATE_HELP_TEXT}`;

/** Options that are parameters of the upload. */
const PARAMETERS = {
  task: "task_slug",
  "execution-key": "execution_key",
  "execution-id": "execution_id",
  shard: "shard",
  format: "format",
  branch: "branch",
  commit: "commit",
  "base-commit": "base_commit",
  "pull-request": "pull_request",
  "base-branch": "base_branch",
  "build-url": "build_url",
  environment: "environment",
  host: "host",
  system: "system",
  image: "image",
  "repository-root": "repository_root",
  "exit-code": "exit_code",
  attempts: "attempts",
} as const;
const FLAGS = [
  "allow-empty",
  "complete",
  "untrusted",
  "strict",
  "json",
  "no-attachments",
  "no-owners",
  "gate-dry-run",
  "skip-quarantined",
  "strict-new",
] as const;

export type UploadArguments = {
  reports: string[];
  command: string[] | undefined;
  /** Values by the name of the upload's parameter; none is empty. */
  parameters: Record<string, string>;
  /** Values of --tag. */
  tags: string[];
  flags: Partial<Record<(typeof FLAGS)[number], boolean>>;
  attachments: AttachmentArguments;
  gate: GateOptions | undefined;
  attempts: AttemptOptions;
  patienceMs: number;
};

type AttachmentArguments = {
  /** Files and globs for the run as a whole. */
  attach: string[];
  root: string;
  /** The test cases whose named files are sent. */
  scope: AttachmentScope | "none";
};

const OTHER_NAMES = ["patience", "attachments", "attach-root", "gate", "gate-missing"];

const PATIENCE_MS = 120_000;

/** Throws UsageError. */
export function readArguments(args: string[]): UploadArguments {
  const end = args.indexOf("--");
  const command = end === -1 ? undefined : args.slice(end + 1);
  const { values, positionals } = parse(end === -1 ? args : args.slice(0, end));
  const flags = values as UploadArguments["flags"];
  const given = Object.entries(PARAMETERS).map(([name, parameter]) => [
    parameter,
    ((values as Record<string, unknown>)[name] as string | undefined)?.trim() ?? "",
  ]);
  const parameters = Object.fromEntries(given.filter(([, value]) => value !== ""));
  const { tag: tags = [] } = values as { tag?: string[] };
  const attachments = readAttachmentArguments(values as AttachmentValues);
  const { gate: mode, "gate-missing": missing } = values as { gate?: string; "gate-missing"?: string };
  const gate = readGateOptions({ gate: mode, missing }, flags["gate-dry-run"] === true);
  if (positionals.length === 0) throw new UsageError("Missing report after upload: name a file or a glob");
  if (flags["skip-quarantined"] && !command)
    throw new UsageError("--skip-quarantined needs the command of the tests after --");
  if (command?.length === 0) throw new UsageError("Missing command after --");
  if (command && parameters["exit_code"] !== undefined)
    throw new UsageError("upload takes either --exit-code or a command after --");
  if (parameters["execution_id"] !== undefined && parameters["execution_key"] !== undefined)
    throw new UsageError("upload takes either --execution-id or --execution-key");
  if (!/^-?\d{1,10}$/.test(parameters["exit_code"] ?? "0"))
    throw new UsageError(`--exit-code: expected an integer, got "${parameters["exit_code"]}"`);
  if (parameters["shard"] !== undefined) readShard(parameters["shard"]);
  const attempts = readAttemptOptions(values, flags["strict-new"] === true, command !== undefined);
  const patienceMs = readSeconds("patience", (values as { patience?: string }).patience) ?? PATIENCE_MS;
  return { reports: positionals, command, parameters, tags, flags, attachments, gate, attempts, patienceMs };
}

type AttachmentValues = {
  attach?: string[];
  attachments?: string;
  "attach-root"?: string;
  "no-attachments"?: boolean;
};

function readAttachmentArguments(values: AttachmentValues): AttachmentArguments {
  const scope = values.attachments?.trim() || "failed";
  if (scope !== "failed" && scope !== "all")
    throw new UsageError(`--attachments: expected "failed" or "all", got "${scope}"`);
  return {
    attach: (values.attach ?? []).map((glob) => glob.trim()).filter((glob) => glob !== ""),
    root: values["attach-root"]?.trim() || ".",
    scope: values["no-attachments"] ? "none" : scope,
  };
}

function parse(args: string[]) {
  const options = Object.fromEntries([
    ["attach", { type: "string", multiple: true }] as const,
    ["tag", { type: "string", multiple: true }] as const,
    ...[...Object.keys(PARAMETERS), ...RETRY_NAMES, ...OTHER_NAMES].map((name) => [name, { type: "string" }] as const),
    ...FLAGS.map((name) => [name, { type: "boolean" }] as const),
  ]);
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw toUsageError(error);
  }
}

/**
 * Collects parameters: options first, then those of an execution that a server started, then those of CI system and git. Throws UsageError.
 */
export function toParameters(
  { parameters, tags, flags, attachments }: UploadArguments,
  context: BuildContext,
  build: CiBuild,
  machine: Machine,
): Record<string, string> {
  const { environment, directory } = context;
  const started = environment["ASSAY_EXECUTION_ID"]?.trim() || undefined;
  const { executionKey: key, task, shard, branch, commit, pullRequest, buildUrl, untrusted } = build;
  const isNamed = parameters["execution_key"] !== undefined || parameters["execution_id"] !== undefined;
  const detected = {
    ...(isNamed ? {} : started !== undefined ? { execution_id: started } : { execution_key: key }),
    task_slug: task,
    tag: readTags({ options: tags, environment, isShard: (parameters["shard"] ?? shard) !== undefined }).join(","),
    shard,
    branch,
    commit,
    pull_request: pullRequest,
    base_branch: build.baseBranch,
    base_commit: build.baseCommit,
    commits: parameters["commit"] === undefined ? describeCommits(context, build) : undefined,
    build_url: buildUrl,
    ...machine,
    repository_root: findRepositoryRoot(directory),
    complete: flags.complete ? "true" : undefined,
    untrusted: flags.untrusted || untrusted ? "true" : undefined,
    allow_empty: flags["allow-empty"] ? "true" : undefined,
    // Else the server keeps those of failed cases only.
    attachments: attachments.scope === "all" ? "all" : undefined,
  };
  const known = Object.entries({ ...detected, ...parameters }).filter(
    ([, value]) => value !== undefined && value !== "",
  );
  return Object.fromEntries(known) as Record<string, string>;
}
