/** The command line of `assay upload`, and what it, the environment and the CI system make of an upload's parameters. */

import { parseArgs } from "node:util";
import type { CiBuild } from "./ci.ts";
import type { Machine } from "./machine.ts";
import { readSeconds, UsageError } from "./usage.ts";

export const UPLOAD_USAGE = `  upload FILE|GLOB… [options] [-- command …]    send test reports, of the command if there is one (upload --help)`;

export const UPLOAD_HELP = `Usage: assay upload FILE|GLOB… [options] [-- command …]

Sends test reports to a server, as one upload, and prints the verdict and its address. With a command: runs it first, with
its streams and signals untouched, then sends what it has written; the exit code is the command's.

  --task NAME             which task of the build this is (default: the CI job's name)
  --execution-key KEY     what all jobs of the build have in common (default: the CI build's id)
  --execution-id ID       an execution of the server (default: ASSAY_EXECUTION_ID)
  --shard 2/4             one of several slices of the task
  --branch, --commit, --pull-request, --build-url
                          where the build comes from (default: as the CI system says, or git)
  --base-commit COMMIT    the commit that the branch began from
  --environment NAME
  --host, --system, --image NAME
                          the machine that the tests ran on, its system and its image (default: as the CI system names
                          them, or the machine itself)
  --format NAME           overrides recognition, such as "junit"
  --exit-code N           how the tests ended, where they are not run here
  --allow-empty           no test cases are right, too
  --complete              this is the last upload of the build
  --patience SECONDS      how long a server may be away, in three tries, or the rate limit be used up (default: 120; 0: one try)
  --strict                an upload that fails is an exit code (below)
  --json                  one line of JSON: the server's answer, or { "error": { "message" } }

Required: ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY. Without ASSAY_KEY the id token of the CI job is exchanged for a key, if the
project trusts the repository: ASSAY_ID_TOKEN (GitLab), or what GitHub gives to jobs with the permission "id-token: write".
ASSAY_PUBLIC_URL is the server's address for links and tokens, if it differs from ASSAY_URL. Empty options are ignored. Globs are expanded here, without node_modules and .git; "**" is any number of
folders.

No report, one that is older than the command, or one that cannot be read or has no test cases, is no success: where it is
known how the tests ended, a failure is recorded in its place ("runner exited N", -1 where they claim success). A command that is told to stop (SIGINT, SIGTERM,
SIGHUP) uploads nothing: a cancelled build has no result.

Exit code: the command's, as a shell has it (128 + n for signal n, 127 not found, 126 not executable); else 0, also where the
tests have failed and where the upload has, which is a warning, because no server may break a build. With --strict, and
where the command has not failed itself, it is 1 for a report that is missing or refused, and 3 for a server that is away
or whose address is not set. 2 is a wrong usage.`;

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
  "build-url": "build_url",
  environment: "environment",
  host: "host",
  system: "system",
  image: "image",
  "exit-code": "exit_code",
} as const;
const FLAGS = ["allow-empty", "complete", "strict", "json", "help"] as const;

export type UploadArguments = {
  reports: string[];
  command: string[] | undefined;
  /** By the name of the upload's parameter; none is empty. */
  parameters: Record<string, string>;
  flags: Partial<Record<(typeof FLAGS)[number], boolean>>;
  patienceMs: number;
};

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
  if (flags.help) return { reports: [], command, parameters, flags, patienceMs: PATIENCE_MS };
  if (positionals.length === 0) throw new UsageError("A report is missing after upload: name a file or a glob");
  if (command?.length === 0) throw new UsageError("Missing command after --");
  if (command && parameters["exit_code"] !== undefined)
    throw new UsageError("--exit-code is what the command after -- tells");
  if (parameters["execution_id"] !== undefined && parameters["execution_key"] !== undefined)
    throw new UsageError("upload takes either --execution-id or --execution-key");
  if (!/^-?\d{1,10}$/.test(parameters["exit_code"] ?? "0"))
    throw new UsageError(`--exit-code: expected an integer, got "${parameters["exit_code"]}"`);
  const patienceMs = readSeconds("patience", (values as { patience?: string }).patience) ?? PATIENCE_MS;
  return { reports: positionals, command, parameters, flags, patienceMs };
}

function parse(args: string[]) {
  const options = Object.fromEntries([
    ...[...Object.keys(PARAMETERS), "patience"].map((name) => [name, { type: "string" }] as const),
    ...FLAGS.map((name) => [name, { type: "boolean" }] as const),
  ]);
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message.split("\n")[0]!);
  }
}

type Environment = Record<string, string | undefined>;

/** Options, then what an execution of a server was started with, then what CI system and git say. */
export function toParameters(
  { parameters, flags }: UploadArguments,
  environment: Environment,
  build: CiBuild,
  machine: Machine,
): Record<string, string> {
  const started = environment["ASSAY_EXECUTION_ID"]?.trim() || undefined;
  const { executionKey: key, task, shard, branch, commit, pullRequest, buildUrl } = build;
  const isNamed = parameters["execution_key"] !== undefined || parameters["execution_id"] !== undefined;
  const detected = {
    ...(isNamed ? {} : started !== undefined ? { execution_id: started } : { execution_key: key }),
    task_slug: task,
    shard,
    branch,
    commit,
    pull_request: pullRequest,
    build_url: buildUrl,
    ...machine,
    complete: flags.complete ? "true" : undefined,
    allow_empty: flags["allow-empty"] ? "true" : undefined,
  };
  const known = Object.entries({ ...detected, ...parameters }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as Record<string, string>;
}
