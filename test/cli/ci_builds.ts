/** Builds as the variables of CI systems describe them, and what Assay makes of each. */

import type { CiBuild } from "../../src/cli/ci.ts";
import type { CiSystemName } from "../../src/rules/ci_systems.ts";

export const HEAD = "0123456789abcdef0123456789abcdef01234567";
export const MERGE = "fedcba9876543210fedcba9876543210fedcba98";
export const BASE = "ba5eba5eba5eba5eba5eba5eba5eba5eba5eba5e";
/** Where GITHUB_EVENT_PATH says that the event is. */
export const EVENT_PATH = "/home/runner/work/_temp/_github_workflow/event.json";

type Variables = Record<string, string>;
type Outside = {
  /** The text of GitHub's event file. */
  event?: string;
  /** What git prints, by the last argument. */
  git?: Record<string, string>;
  /** tools/assay-upload.sh does not know this variant. */
  notInScript?: true;
};
export type BuildOfCi = Outside & { name: string; variables: Variables; build: CiBuild };

/** Reads "A=1 B=2". */
const read = (given: Variables | string): Variables =>
  typeof given === "string"
    ? Object.fromEntries([...given.matchAll(/(\w+)=(\S*)/g)].map(([, name, value]) => [name, value]))
    : given;

/** Returns a function that describes builds of a system by what differs from the given variables and fields. */
const builds =
  (system: CiSystemName, base: Variables | string, common: CiBuild) =>
  (name: string, variables: Variables | string, build: CiBuild = {}, outside: Outside = {}): BuildOfCi => ({
    name: `${system}: ${name}`,
    variables: { ...read(base), ...read(variables) },
    build: { system, ...common, ...build },
    ...outside,
  });

/** The commit that is checked out, as git shows it. */
export const rawOf = (commit: string, ...parents: string[]) =>
  [`commit ${commit}`, "tree 1", ...parents.map((one) => `parent ${one}`), "", `    parent ${commit}`].join("\n");
const gitOf = (git: Record<string, string>): Outside => ({ git });
const onBase = { baseBranch: "main", baseCommit: BASE };
/** Only `assay upload` knows it. */
const RARE: Outside = { notInScript: true };
const eventOf = (json: unknown): Outside => ({ event: JSON.stringify(json) });

const GITHUB = `CI=true GITHUB_ACTIONS=true GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=acme/web
  GITHUB_RUN_ID=9876543210 GITHUB_RUN_NUMBER=42 GITHUB_RUN_ATTEMPT=1 GITHUB_JOB=unit GITHUB_HEAD_REF= GITHUB_BASE_REF=
  GITHUB_EVENT_PATH=${EVENT_PATH}`;
const RUNS = "https://github.com/acme/web/actions/runs";
const github = builds("github", GITHUB, {
  ...{ executionKey: "9876543210", task: "unit", commit: HEAD, buildUrl: `${RUNS}/9876543210` },
});
const MERGED = { GITHUB_EVENT_NAME: "pull_request", GITHUB_SHA: MERGE, GITHUB_REF: "refs/pull/7/merge" };
const ofFeature = { ...MERGED, GITHUB_REF_NAME: "7/merge", GITHUB_HEAD_REF: "feat/a", GITHUB_BASE_REF: "main" };
const ofMain = { ...ofFeature, GITHUB_HEAD_REF: "main" };
/** It runs on the base branch, and only the event names the pull request. */
const ofTarget = { ...ofMain, GITHUB_EVENT_NAME: "pull_request_target", GITHUB_REF: "refs/heads/main" };
const onPull = { branch: "feat/a", pullRequest: "7" };
const onMain = { ...onPull, baseBranch: "main" };
const onFork = { branch: "alice:main", pullRequest: "7" };

