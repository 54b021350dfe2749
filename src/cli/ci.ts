/** What CI systems say of a build in their variables: the table that the upload script and the snippets are tested by. */

import { readFileSync } from "node:fs";

export type CiSystem =
  | "github"
  | "gitlab"
  | "jenkins"
  | "circleci"
  | "azure"
  | "bitbucket"
  | "buildkite"
  | "drone"
  | "woodpecker"
  | "teamcity";

/** What is not known is not there: none of it is ever empty. */
export type CiBuild = {
  system?: CiSystem;
  /** What all jobs of the build have in common. */
  executionKey?: string;
  /** The name of the job, as the snippets of the onboarding name its task. */
  task?: string;
  /** Of a pull request its head, not what CI has merged it to. */
  commit?: string;
  /** Of a pull request its source; of a fork `owner:branch`, because a fork has a "main" of its own; of a tag its name. */
  branch?: string;
  pullRequest?: string;
  buildUrl?: string;
  /** `"2/4"`, where the job is one of several slices of a task; jobs of a matrix are not. */
  shard?: string;
};

type Environment = Record<string, string | undefined>;
type Said = { [Name in keyof CiBuild]: CiBuild[Name] | undefined };
type Sources = {
  /** Undefined where the variable is empty. */
  get: (name: string) => string | undefined;
  /** The text of the file, if there is one. */
  readFile: (path: string) => string | undefined;
  /** What git prints, if it succeeds and prints anything. */
  git: (...args: string[]) => string | undefined;
};

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function askGit(...args: string[]): string | undefined {
  try {
    const { success, stdout } = Bun.spawnSync(["git", ...args], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
    return (success && stdout.toString().trim()) || undefined;
  } catch {
    // There is no git.
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

/** From an index that begins with 0; one of one is no shard. */
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
function readGithub(sources: Sources): Said {
  const { get } = sources;
  const event = parseEvent(sources);
  const web = `${get("GITHUB_SERVER_URL")}/${get("GITHUB_REPOSITORY")}/actions/runs`;
  // The global id of a run is in the addresses of GitHub and Gitea, its number within the repository in Forgejo's.
  const address = get("FORGEJO_ACTIONS") ? get("GITHUB_RUN_NUMBER") : get("GITHUB_RUN_ID");
  const build: Said = {
    executionKey: get("GITHUB_RUN_ID"),
    task: get("GITHUB_JOB"),
    commit: get("GITHUB_SHA"),
    branch: get("GITHUB_HEAD_REF") ?? get("GITHUB_REF_NAME") ?? get("GITHUB_REF"),
    pullRequest: /^refs\/pull\/(\d+)\//.exec(get("GITHUB_REF") ?? "")?.[1],
    buildUrl: `${web}/${address ?? get("GITHUB_RUN_ID")}`,
  };
  const workflow = (...path: string[]) => member(event, "workflow_run", ...path);
  if (workflow("head_sha") !== undefined) {
    // A workflow that runs after another one, often to upload what a fork's may not.
    const isFork = workflow("head_repository", "full_name") !== workflow("repository", "full_name");
    return {
      ...build,
      executionKey: workflow("id"),
      commit: workflow("head_sha"),
      branch: ofOwner(isFork ? workflow("head_repository", "owner", "login") : undefined, workflow("head_branch")),
      pullRequest: member(event, "workflow_run", "pull_requests", 0, "number"),
      buildUrl: workflow("html_url"),
    };
  }
  const pull = (...path: string[]) => member(event, "pull_request", ...path);
  if (pull("number") === undefined) return build;
  // The repository of a fork that was deleted is null.
  const isFork = pull("head", "repo", "full_name") !== pull("base", "repo", "full_name");
  const owner = pull("head", "repo", "owner", "login") ?? pull("head", "user", "login");
  return {
    ...build,
    commit: pull("head", "sha") ?? build.commit,
    branch: ofOwner(isFork ? owner : undefined, get("GITHUB_HEAD_REF") ?? pull("head", "ref")),
    pullRequest: pull("number"),
  };
}

function readGitlab({ get }: Sources): Said {
  const [index, total, job] = [get("CI_NODE_INDEX"), get("CI_NODE_TOTAL"), get("CI_JOB_NAME")];
  // "parallel: 4" makes shards of a job, and numbers its name; a matrix has the same variables and makes other names.
  const suffix = ` ${index}/${total}`;
  const isShard = job !== undefined && job.endsWith(suffix);
  const [source, target] = [get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH"), get("CI_MERGE_REQUEST_PROJECT_PATH")];
  const isFork = source !== undefined && target !== undefined && source !== target;
  const external = (what: string) => get(`CI_EXTERNAL_PULL_REQUEST_${what}`);
  return {
    executionKey: get("CI_PIPELINE_ID"),
    task: isShard ? job.slice(0, -suffix.length) : job,
    commit: get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") ?? external("SOURCE_BRANCH_SHA") ?? get("CI_COMMIT_SHA"),
    branch: ofOwner(
      isFork ? source.split("/").slice(0, -1).join("/") : undefined,
      get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") ?? external("SOURCE_BRANCH_NAME") ?? get("CI_COMMIT_REF_NAME"),
    ),
    pullRequest: get("CI_MERGE_REQUEST_IID") ?? external("IID"),
    buildUrl: get("CI_JOB_URL") ?? get("CI_PIPELINE_URL"),
    shard: isShard ? `${index}/${total}` : undefined,
  };
}

function readJenkins({ get, git }: Sources): Said {
  const branch = get("BRANCH_NAME");
  // Where Jenkins has merged a pull request before it builds it, its head is what was fetched as its branch.
  const head = get("CHANGE_ID") && branch && git("rev-parse", "-q", "--verify", `origin/${branch}`);
  const fetched = get("GIT_BRANCH")?.replace(/^(?:refs\/)?(?:remotes\/)?origin\//, "");
  return {
    executionKey: get("BUILD_TAG"),
    task: get("STAGE_NAME"),
    commit: head || get("GIT_COMMIT"),
    branch: ofOwner(
      ownerOf(get("CHANGE_FORK")),
      get("CHANGE_BRANCH") ?? branch ?? (fetched === "detached" ? undefined : fetched),
    ),
    pullRequest: get("CHANGE_ID"),
    buildUrl: get("BUILD_URL"),
  };
}

/** The parts of a path without the empty ones at its end. */
function lastParts(path: string | undefined): string[] {
  const parts = path?.split("/") ?? [];
  return parts.slice(0, parts.findLastIndex((part) => part !== "") + 1);
}

/** A pull request of a fork is the branch "pull/7" there. */
const readCircle = ({ get }: Sources): Said => ({
  executionKey: get("CIRCLE_WORKFLOW_ID"),
  task: get("CIRCLE_JOB"),
  commit: get("CIRCLE_SHA1"),
  branch: get("CIRCLE_BRANCH") ?? get("CIRCLE_TAG"),
  pullRequest: /^\d+$/.exec(lastParts(get("CIRCLE_PULL_REQUEST")).at(-1) ?? "")?.[0] ?? get("CIRCLE_PR_NUMBER"),
  buildUrl: get("CIRCLE_BUILD_URL"),
  shard: toShard(get("CIRCLE_NODE_INDEX"), get("CIRCLE_NODE_TOTAL")),
});

/** GitHub's forks are ".../alice/web", those of Azure Repos ".../_git/web-of-alice". */
function ownerOfRepository(url: string | undefined): string | undefined {
  const parts = lastParts(url);
  return parts.at(-2) === "_git" ? parts.at(-1) : parts.at(-2);
}

function readAzure({ get }: Sources): Said {
  const job = get("SYSTEM_JOBIDENTIFIER");
  // "parallel: 4" makes shards of a job; a matrix makes jobs of other names.
  const isShard = get("SYSTEM_PARALLELEXECUTIONTYPE") === "MultiMachine";
  const isFork = get("SYSTEM_PULLREQUEST_ISFORK")?.toLowerCase() === "true";
  const web = `${get("SYSTEM_COLLECTIONURI")}${encodeURIComponent(get("SYSTEM_TEAMPROJECT") ?? "")}`;
  return {
    executionKey: get("BUILD_BUILDID"),
    task: isShard ? job?.replace(/\.[^.]*$/, "") : job?.replace(/\.__default$/, ""),
    commit: get("SYSTEM_PULLREQUEST_SOURCECOMMITID") ?? get("BUILD_SOURCEVERSION"),
    branch: ofOwner(
      isFork ? ownerOfRepository(get("SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI")) : undefined,
      get("SYSTEM_PULLREQUEST_SOURCEBRANCH") ?? get("BUILD_SOURCEBRANCH"),
    ),
    // Of a repository at GitHub the id is another number.
    pullRequest: get("SYSTEM_PULLREQUEST_PULLREQUESTNUMBER") ?? get("SYSTEM_PULLREQUEST_PULLREQUESTID"),
    buildUrl: `${web}/_build/results?buildId=${get("BUILD_BUILDID")}`,
    shard: isShard ? `${get("SYSTEM_JOBPOSITIONINPHASE")}/${get("SYSTEM_TOTALJOBSINPHASE")}` : undefined,
  };
}

/** Parallel steps may be anything, so they are no shards by themselves; nor have steps a name that they know. */
function readBitbucket({ get }: Sources): Said {
  const number = get("BITBUCKET_BUILD_NUMBER");
  const repository = get("BITBUCKET_REPO_FULL_NAME");
  return {
    executionKey: number,
    commit: get("BITBUCKET_COMMIT"),
    branch: get("BITBUCKET_BRANCH") ?? get("BITBUCKET_TAG"),
    pullRequest: get("BITBUCKET_PR_ID"),
    buildUrl: repository && `https://bitbucket.org/${repository}/pipelines/results/${number}`,
  };
}

function readBuildkite({ get, git }: Sources): Said {
  const isParallel = get("BUILDKITE_PARALLEL_JOB_COUNT") !== undefined;
  const commit = get("BUILDKITE_COMMIT");
  return {
    executionKey: get("BUILDKITE_BUILD_ID"),
    // The label of a parallel step may number its jobs; that of a matrix names its cell.
    task: (isParallel ? get("BUILDKITE_STEP_KEY") : get("BUILDKITE_LABEL")) ?? get("BUILDKITE_COMMAND"),
    commit: commit === "HEAD" ? git("rev-parse", "HEAD") : commit,
    branch: get("BUILDKITE_BRANCH"),
    pullRequest: get("BUILDKITE_PULL_REQUEST"),
    buildUrl: get("BUILDKITE_BUILD_URL"),
    shard: toShard(get("BUILDKITE_PARALLEL_JOB"), get("BUILDKITE_PARALLEL_JOB_COUNT")),
  };
}

const readDrone = ({ get }: Sources): Said => ({
  executionKey: get("DRONE_BUILD_NUMBER"),
  task: get("DRONE_STAGE_NAME"),
  commit: get("DRONE_COMMIT_SHA"),
  branch: get("DRONE_TAG") ?? get("DRONE_SOURCE_BRANCH") ?? get("DRONE_BRANCH"),
  pullRequest: get("DRONE_PULL_REQUEST"),
  buildUrl: get("DRONE_BUILD_LINK"),
});

const readWoodpecker = ({ get }: Sources): Said => ({
  executionKey: get("CI_PIPELINE_NUMBER"),
  task: get("CI_WORKFLOW_NAME"),
  commit: get("CI_COMMIT_SHA"),
  // Of a pull request CI_COMMIT_BRANCH is the target.
  branch: get("CI_COMMIT_TAG") ?? get("CI_COMMIT_SOURCE_BRANCH") ?? get("CI_COMMIT_BRANCH"),
  pullRequest: get("CI_COMMIT_PULL_REQUEST"),
  buildUrl: get("CI_PIPELINE_URL"),
});

/** It tells little unless its builds are configured to. */
const readTeamcity = ({ get }: Sources): Said => ({ commit: get("BUILD_VCS_NUMBER"), buildUrl: get("BUILD_URL") });

/** The variable that only this system sets, and what it then says. */
const SYSTEMS: [system: CiSystem, variable: string, read: (sources: Sources) => Said][] = [
  ["github", "GITHUB_ACTIONS", readGithub],
  ["gitlab", "GITLAB_CI", readGitlab],
  ["circleci", "CIRCLECI", readCircle],
  ["azure", "TF_BUILD", readAzure],
  ["bitbucket", "BITBUCKET_BUILD_NUMBER", readBitbucket],
  ["buildkite", "BUILDKITE", readBuildkite],
  ["drone", "DRONE", readDrone],
  ["teamcity", "TEAMCITY_VERSION", readTeamcity],
  // Last, because an agent of Jenkins may have started any of the others.
  ["jenkins", "JENKINS_URL", readJenkins],
];

function detectSystem({ get }: Sources): (typeof SYSTEMS)[number] | undefined {
  // Versions of it that were forked from Drone say that they are both.
  if (get("CI") === "woodpecker") return ["woodpecker", "CI", readWoodpecker];
  return SYSTEMS.find(([, variable]) => get(variable) !== undefined);
}

/** No half of a character is left where a text is cut. */
const cut = (text: string | undefined, max: number) => text?.slice(0, max).toWellFormed();

function isShard(shard: string): boolean {
  const [index, total] = /^\d{1,4}\/\d{1,4}$/.test(shard) ? shard.split("/").map(Number) : [];
  return index !== undefined && index >= 1 && index <= total!;
}

const isAddress = (url: string) => url.length <= 2_000 && /^https?:\/\/[^/?#\s]/i.test(url) && URL.canParse(url);

/**
 * What the system says, and git of commit and branch where it does not. What the server would refuse is left out or cut:
 * no name of a branch may cost an upload.
 */
export function detectBuild(
  environment: Environment,
  readFile: Sources["readFile"] = readText,
  git: Sources["git"] = askGit,
): CiBuild {
  const get = (name: string) => {
    const value = environment[name]?.trim();
    return value === "" || value === "false" ? undefined : value;
  };
  const sources = { get, readFile, git };
  const [system, , read] = detectSystem(sources) ?? [];
  const said: Said = read?.(sources) ?? {};
  const build: Said = {
    system,
    // The end of a long one tells the builds of a job apart.
    executionKey: said.executionKey?.slice(-200).toWellFormed(),
    task: cut(said.task, 200),
    commit: cut(said.commit ?? git("rev-parse", "HEAD"), 200),
    branch: cut(toBranch(said.branch ?? git("branch", "--show-current")), 500),
    pullRequest: cut(said.pullRequest, 200),
    buildUrl: said.buildUrl !== undefined && isAddress(said.buildUrl) ? said.buildUrl : undefined,
    shard: said.shard !== undefined && isShard(said.shard) ? said.shard : undefined,
  };
  return Object.fromEntries(Object.entries(build).filter(([, value]) => value !== undefined)) as CiBuild;
}
