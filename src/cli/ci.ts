/** Detects the build from the variables of CI systems, by the table in rules/ci_systems.ts. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { trainRef } from "../rules/branch.ts";
import { findBaseCommit, type Git } from "./base_commit.ts";
import type { BuildContext, EnvironmentVariables } from "./invocation.ts";
import { gitLogOf, keepCommitLines, MAX_COMMITS } from "../schema/commits.ts";
import { CI_SYSTEM_LIST, type CiField, type CiSystemName } from "../rules/ci_systems.ts";

/** Unknown fields are absent; no field is ever empty. */
export type CiBuild = {
  system?: CiSystemName;
  /** The value that all jobs of the build share. */
  executionKey?: string;
  /** The name of the job. */
  task?: string;
  /** The commit; for a pull request that of its head, not the merge commit of CI. */
  commit?: string;
  /** The branch; for a pull request its source branch, for a fork `owner:branch`, because a fork has its own "main", for a tag its name. */
  branch?: string;
  pullRequest?: string;
  /** The branch that the pull request is to be merged into. */
  baseBranch?: string;
  /** The newest commit of that branch that the tested tree contains. */
  baseCommit?: string;
  buildUrl?: string;
  /** The default branch, which few systems provide. */
  defaultBranch?: string;
  /** Whether the job uploads reports from the workflow of a fork. */
  untrusted?: true;
  /** `"2/4"`, where the job is one of several slices of a task; jobs of a matrix are not. */
  shard?: string;
};

type Said = { [Name in keyof CiBuild]: CiBuild[Name] | undefined };
type Sources = {
  /** Undefined where the variable is empty. */
  get: (name: string) => string | undefined;
  /** The text of the file, if there is one. */
  readFile: (path: string) => string | undefined;
  git: Git;
};
/** The variables of the system, and what the table of systems finds in them. */
type Variables = Sources & { found: Record<CiField, string | undefined> };

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

const GIT_TIMEOUT_MS = 5_000;

/** Returns the output of git in the working directory; undefined if it fails, prints nothing or does not exist. It fetches nothing. */
export function askGit({ environment, directory }: BuildContext, ...args: string[]): string | undefined {
  try {
    // A partial clone would otherwise fetch missing objects.
    const env = { ...environment, GIT_NO_LAZY_FETCH: "1" };
    const streams = { stdin: "ignore", stdout: "pipe", stderr: "ignore" } as const;
    const options = { cwd: directory, env, timeout: GIT_TIMEOUT_MS, ...streams };
    const { success, stdout } = Bun.spawnSync(["git", ...args], options);
    return (success && stdout.toString().trim()) || undefined;
  } catch {
    return undefined;
  }
}