const repository = (name: string) => ({
  ...{ full_name: name, owner: { login: name.split("/")[0] }, url: `https://api.github.com/repos/${name}` },
  statuses_url: `https://api.github.com/repos/${name}/statuses/{sha}`,
});
/** As api.github.com describes a pull request; of other objects only what may mislead. */
const pullOf = (source: string | null) => ({
  url: "https://api.github.com/repos/acme/web/pulls/7",
  number: 7,
  body: `"url": "https://api.github.com/repos/acme/web/pulls/666", "statuses_url": "https://x/statuses/${MERGE}"`,
  milestone: { url: "https://api.github.com/repos/acme/web/milestones/3", number: 3 },
  head: {
    ...{ label: `${(source ?? "alice/web").split("/")[0]}:main`, ref: "main", user: { login: "alice" } },
    repo: source === null ? null : repository(source),
    sha: HEAD,
  },
  base: { ref: "main", sha: BASE, repo: repository("acme/web") },
});
const pull = (source: string | null) => eventOf({ action: "synchronize", number: 7, pull_request: pullOf(source) });
const { head, base, ...rest } = pullOf("alice/web");

/** Texts of people in the event that look like its fields. */
const misleading = {
  title: `"}},"pull_request":{"number":666,"head":{"sha":"${MERGE}"}} \\" [ { , :`,
  labels: [{ name: "sha" }],
  note: `\\\\"\n$(id) \`id\` EVENT\nEVENT\n\t*`,
  ...pullOf("acme/web"),
};
const misleadingFields = {
  ...misleading,
  labels: [{ number: 3, head: { sha: MERGE } }],
  "a/b": { head: { sha: MERGE } },
};

const workflow_run = {
  id: 1234,
  head_sha: HEAD,
  head_branch: "main",
  html_url: `${RUNS}/1234`,
  pull_requests: [{ number: 7, head: { sha: MERGE }, base: { ref: "main", sha: BASE } }, { number: 8 }],
  repository: repository("acme/web"),
};
const WORKFLOW = { GITHUB_SHA: MERGE, GITHUB_REF_NAME: "main", GITHUB_EVENT_NAME: "workflow_run" };
const uploaded = { executionKey: "1234", buildUrl: `${RUNS}/1234`, pullRequest: "7", ...onBase };
const queue = `gh-readonly-queue/main/pr-7-${MERGE}`;
const PUSH = `GITHUB_SHA=${HEAD} GITHUB_REF=refs/heads/feat/a GITHUB_REF_NAME=feat/a`;
const merge_group = { head_sha: HEAD, head_ref: `refs/heads/${queue}`, base_ref: "refs/heads/main" };
const gitea = `GITEA_ACTIONS=true GITHUB_SERVER_URL=https://git.test GITHUB_SHA=${HEAD} GITHUB_REF_NAME=main`;

const [isPull, isFork, forkOfMain] = [
  { ...onPull, ...onBase },
  { ...onFork, ...onBase },
  { ...onFork, baseBranch: "main" },
];
const onParent = { ...forkOfMain, baseCommit: MERGE };
const checkout = (raw: string, git = {}) => ({ ...pull("alice/web"), git: { HEAD: "1", "--format=raw": raw, ...git } });
const elsewhere = eventOf({ pull_request: misleadingFields });