/** A member of parsed JSON as text; undefined where there is none. */
function member(json: unknown, ...path: (string | number)[]): string | undefined {
  let value = json;
  for (const name of path) value = (value as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

const toBranch = (ref: string | undefined) => ref?.replace(/^refs\/heads\/(?=.)/, "");

/** `owner` is given for a fork. */
const ofOwner = (owner: string | undefined, branch: string | undefined) =>
  owner === undefined || branch === undefined ? branch : `${owner}:${toBranch(branch)}`;

/** The first of the parts of "alice/web". */
const ownerOf = (path: string | undefined) => path?.split("/")[0];

/** Converts an index from 0; a single job is not a shard. */
function toShard(index: string | undefined, total: string | undefined): string | undefined {
  if (!/^\d+$/.test(index ?? "") || !/^\d+$/.test(total ?? "") || Number(total) <= 1) return undefined;
  return `${Number(index) + 1}/${Number(total)}`;
}

function parseEvent({ get, readFile }: Sources): unknown {
  const path = get("GITHUB_EVENT_PATH");
  try {
    return JSON.parse((path && readFile(path)) || "null");
  } catch {
    return null;
  }
}

/** Gitea and Forgejo set the same variables. */
function readGithub(sources: Variables): Said {
  const { get, git, found } = sources;
  const event = parseEvent(sources);
  // The global id of a run is in the addresses of GitHub and Gitea, its number within the repository in Forgejo's.
  const number = get("FORGEJO_ACTIONS") && get("GITHUB_RUN_NUMBER");
  const build: Said = {
    ...found,
    task: get("GITHUB_JOB"),
    pullRequest: /^refs\/pull\/(\d+)\//.exec(get("GITHUB_REF") ?? "")?.[1],
    defaultBranch: member(event, "repository", "default_branch"),
    buildUrl: number ? `${found.buildUrl?.slice(0, -`${found.executionKey}`.length)}${number}` : found.buildUrl,
  };
  const workflow = (...path: (string | number)[]) => member(event, "workflow_run", ...path);
  if (workflow("head_sha") !== undefined) {
    // A workflow that runs after another one, often to upload what a fork's may not.
    const isFork = workflow("head_repository", "full_name") !== workflow("repository", "full_name");
    return {
      ...build,
      executionKey: workflow("id"),
      commit: workflow("head_sha"),
      branch: ofOwner(isFork ? workflow("head_repository", "owner", "login") : undefined, workflow("head_branch")),
      pullRequest: workflow("pull_requests", 0, "number"),
      baseBranch: workflow("pull_requests", 0, "base", "ref"),
      baseCommit: workflow("pull_requests", 0, "base", "sha"),
      buildUrl: workflow("html_url"),
      untrusted: isFork ? true : undefined,
    };
  }
  const pull = (...path: string[]) => member(event, "pull_request", ...path);
  if (pull("number") === undefined) return build;
  // The repository of a fork that was deleted is null.
  const isFork = pull("head", "repo", "full_name") !== pull("base", "repo", "full_name");
  const owner = pull("head", "repo", "owner", "login") ?? pull("head", "user", "login");
  // The merge with the base is tested. A checkout says whether this is so, and with which commit.
  const isMerge = get("GITHUB_EVENT_NAME") === "pull_request" && git("rev-parse", "HEAD") === undefined;
  return {
    ...build,
    baseCommit: isMerge ? pull("base", "sha") : undefined,
    commit: pull("head", "sha") ?? build.commit,
    branch: ofOwner(isFork ? owner : undefined, get("GITHUB_HEAD_REF") ?? pull("head", "ref")),
    pullRequest: pull("number"),
  };
}

function readGitlab({ get, found }: Variables): Said {
  const [index, total, job] = [get("CI_NODE_INDEX"), get("CI_NODE_TOTAL"), get("CI_JOB_NAME")];
  // "parallel: 4" makes shards of a job, and numbers its name; a matrix has the same variables and makes other names.
  const suffix = ` ${index}/${total}`;
  const isShard = job !== undefined && job.endsWith(suffix);
  const [source, target] = [get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH"), get("CI_MERGE_REQUEST_PROJECT_PATH")];
  const isFork = source !== undefined && target !== undefined && source !== target;
  const isTrain = get("CI_MERGE_REQUEST_EVENT_TYPE") === "merge_train" && found.pullRequest !== undefined;
  return {
    ...found,
    // A merge train tests what the merge requests in front of it make of the target branch, and not the head of its own.
    ...(isTrain ? { commit: get("CI_COMMIT_SHA") } : {}),
    task: isShard ? job.slice(0, -suffix.length) : job,
    defaultBranch: get("CI_DEFAULT_BRANCH"),
    branch: isTrain
      ? trainRef(found.pullRequest!)
      : ofOwner(isFork ? source.split("/").slice(0, -1).join("/") : undefined, found.branch),
    shard: isShard ? `${index}/${total}` : undefined,
  };
}

function readJenkins({ get, git, found }: Variables): Said {
  const branch = get("BRANCH_NAME");
  // If Jenkins merged the pull request before the build, its head is the commit that was fetched as its branch.
  const head = found.pullRequest && branch && git("rev-parse", "-q", "--verify", `origin/${branch}`);
  const isNamed = (get("CHANGE_BRANCH") ?? branch) !== undefined;
  const fetched = found.branch?.replace(/^(?:refs\/)?(?:remotes\/)?origin\//, "");
  return {
    ...found,
    task: get("STAGE_NAME"),
    commit: head || found.commit,
    branch: ofOwner(ownerOf(get("CHANGE_FORK")), isNamed ? found.branch : fetched === "detached" ? undefined : fetched),
  };
}

/** The parts of a path without the empty ones at its end. */
function lastParts(path: string | undefined): string[] {
  const parts = path?.split("/") ?? [];
  return parts.slice(0, parts.findLastIndex((part) => part !== "") + 1);
}

/** A pull request of a fork is the branch "pull/7" there. */
const readCircle = ({ get, found }: Variables): Said => ({
  ...found,
  task: get("CIRCLE_JOB"),
  pullRequest: /^\d+$/.exec(lastParts(get("CIRCLE_PULL_REQUEST")).at(-1) ?? "")?.[0] ?? get("CIRCLE_PR_NUMBER"),
  shard: toShard(get("CIRCLE_NODE_INDEX"), get("CIRCLE_NODE_TOTAL")),
});

/** GitHub's forks are ".../alice/web", those of Azure Repos ".../_git/web-of-alice". */
function ownerOfRepository(url: string | undefined): string | undefined {
  const parts = lastParts(url);
  return parts.at(-2) === "_git" ? parts.at(-1) : parts.at(-2);
}

function readAzure({ get, found }: Variables): Said {
  const job = get("SYSTEM_JOBIDENTIFIER");
  // "parallel: 4" makes shards of a job; a matrix makes jobs of other names.
  const isShard = get("SYSTEM_PARALLELEXECUTIONTYPE") === "MultiMachine";
  const isFork = get("SYSTEM_PULLREQUEST_ISFORK")?.toLowerCase() === "true";
  // The name of a project may have spaces.
  const [collection, project] = [get("SYSTEM_COLLECTIONURI"), get("SYSTEM_TEAMPROJECT")];
  const path = found.buildUrl?.slice(`${collection}${project}`.length);
  return {
    ...found,
    task: isShard ? job?.replace(/\.[^.]*$/, "") : job?.replace(/\.__default$/, ""),
    branch: ofOwner(
      isFork ? ownerOfRepository(get("SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI")) : undefined,
      found.branch,
    ),
    buildUrl: `${collection}${encodeURIComponent(project ?? "")}${path}`,
    shard: isShard ? `${get("SYSTEM_JOBPOSITIONINPHASE")}/${get("SYSTEM_TOTALJOBSINPHASE")}` : undefined,
  };
}

/**
 * Parallel steps may be anything, so they are not shards by themselves, and a step does not know its name. A build without
 * the name of its repository has no address.
 */
const readBitbucket = ({ get, found }: Variables): Said => ({
  ...found,
  buildUrl: get("BITBUCKET_REPO_FULL_NAME") && found.buildUrl,
});

function readBuildkite({ get, git, found }: Variables): Said {
  const isParallel = get("BUILDKITE_PARALLEL_JOB_COUNT") !== undefined;
  return {
    ...found,
    // The label of a parallel step may number its jobs; that of a matrix names its cell.
    task: (isParallel ? get("BUILDKITE_STEP_KEY") : get("BUILDKITE_LABEL")) ?? get("BUILDKITE_COMMAND"),
    commit: found.commit === "HEAD" ? git("rev-parse", "HEAD") : found.commit,
    shard: toShard(get("BUILDKITE_PARALLEL_JOB"), get("BUILDKITE_PARALLEL_JOB_COUNT")),
  };
}

/** Adds to the fields of the table what depends on more than one variable, on files or on git. */
const READERS: Record<CiSystemName, (variables: Variables) => Said> = {
  github: readGithub,
  gitlab: readGitlab,
  circleci: readCircle,
  azure: readAzure,
  bitbucket: readBitbucket,
  buildkite: readBuildkite,
  drone: ({ get, found }) => ({
    ...found,
    task: get("DRONE_STAGE_NAME"),
    baseBranch: found.pullRequest && found.baseBranch,
  }),
  woodpecker: ({ get, found }) => ({ ...found, task: get("CI_WORKFLOW_NAME") }),
  teamcity: ({ found }) => found,
  jenkins: readJenkins,
};

/** Returns the first source that is not empty. */
function findField(sources: readonly string[], get: Sources["get"]): string | undefined {
  for (const source of sources) {
    const value = source.includes("$")
      ? source.replace(/\$([A-Z_]+)/g, (_, name: string) => `${get(name)}`)
      : get(source);
    if (value !== undefined) return value;
  }
  return undefined;
}

function detectSystem({ get }: Sources): (typeof CI_SYSTEM_LIST)[number] | undefined {
  return CI_SYSTEM_LIST.find(([, { recognisedBy }]) => {
    const value = get(recognisedBy.variable);
    return recognisedBy.value === undefined ? value !== undefined : value === recognisedBy.value;
  });
}

function readVariables(sources: Sources): Said {
  const [name, system] = detectSystem(sources) ?? [];
  if (name === undefined || system === undefined) return {};
  const find = (field: CiField) => findField(system.sources[field], sources.get);
  const found = {
    executionKey: find("executionKey"),
    commit: find("commit"),
    branch: find("branch"),
    pullRequest: find("pullRequest"),
    baseBranch: toBranch(find("baseBranch")),
    baseCommit: find("baseCommit"),
    buildUrl: find("buildUrl"),
  };
  const said = READERS[name]({ ...sources, found });
  const baseCommit = said.baseCommit ?? (said.pullRequest && findBaseCommit(said, sources.git));
  return { ...said, baseCommit: baseCommit === said.commit ? undefined : baseCommit, system: name };
}

/** Cuts a text between characters. */
const cut = (text: string | undefined, max: number) => text?.slice(0, max).toWellFormed();

function isShard(shard: string): boolean {
  const [index, total] = /^\d{1,4}\/\d{1,4}$/.test(shard) ? shard.split("/").map(Number) : [];
  return index !== undefined && index >= 1 && index <= total!;
}

const isAddress = (url: string) => url.length <= 2_000 && /^https?:\/\/[^/?#\s]/i.test(url) && URL.canParse(url);

/**
 * Returns the values of the CI system, with commit and branch from git as a fallback. Values that the server would refuse are
 * omitted or cut, so that the name of a branch cannot make an upload fail.
 */
export function detectBuild(
  environment: EnvironmentVariables,
  readFile: Sources["readFile"],
  git: Sources["git"],
): CiBuild {
  const get = (name: string) => {
    const value = environment[name]?.trim();
    return value === "" || value === "false" ? undefined : value;
  };
  const said = readVariables({ get, readFile, git });
  const build: Said = {
    system: said.system,
    // The end of a long key distinguishes the builds of a job.
    executionKey: said.executionKey?.slice(-200).toWellFormed(),
    task: cut(said.task, 200),
    commit: cut(said.commit ?? git("rev-parse", "HEAD"), 200),
    branch: cut(toBranch(said.branch ?? git("branch", "--show-current")), 500),
    pullRequest: cut(said.pullRequest, 200),
    defaultBranch: said.defaultBranch,
    baseBranch: cut(said.baseBranch, 500),
    baseCommit: cut(said.baseCommit, 200),
    untrusted: said.untrusted,
    buildUrl: said.buildUrl !== undefined && isAddress(said.buildUrl) ? said.buildUrl : undefined,
    shard: said.shard !== undefined && isShard(said.shard) ? said.shard : undefined,
  };
  return Object.fromEntries(Object.entries(build).filter(([, value]) => value !== undefined)) as CiBuild;
}

/** The same for a working directory and its repository. */
export const findCiBuild = (context: BuildContext): CiBuild =>
  detectBuild(
    context.environment,
    (path) => readText(resolve(context.directory, path)),
    (...args) => askGit(context, ...args),
  );

/** 50 lines of this length are no more than an upload may have. */
const MAX_LINE = 900;
/** Number of commits that are described where no base is known. */
const LISTED_COMMITS = 20;

/** Describes the tested commit and those before it, up to the base, as lines of git; "" where the checkout does not have it. */
export function describeCommits(
  context: BuildContext,
  { commit, baseCommit }: Pick<CiBuild, "commit" | "baseCommit">,
): string {
  if (commit === undefined || !/^[0-9a-f]{7,64}$/i.test(commit)) return "";
  const log = gitLogOf(commit, baseCommit === undefined ? LISTED_COMMITS : MAX_COMMITS);
  const sinceBase = baseCommit === undefined ? undefined : askGit(context, ...log, `^${baseCommit}`, "--");
  return keepCommitLines(sinceBase ?? askGit(context, ...log, "--") ?? "", MAX_LINE);
}