const GITHUB_BUILDS = [
  github("a push", PUSH, { branch: "feat/a" }, eventOf({ ref: "refs/heads/feat/a", after: HEAD })),
  github("a pull request is its head, not the merge commit", ofFeature, isPull, pull("acme/web")),
  github("the main branch of a fork is not ours", ofMain, isFork, pull("alice/web")),
  github("the main branch of a fork that was deleted is not ours", ofMain, isFork, pull(null)),
  github("a workflow on the base branch", ofTarget, forkOfMain, pull("alice/web")),
  github("a shallow checkout of the merge", ofMain, onParent, checkout(rawOf("1", MERGE, HEAD))),
  github("a checkout of the head", ofMain, onParent, checkout(rawOf(HEAD, "1"), { "origin/main": MERGE })),
  github("a shallow checkout of the head", ofMain, forkOfMain, checkout(rawOf(HEAD, "1"))),
  github("an event in another order", ofMain, isFork, eventOf({ pull_request: { ...rest, base, head } })),
  github("an event of few fields", ofFeature, onMain, eventOf({ pull_request: { number: 7, head: { sha: HEAD } } })),
  github("texts that look like fields", ofFeature, isPull, eventOf({ pull_request: misleading })),
  github("fields elsewhere of the same names", ofFeature, isPull, { ...elsewhere, notInScript: true }),
  ...[undefined, `{"pull_request": {"number`].map((event) =>
    github(`the event ${event}`, ofFeature, { ...onMain, commit: MERGE }, event ? { event } : {}),
  ),
  // It must not count as the default branch.
  github("a tag", PUSH.replaceAll("heads/feat/a", "tags/v1.2.0").replace("feat/a", "v1.2.0"), { branch: "v1.2.0" }),
  ...(["alice/web", null, "acme/web"] as const).map((name) =>
    github(
      `a workflow that uploads what another one has tested for ${name}`,
      WORKFLOW,
      {
        ...{ ...uploaded, branch: name === "alice/web" ? "alice:main" : "main" },
        ...(name === "acme/web" ? {} : { untrusted: true }),
      },
      {
        ...eventOf({ workflow_run: { ...workflow_run, head_repository: name && repository(name) } }),
        git: { "--format=raw": rawOf(MERGE), "origin/main": MERGE },
        notInScript: true,
      },
    ),
  ),
  github("a merge queue", PUSH.replaceAll("feat/a", queue), { branch: queue }, eventOf({ merge_group })),
  github("Gitea", gitea, { branch: "main", buildUrl: "https://git.test/acme/web/actions/runs/9876543210" }),
  github("Forgejo has the number of the run in its addresses", `${gitea} FORGEJO_ACTIONS=true`, {
    branch: "main",
    buildUrl: "https://git.test/acme/web/actions/runs/42",
  }),
];

const gitlab = builds(
  "gitlab",
  `CI=true GITLAB_CI=true CI_PIPELINE_ID=1000123 CI_PIPELINE_IID=12 CI_PROJECT_PATH=acme/tools/web CI_JOB_NAME=unit
    CI_JOB_URL=https://gitlab.com/acme/tools/web/-/jobs/555 CI_NODE_TOTAL=1 CI_COMMIT_SHA=${HEAD} CI_COMMIT_REF_NAME=main`,
  {
    ...{ executionKey: "1000123", task: "unit", commit: HEAD, branch: "main" },
    buildUrl: "https://gitlab.com/acme/tools/web/-/jobs/555",
  },
);
const MERGE_REQUEST = `CI_MERGE_REQUEST_IID=7 CI_MERGE_REQUEST_PROJECT_PATH=acme/tools/web
  CI_MERGE_REQUEST_SOURCE_PROJECT_PATH=acme/tools/web CI_MERGE_REQUEST_SOURCE_BRANCH_NAME=feat/a
  CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main CI_MERGE_REQUEST_TARGET_BRANCH_SHA= CI_MERGE_REQUEST_DIFF_BASE_SHA=${BASE}
  CI_COMMIT_REF_NAME=feat/a`;
const MERGED_RESULT = `${MERGE_REQUEST} CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=${HEAD}`;
const EXTERNAL = `CI_COMMIT_SHA=${MERGE} CI_EXTERNAL_PULL_REQUEST_IID=7 CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME=feat/a
  CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA=${HEAD} CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME=main`;
const PARALLEL = { CI_NODE_INDEX: "2", CI_NODE_TOTAL: "4" };

const GITLAB_BUILDS = [
  gitlab("a push", "CI_COMMIT_REF_NAME=feat/a CI_COMMIT_BRANCH=feat/a", { branch: "feat/a" }),
  gitlab("a tag", "CI_COMMIT_REF_NAME=v1.2.0 CI_COMMIT_TAG=v1.2.0", { branch: "v1.2.0" }),
  gitlab("a merge request", `${MERGE_REQUEST} CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=`, isPull),
  gitlab(
    "the merged result of a merge request",
    `${MERGED_RESULT} CI_COMMIT_SHA=1 CI_COMMIT_REF_NAME=refs/merge-requests/7/merge CI_MERGE_REQUEST_TARGET_BRANCH_SHA=${MERGE}`,
    { ...onMain, baseCommit: MERGE },
  ),
  gitlab(
    "a fork in a group of groups",
    `${MERGE_REQUEST} CI_MERGE_REQUEST_SOURCE_PROJECT_PATH=users/alice/web CI_MERGE_REQUEST_SOURCE_BRANCH_NAME=main`,
    { branch: "users/alice:main", pullRequest: "7", ...onBase },
  ),
  gitlab(
    "a merge train tests more than the head of its merge request",
    `${MERGED_RESULT} CI_COMMIT_SHA=${MERGE} CI_COMMIT_REF_NAME=refs/merge-requests/7/train CI_MERGE_REQUEST_EVENT_TYPE=merge_train`,
    { commit: MERGE, branch: "refs/merge-requests/7/train", pullRequest: "7", ...onBase },
  ),
  gitlab("a pull request of a repository at GitHub", EXTERNAL, onMain),
  gitlab(
    "parallel jobs are shards",
    { ...PARALLEL, CI_JOB_NAME: "unit: [18] 2/4" },
    { task: "unit: [18]", shard: "2/4" },
  ),
  gitlab("jobs of a matrix are tasks", { ...PARALLEL, CI_JOB_NAME: "unit: [20, a/b]" }, { task: "unit: [20, a/b]" }),
];

const JENKINS = {
  JENKINS_URL: "https://ci.acme.test/",
  BUILD_NUMBER: "42",
  BUILD_TAG: "jenkins-acme-web-main-42",
  BUILD_URL: "https://ci.acme.test/job/acme/job/web/job/main/42/",
  STAGE_NAME: "unit tests",
  GIT_COMMIT: HEAD,
};
const jenkins = builds("jenkins", JENKINS, {
  ...{ executionKey: JENKINS.BUILD_TAG, task: "unit tests", commit: HEAD, buildUrl: JENKINS.BUILD_URL },
});
const CHANGE = { BRANCH_NAME: "PR-7", CHANGE_ID: "7", CHANGE_BRANCH: "feat/a", CHANGE_TARGET: "main" };
const FORK = { ...CHANGE, CHANGE_BRANCH: "main" };

const JENKINS_BUILDS = [
  jenkins("a multibranch pipeline", "BRANCH_NAME=feat/a GIT_BRANCH=feat/a", { branch: "feat/a" }),
  jenkins("a pipeline", "GIT_BRANCH=origin/feat/a", { branch: "feat/a" }),
  jenkins("a pipeline that fetches all", "GIT_BRANCH=refs/remotes/origin/feat/a", { branch: "feat/a" }, RARE),
  jenkins("a detached commit", { GIT_BRANCH: "detached" }, {}, RARE),
  jenkins("a pull request", CHANGE, onMain),
  jenkins(
    "the head of a pull request that Jenkins has merged",
    { ...CHANGE, GIT_COMMIT: MERGE },
    isPull,
    gitOf({ "origin/PR-7": HEAD, "--format=raw": rawOf("1", HEAD, BASE) }),
  ),
  jenkins("a fork, by its owner", { ...FORK, CHANGE_FORK: "alice" }, forkOfMain),
  jenkins("a fork, by its path", { ...FORK, CHANGE_FORK: "alice/web" }, forkOfMain),
  jenkins("a tag", { BRANCH_NAME: "v1.2.0", TAG_NAME: "v1.2.0", GIT_BRANCH: "v1.2.0" }, { branch: "v1.2.0" }),
];

const circleci = builds(
  "circleci",
  `CI=true CIRCLECI=true CIRCLE_WORKFLOW_ID=5f0b6d42-3f8e-4d5c-9f0e-0a1b2c3d4e5f CIRCLE_JOB=unit CIRCLE_SHA1=${HEAD}
    CIRCLE_BUILD_URL=https://circleci.com/gh/acme/web/42 CIRCLE_NODE_INDEX=0 CIRCLE_NODE_TOTAL=1`,
  {
    executionKey: "5f0b6d42-3f8e-4d5c-9f0e-0a1b2c3d4e5f",
    ...{ task: "unit", commit: HEAD, buildUrl: "https://circleci.com/gh/acme/web/42" },
  },
);

const CIRCLECI_BUILDS = [
  circleci("a push", "CIRCLE_BRANCH=feat/a", { branch: "feat/a" }),
  circleci("a push, with an agent of Jenkins", { ...JENKINS, CIRCLE_BRANCH: "feat/a" }, { branch: "feat/a" }),
  circleci(
    "a pull request",
    "CIRCLE_BRANCH=feat/a CIRCLE_PULL_REQUEST=https://github.com/acme/web/pull/7",
    { ...onPull, baseCommit: BASE },
    gitOf({ "--format=raw": rawOf(HEAD, "1"), "origin/HEAD": BASE }),
  ),
  circleci(
    "a fork",
    "CIRCLE_BRANCH=pull/7 CIRCLE_PR_NUMBER=7 CIRCLE_PR_USERNAME=alice",
    { branch: "pull/7", pullRequest: "7" },
    RARE,
  ),
  circleci("a tag", "CIRCLE_BRANCH= CIRCLE_TAG=v1.2.0", { branch: "v1.2.0" }),
  circleci("parallel nodes, counted from 0", "CIRCLE_BRANCH=main CIRCLE_NODE_INDEX=3 CIRCLE_NODE_TOTAL=4", {
    ...{ branch: "main", shard: "4/4" },
  }),
];

const azure = builds(
  "azure",
  {
    ...read(`TF_BUILD=True BUILD_BUILDID=4711 BUILD_SOURCEVERSION=${HEAD} BUILD_SOURCEBRANCH=refs/heads/main
      SYSTEM_COLLECTIONURI=https://dev.azure.com/acme/ SYSTEM_JOBIDENTIFIER=unit.__default SYSTEM_JOBPOSITIONINPHASE=1
      SYSTEM_TOTALJOBSINPHASE=1 SYSTEM_PULLREQUEST_ISFORK=False`),
    SYSTEM_TEAMPROJECT: "My project",
  },
  {
    ...{ executionKey: "4711", task: "unit", commit: HEAD, branch: "main" },
    buildUrl: "https://dev.azure.com/acme/My%20project/_build/results?buildId=4711",
  },
);
const PULL_REQUEST = `BUILD_SOURCEVERSION=${MERGE} BUILD_SOURCEBRANCH=refs/pull/7/merge SYSTEM_PULLREQUEST_PULLREQUESTID=7
  SYSTEM_PULLREQUEST_SOURCEBRANCH=refs/heads/feat/a SYSTEM_PULLREQUEST_SOURCECOMMITID=${HEAD}
  SYSTEM_PULLREQUEST_TARGETBRANCH=refs/heads/main`;
const NUMBERED = `${PULL_REQUEST} SYSTEM_PULLREQUEST_PULLREQUESTID=293753840 SYSTEM_PULLREQUEST_PULLREQUESTNUMBER=7
  SYSTEM_PULLREQUEST_TARGETBRANCH=main`;
const azureFork = (name: string, repository: string) => {
  const fork = `SYSTEM_PULLREQUEST_ISFORK=True SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI=${repository}`;
  const variables = `${PULL_REQUEST} ${fork} SYSTEM_PULLREQUEST_SOURCEBRANCH=refs/heads/main`;
  return azure(name, variables, forkOfMain);
};

const AZURE_BUILDS = [
  azure("a push", "BUILD_SOURCEBRANCH=refs/heads/feat/a", { branch: "feat/a" }),
  azure("a tag", "BUILD_SOURCEBRANCH=refs/tags/v1.2.0", { branch: "refs/tags/v1.2.0" }),
  azure(
    "a shallow checkout of the merge of a pull request",
    PULL_REQUEST,
    isPull,
    gitOf({ "--format=raw": rawOf(MERGE, BASE, HEAD) }),
  ),
  azure(
    "a pull request at GitHub, whose number is not its id, where another repository is checked out",
    NUMBERED,
    onMain,
    gitOf({ "--format=raw": rawOf(BASE, "1"), "origin/main": BASE }),
  ),
  azureFork("a fork at GitHub", "https://github.com/alice/web"),
  azureFork("a fork at Azure", "https://dev.azure.com/acme/My%20project/_git/alice/"),
  azure(
    "parallel jobs are shards",
    `SYSTEM_PARALLELEXECUTIONTYPE=MultiMachine SYSTEM_JOBIDENTIFIER=unit.Job2 SYSTEM_JOBPOSITIONINPHASE=2
      SYSTEM_TOTALJOBSINPHASE=4`,
    { shard: "2/4" },
  ),
  azure(
    "jobs of a matrix are tasks",
    `SYSTEM_PARALLELEXECUTIONTYPE=MultiConfiguration SYSTEM_JOBIDENTIFIER=unit.node20 SYSTEM_JOBPOSITIONINPHASE=2
      SYSTEM_TOTALJOBSINPHASE=2`,
    { task: "unit.node20" },
  ),
];

const BUILDKITE_ID = "018f2b1e-0000-4000-8000-000000000042";
const buildkite = builds(
  "buildkite",
  {
    ...read(`CI=true BUILDKITE=true BUILDKITE_BUILD_ID=${BUILDKITE_ID} BUILDKITE_BUILD_NUMBER=42 BUILDKITE_COMMIT=${HEAD}
      BUILDKITE_BUILD_URL=https://buildkite.com/acme/web/builds/42 BUILDKITE_BRANCH=feat/a BUILDKITE_PULL_REQUEST=false
      BUILDKITE_TAG=`),
    ...{ BUILDKITE_LABEL: ":jest: unit", BUILDKITE_COMMAND: "npm test" },
  },
  {
    ...{ executionKey: BUILDKITE_ID, task: ":jest: unit", commit: HEAD, branch: "feat/a" },
    buildUrl: "https://buildkite.com/acme/web/builds/42",
  },
);
const JOB = { BUILDKITE_PARALLEL_JOB: "0", BUILDKITE_PARALLEL_JOB_COUNT: "4", BUILDKITE_LABEL: "unit 1 of 4" };
const PULL = "BUILDKITE_PULL_REQUEST=7 BUILDKITE_PULL_REQUEST_BASE_BRANCH=main";

const BUILDKITE_BUILDS = [
  buildkite("a push", {}),
  buildkite(
    "a pull request",
    PULL,
    { pullRequest: "7", ...onBase },
    gitOf({ "--format=raw": rawOf(HEAD, "1", "2"), "origin/main": BASE }),
  ),
  buildkite(
    "a pull request that is merged already",
    PULL,
    { pullRequest: "7", baseBranch: "main" },
    gitOf({ "--format=raw": rawOf(HEAD, "1"), "origin/main": HEAD }),
  ),
  buildkite("a fork", "BUILDKITE_PULL_REQUEST=7 BUILDKITE_BRANCH=alice:main", onFork),
  buildkite("a tag", "BUILDKITE_BRANCH=v1.2.0 BUILDKITE_TAG=v1.2.0", { branch: "v1.2.0" }),
  buildkite("the newest commit, which only the checkout knows", "BUILDKITE_COMMIT=HEAD", {}, { git: { HEAD } }),
  buildkite("parallel jobs of a step", { ...JOB, BUILDKITE_STEP_KEY: "unit" }, { task: "unit", shard: "1/4" }),
  buildkite("parallel jobs of a step without a name", JOB, { task: "npm test", shard: "1/4" }),
];

const bitbucket = builds(
  "bitbucket",
  `CI=true BITBUCKET_BUILD_NUMBER=42 BITBUCKET_COMMIT=${HEAD} BITBUCKET_WORKSPACE=acme BITBUCKET_REPO_SLUG=web
    BITBUCKET_REPO_FULL_NAME=acme/web`,
  { executionKey: "42", commit: HEAD, buildUrl: "https://bitbucket.org/acme/web/pipelines/results/42" },
);
const drone = builds(
  "drone",
  `CI=true DRONE=true DRONE_BUILD_NUMBER=42 DRONE_COMMIT_SHA=${HEAD} DRONE_STAGE_NAME=default
    DRONE_BUILD_LINK=https://drone.acme.test/acme/web/42 DRONE_BRANCH=main DRONE_TARGET_BRANCH=main`,
  { executionKey: "42", task: "default", commit: HEAD, buildUrl: "https://drone.acme.test/acme/web/42" },
);
const woodpecker = builds(
  "woodpecker",
  // Its first versions said that they were Drone, too.
  `CI=woodpecker DRONE=true CI_PIPELINE_NUMBER=8 CI_WORKFLOW_NAME=test CI_COMMIT_SHA=${HEAD} CI_COMMIT_BRANCH=main
    CI_PIPELINE_URL=https://ci.acme.test/repos/7/pipeline/8 CI_COMMIT_SOURCE_BRANCH= CI_COMMIT_TAG= CI_COMMIT_PULL_REQUEST=`,
  { executionKey: "8", task: "test", commit: HEAD, buildUrl: "https://ci.acme.test/repos/7/pipeline/8" },
);
const teamcity = builds("teamcity", "TEAMCITY_VERSION=2025.03 BUILD_NUMBER=42", {});

const OTHER_BUILDS = [
  bitbucket("a push", "BITBUCKET_BRANCH=feat/a", { branch: "feat/a" }),
  bitbucket(
    "a pull request",
    `BITBUCKET_BRANCH=feat/a BITBUCKET_PR_ID=7 BITBUCKET_PR_DESTINATION_BRANCH=main BITBUCKET_PR_DESTINATION_COMMIT=${BASE}`,
    isPull,
  ),
  bitbucket("a tag", "BITBUCKET_TAG=v1.2.0", { branch: "v1.2.0" }),
  bitbucket(
    "parallel steps are no shards: they may be anything",
    "BITBUCKET_BRANCH=main BITBUCKET_PARALLEL_STEP=1 BITBUCKET_PARALLEL_STEP_COUNT=3",
    { branch: "main" },
  ),
  drone("a push", "DRONE_SOURCE_BRANCH=main", { branch: "main" }),
  drone("a pull request, whose branch is the target", "DRONE_SOURCE_BRANCH=feat/a DRONE_PULL_REQUEST=7", onMain),
  drone("a tag", "DRONE_TAG=v1.2.0", { branch: "v1.2.0" }),
  woodpecker("a push", {}, { branch: "main" }),
  woodpecker(
    "a pull request, whose branch is the target",
    "CI_COMMIT_SOURCE_BRANCH=feat/a CI_COMMIT_PULL_REQUEST=7 CI_COMMIT_TARGET_BRANCH=main",
    onMain,
  ),
  woodpecker("a tag", "CI_COMMIT_TAG=v1.10.3", { branch: "v1.10.3" }),
  teamcity("tells its commit alone", `BUILD_VCS_NUMBER=${HEAD}`, { commit: HEAD }),
];

export const BUILDS: readonly BuildOfCi[] = [
  ...[...GITHUB_BUILDS, ...GITLAB_BUILDS, ...JENKINS_BUILDS, ...CIRCLECI_BUILDS],
  ...[...AZURE_BUILDS, ...BUILDKITE_BUILDS, ...OTHER_BUILDS],
];
