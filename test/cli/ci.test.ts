/** What each CI system says, in its own variables, and what is made of it. */

import { describe, expect, test } from "bun:test";
import { type CiBuild, detectBuild } from "../../src/cli/ci.ts";

const HEAD = "0123456789abcdef0123456789abcdef01234567";
const MERGE = "fedcba9876543210fedcba9876543210fedcba98";

type Variables = Record<string, string>;
type Outside = { files?: Record<string, string>; git?: Record<string, string> };

/** Without a git, unless there is one to ask. */
const detect = (variables: Variables, { files = {}, git = {} }: Outside = {}): CiBuild =>
  detectBuild(
    variables,
    (path) => files[path],
    (...args) => git[args.join(" ")],
  );

const GITHUB: Variables = {
  CI: "true",
  GITHUB_ACTIONS: "true",
  GITHUB_SERVER_URL: "https://github.com",
  GITHUB_REPOSITORY: "acme/web",
  GITHUB_RUN_ID: "9876543210",
  GITHUB_RUN_NUMBER: "42",
  GITHUB_RUN_ATTEMPT: "1",
  GITHUB_JOB: "unit",
  GITHUB_HEAD_REF: "",
  GITHUB_BASE_REF: "",
  GITHUB_EVENT_PATH: "/home/runner/work/_temp/_github_workflow/event.json",
};
const RUN = "https://github.com/acme/web/actions/runs/9876543210";
const event = (json: unknown): Outside => ({ files: { [GITHUB["GITHUB_EVENT_PATH"]!]: JSON.stringify(json) } });
const pull = (fork: string | null) => ({
  number: 7,
  pull_request: {
    number: 7,
    head: {
      label: "alice:main",
      ref: "main",
      sha: HEAD,
      user: { login: "alice" },
      repo: fork === null ? null : { full_name: fork, owner: { login: fork.split("/")[0] } },
    },
    base: { ref: "main", sha: MERGE, repo: { full_name: "acme/web", owner: { login: "acme" } } },
  },
});
const PULL = { ...GITHUB, GITHUB_EVENT_NAME: "pull_request", GITHUB_SHA: MERGE, GITHUB_REF: "refs/pull/7/merge" };

describe("GitHub Actions", () => {
  const common = { system: "github", executionKey: "9876543210", task: "unit", buildUrl: RUN } as const;

  test("a push", () => {
    const variables = { ...GITHUB, GITHUB_SHA: HEAD, GITHUB_REF: "refs/heads/feat/a", GITHUB_REF_NAME: "feat/a" };
    const push = event({ ref: "refs/heads/feat/a", after: HEAD });
    expect(detect(variables, push)).toEqual({ ...common, commit: HEAD, branch: "feat/a" });
  });

  test("a pull request is its head, and not the merge commit that exists for a moment", () => {
    const variables = { ...PULL, GITHUB_REF_NAME: "7/merge", GITHUB_HEAD_REF: "feat/a", GITHUB_BASE_REF: "main" };
    expect(detect(variables, event(pull("acme/web")))).toEqual({
      ...common,
      commit: HEAD,
      branch: "feat/a",
      pullRequest: "7",
    });
  });

  test.each([
    ["a fork", "alice/web"],
    ["a fork that is gone", null],
  ])("the main branch of %s is not ours", (_, fork) => {
    const variables = { ...PULL, GITHUB_EVENT_NAME: "pull_request_target", GITHUB_HEAD_REF: "main" };
    expect(detect(variables, event(pull(fork)))).toEqual({
      ...common,
      commit: HEAD,
      branch: "alice:main",
      pullRequest: "7",
    });
  });

  test("an event that cannot be read leaves what the variables say", () => {
    const variables = { ...PULL, GITHUB_REF_NAME: "7/merge", GITHUB_HEAD_REF: "feat/a" };
    const said = { ...common, commit: MERGE, branch: "feat/a", pullRequest: "7" };
    expect(detect(variables)).toEqual(said);
    expect(detect(variables, { files: { [GITHUB["GITHUB_EVENT_PATH"]!]: "{" } })).toEqual(said);
  });

  test("a tag is told by its name, lest it count as the default branch", () => {
    const tag = { GITHUB_REF: "refs/tags/v1.2.0", GITHUB_REF_NAME: "v1.2.0", GITHUB_REF_TYPE: "tag" };
    expect(detect({ ...GITHUB, ...tag, GITHUB_SHA: HEAD })).toEqual({ ...common, commit: HEAD, branch: "v1.2.0" });
  });

  test("a workflow that uploads what another one has tested tells of that one", () => {
    const variables = { ...GITHUB, GITHUB_SHA: MERGE, GITHUB_REF_NAME: "main", GITHUB_EVENT_NAME: "workflow_run" };
    const workflow_run = {
      id: 1234,
      head_sha: HEAD,
      head_branch: "main",
      html_url: "https://github.com/acme/web/actions/runs/1234",
      pull_requests: [{ number: 7 }],
      repository: { full_name: "acme/web" },
      head_repository: { full_name: "alice/web", owner: { login: "alice" } },
    };
    expect(detect(variables, event({ workflow_run }))).toEqual({
      system: "github",
      task: "unit",
      executionKey: "1234",
      commit: HEAD,
      branch: "alice:main",
      pullRequest: "7",
      buildUrl: workflow_run.html_url,
      untrusted: true,
    });
    // The fork may have been deleted since.
    expect(detect(variables, event({ workflow_run: { ...workflow_run, head_repository: null } })).untrusted).toBe(true);
    const own = { ...workflow_run, head_repository: { full_name: "acme/web", owner: { login: "acme" } } };
    const detected = detect(variables, event({ workflow_run: own }));
    expect([detected.branch, detected.untrusted]).toEqual(["main", undefined]);
  });

  test("a merge queue has a ref of its own, which the server reads", () => {
    const branch = `gh-readonly-queue/main/pr-7-${MERGE}`;
    const group = { GITHUB_EVENT_NAME: "merge_group", GITHUB_REF: `refs/heads/${branch}`, GITHUB_REF_NAME: branch };
    const merge_group = { head_sha: HEAD, head_ref: `refs/heads/${branch}`, base_ref: "refs/heads/main" };
    expect(detect({ ...GITHUB, ...group, GITHUB_SHA: HEAD }, event({ merge_group }))).toEqual({
      ...common,
      commit: HEAD,
      branch,
    });
  });

  test("Gitea says the same, and Forgejo has the run's number in its addresses", () => {
    const variables = {
      ...GITHUB,
      GITEA_ACTIONS: "true",
      GITHUB_SERVER_URL: "https://git.acme.test",
      GITHUB_SHA: HEAD,
      GITHUB_REF_NAME: "main",
    };
    const said = { ...common, commit: HEAD, branch: "main" };
    const at = "https://git.acme.test/acme/web/actions/runs";
    expect(detect(variables)).toEqual({ ...said, buildUrl: `${at}/9876543210` });
    expect(detect({ ...variables, FORGEJO_ACTIONS: "true" })).toEqual({ ...said, buildUrl: `${at}/42` });
  });
});

describe("GitLab CI", () => {
  const GITLAB: Variables = {
    CI: "true",
    GITLAB_CI: "true",
    CI_PIPELINE_ID: "1000123",
    CI_PIPELINE_IID: "12",
    CI_PROJECT_PATH: "acme/tools/web",
    CI_JOB_NAME: "unit",
    CI_JOB_URL: "https://gitlab.com/acme/tools/web/-/jobs/555",
    CI_NODE_TOTAL: "1",
    CI_COMMIT_SHA: HEAD,
  };
  const common = {
    system: "gitlab",
    executionKey: "1000123",
    task: "unit",
    commit: HEAD,
    buildUrl: "https://gitlab.com/acme/tools/web/-/jobs/555",
  } as const;
  const MERGE_REQUEST = {
    ...GITLAB,
    CI_MERGE_REQUEST_IID: "7",
    CI_MERGE_REQUEST_PROJECT_PATH: "acme/tools/web",
    CI_MERGE_REQUEST_SOURCE_PROJECT_PATH: "acme/tools/web",
    CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: "feat/a",
    CI_COMMIT_REF_NAME: "feat/a",
  };

  test("a push, and a tag", () => {
    const push = { ...GITLAB, CI_COMMIT_REF_NAME: "feat/a", CI_COMMIT_BRANCH: "feat/a" };
    expect(detect(push)).toEqual({ ...common, branch: "feat/a" });
    const tag = { ...GITLAB, CI_COMMIT_REF_NAME: "v1.2.0", CI_COMMIT_TAG: "v1.2.0" };
    expect(detect(tag)).toEqual({ ...common, branch: "v1.2.0" });
  });

  test("a merge request: its source is told where the result of the merge is built, and empty otherwise", () => {
    const said = { ...common, branch: "feat/a", pullRequest: "7" };
    expect(detect({ ...MERGE_REQUEST, CI_MERGE_REQUEST_SOURCE_BRANCH_SHA: "" })).toEqual(said);
    const merged = {
      ...MERGE_REQUEST,
      CI_COMMIT_SHA: MERGE,
      CI_COMMIT_REF_NAME: "refs/merge-requests/7/merge",
      CI_MERGE_REQUEST_SOURCE_BRANCH_SHA: HEAD,
    };
    expect(detect(merged)).toEqual(said);
  });

  test("a fork", () => {
    const fork = {
      ...MERGE_REQUEST,
      CI_MERGE_REQUEST_SOURCE_PROJECT_PATH: "alice/web",
      CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: "main",
    };
    expect(detect(fork)).toEqual({ ...common, branch: "alice:main", pullRequest: "7" });
  });

  test("a merge train tests more than the head of its merge request", () => {
    const train = {
      ...MERGE_REQUEST,
      CI_COMMIT_SHA: MERGE,
      CI_COMMIT_REF_NAME: "refs/merge-requests/7/train",
      CI_MERGE_REQUEST_EVENT_TYPE: "merge_train",
      CI_MERGE_REQUEST_SOURCE_BRANCH_SHA: HEAD,
      CI_MERGE_REQUEST_TARGET_BRANCH_NAME: "develop",
    };
    const { commit: _, ...rest } = common;
    expect(detect(train)).toEqual({
      ...{ ...rest, commit: MERGE, branch: "refs/merge-requests/7/train", pullRequest: "7", baseBranch: "develop" },
    });
  });

  test("a pull request of a repository at GitHub", () => {
    const external = {
      ...GITLAB,
      CI_COMMIT_SHA: MERGE,
      CI_EXTERNAL_PULL_REQUEST_IID: "7",
      CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME: "feat/a",
      CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA: HEAD,
    };
    expect(detect(external)).toEqual({ ...common, branch: "feat/a", pullRequest: "7" });
  });

  test("parallel jobs are shards, jobs of a matrix are tasks", () => {
    const push = { ...GITLAB, CI_COMMIT_REF_NAME: "main", CI_NODE_INDEX: "2", CI_NODE_TOTAL: "4" };
    const said = { ...common, branch: "main" };
    expect(detect({ ...push, CI_JOB_NAME: "unit 2/4" })).toEqual({ ...said, shard: "2/4" });
    expect(detect({ ...push, CI_JOB_NAME: "unit: [20, a/b]" })).toEqual({ ...said, task: "unit: [20, a/b]" });
  });
});

describe("Jenkins", () => {
  const JENKINS: Variables = {
    JENKINS_URL: "https://ci.acme.test/",
    BUILD_NUMBER: "42",
    BUILD_TAG: "jenkins-acme-web-main-42",
    BUILD_URL: "https://ci.acme.test/job/acme/job/web/job/main/42/",
    STAGE_NAME: "unit",
    GIT_COMMIT: HEAD,
  };
  const common = {
    system: "jenkins",
    executionKey: "jenkins-acme-web-main-42",
    task: "unit",
    commit: HEAD,
    buildUrl: "https://ci.acme.test/job/acme/job/web/job/main/42/",
  } as const;

  test("a push, of a multibranch pipeline or another", () => {
    const said = { ...common, branch: "feat/a" };
    expect(detect({ ...JENKINS, BRANCH_NAME: "feat/a", GIT_BRANCH: "feat/a" })).toEqual(said);
    expect(detect({ ...JENKINS, GIT_BRANCH: "origin/feat/a" })).toEqual(said);
    expect(detect({ ...JENKINS, GIT_BRANCH: "refs/remotes/origin/feat/a" })).toEqual(said);
    expect(detect({ ...JENKINS, GIT_BRANCH: "detached" })).toEqual(common);
  });

  test("a pull request: its head is what was fetched, where Jenkins has merged it", () => {
    const change = { ...JENKINS, BRANCH_NAME: "PR-7", CHANGE_ID: "7", CHANGE_BRANCH: "feat/a", CHANGE_TARGET: "main" };
    const said = { ...common, branch: "feat/a", pullRequest: "7" };
    expect(detect(change)).toEqual(said);
    const git = { "rev-parse -q --verify origin/PR-7": HEAD };
    expect(detect({ ...change, GIT_COMMIT: MERGE }, { git })).toEqual(said);
  });

  test.each(["alice", "alice/web"])("a fork, %s", (fork) => {
    const change = { ...JENKINS, BRANCH_NAME: "PR-7", CHANGE_ID: "7", CHANGE_BRANCH: "main", CHANGE_FORK: fork };
    expect(detect(change)).toEqual({ ...common, branch: "alice:main", pullRequest: "7" });
  });

  test("a tag", () => {
    const tag = { BRANCH_NAME: "v1.2.0", TAG_NAME: "v1.2.0", GIT_BRANCH: "v1.2.0" };
    expect(detect({ ...JENKINS, ...tag })).toEqual({ ...common, branch: "v1.2.0" });
  });
});

describe("CircleCI", () => {
  const CIRCLE: Variables = {
    CI: "true",
    CIRCLECI: "true",
    CIRCLE_WORKFLOW_ID: "5f0b6d42-3f8e-4d5c-9f0e-0a1b2c3d4e5f",
    CIRCLE_JOB: "unit",
    CIRCLE_SHA1: HEAD,
    CIRCLE_BUILD_URL: "https://circleci.com/gh/acme/web/42",
    CIRCLE_NODE_INDEX: "0",
    CIRCLE_NODE_TOTAL: "1",
  };
  const common = {
    system: "circleci",
    executionKey: "5f0b6d42-3f8e-4d5c-9f0e-0a1b2c3d4e5f",
    task: "unit",
    commit: HEAD,
    buildUrl: "https://circleci.com/gh/acme/web/42",
  } as const;

  test("a push, a pull request, and one of a fork", () => {
    expect(detect({ ...CIRCLE, CIRCLE_BRANCH: "feat/a" })).toEqual({ ...common, branch: "feat/a" });
    const pullRequest = {
      ...CIRCLE,
      CIRCLE_BRANCH: "feat/a",
      CIRCLE_PULL_REQUEST: "https://github.com/acme/web/pull/7",
    };
    expect(detect(pullRequest)).toEqual({ ...common, branch: "feat/a", pullRequest: "7" });
    const fork = { ...CIRCLE, CIRCLE_BRANCH: "pull/7", CIRCLE_PR_NUMBER: "7", CIRCLE_PR_USERNAME: "alice" };
    expect(detect(fork)).toEqual({ ...common, branch: "pull/7", pullRequest: "7" });
  });

  test("a tag, which has no branch", () => {
    expect(detect({ ...CIRCLE, CIRCLE_TAG: "v1.2.0" })).toEqual({ ...common, branch: "v1.2.0" });
  });

  test("parallel nodes, counted from 0 there", () => {
    const nodes = { CIRCLE_BRANCH: "main", CIRCLE_NODE_INDEX: "3", CIRCLE_NODE_TOTAL: "4" };
    expect(detect({ ...CIRCLE, ...nodes })).toEqual({ ...common, branch: "main", shard: "4/4" });
  });
});

describe("Azure Pipelines", () => {
  const AZURE: Variables = {
    TF_BUILD: "True",
    BUILD_BUILDID: "4711",
    BUILD_SOURCEVERSION: HEAD,
    SYSTEM_COLLECTIONURI: "https://dev.azure.com/acme/",
    SYSTEM_TEAMPROJECT: "My project",
    SYSTEM_JOBIDENTIFIER: "unit.__default",
    SYSTEM_JOBPOSITIONINPHASE: "1",
    SYSTEM_TOTALJOBSINPHASE: "1",
    SYSTEM_PULLREQUEST_ISFORK: "False",
  };
  const common = {
    system: "azure",
    executionKey: "4711",
    task: "unit",
    commit: HEAD,
    buildUrl: "https://dev.azure.com/acme/My%20project/_build/results?buildId=4711",
  } as const;
  const PULL_REQUEST = {
    ...AZURE,
    BUILD_SOURCEVERSION: MERGE,
    BUILD_SOURCEBRANCH: "refs/pull/7/merge",
    SYSTEM_PULLREQUEST_PULLREQUESTID: "7",
    SYSTEM_PULLREQUEST_SOURCEBRANCH: "refs/heads/feat/a",
    SYSTEM_PULLREQUEST_SOURCECOMMITID: HEAD,
  };

  test("a push, and a tag", () => {
    expect(detect({ ...AZURE, BUILD_SOURCEBRANCH: "refs/heads/feat/a" })).toEqual({ ...common, branch: "feat/a" });
    const tag = { ...AZURE, BUILD_SOURCEBRANCH: "refs/tags/v1.2.0" };
    expect(detect(tag)).toEqual({ ...common, branch: "refs/tags/v1.2.0" });
  });

  test("a pull request, whose number is another than its id where the repository is at GitHub", () => {
    const said = { ...common, branch: "feat/a", pullRequest: "7" };
    expect(detect(PULL_REQUEST)).toEqual(said);
    const github = { SYSTEM_PULLREQUEST_PULLREQUESTID: "293753840", SYSTEM_PULLREQUEST_PULLREQUESTNUMBER: "7" };
    expect(detect({ ...PULL_REQUEST, ...github })).toEqual(said);
  });

  test.each(["https://github.com/alice/web", "https://dev.azure.com/acme/My%20project/_git/alice/"])(
    "a fork: %s",
    (url) => {
      const fork = {
        ...PULL_REQUEST,
        SYSTEM_PULLREQUEST_ISFORK: "True",
        SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI: url,
        SYSTEM_PULLREQUEST_SOURCEBRANCH: "refs/heads/main",
      };
      expect(detect(fork)).toEqual({ ...common, branch: "alice:main", pullRequest: "7" });
    },
  );

  test("parallel jobs are shards, jobs of a matrix are tasks", () => {
    const push = { ...AZURE, BUILD_SOURCEBRANCH: "refs/heads/main", SYSTEM_JOBPOSITIONINPHASE: "2" };
    const parallel = {
      ...push,
      SYSTEM_PARALLELEXECUTIONTYPE: "MultiMachine",
      SYSTEM_JOBIDENTIFIER: "unit.Job2",
      SYSTEM_TOTALJOBSINPHASE: "4",
    };
    expect(detect(parallel)).toEqual({ ...common, branch: "main", shard: "2/4" });
    const matrix = {
      ...push,
      SYSTEM_PARALLELEXECUTIONTYPE: "MultiConfiguration",
      SYSTEM_JOBIDENTIFIER: "unit.node20",
      SYSTEM_TOTALJOBSINPHASE: "2",
    };
    expect(detect(matrix)).toEqual({ ...common, branch: "main", task: "unit.node20" });
  });
});

describe("Bitbucket Pipelines", () => {
  const BITBUCKET: Variables = {
    CI: "true",
    BITBUCKET_BUILD_NUMBER: "42",
    BITBUCKET_COMMIT: HEAD,
    BITBUCKET_WORKSPACE: "acme",
    BITBUCKET_REPO_SLUG: "web",
    BITBUCKET_REPO_FULL_NAME: "acme/web",
  };
  const common = {
    system: "bitbucket",
    executionKey: "42",
    commit: HEAD,
    buildUrl: "https://bitbucket.org/acme/web/pipelines/results/42",
  } as const;

  test("a push, a pull request, and a tag", () => {
    expect(detect({ ...BITBUCKET, BITBUCKET_BRANCH: "feat/a" })).toEqual({ ...common, branch: "feat/a" });
    const pullRequest = { ...BITBUCKET, BITBUCKET_BRANCH: "feat/a", BITBUCKET_PR_ID: "7" };
    expect(detect(pullRequest)).toEqual({ ...common, branch: "feat/a", pullRequest: "7" });
    expect(detect({ ...BITBUCKET, BITBUCKET_TAG: "v1.2.0" })).toEqual({ ...common, branch: "v1.2.0" });
  });

  test("parallel steps are no shards: they may be anything", () => {
    const step = { BITBUCKET_BRANCH: "main", BITBUCKET_PARALLEL_STEP: "1", BITBUCKET_PARALLEL_STEP_COUNT: "3" };
    expect(detect({ ...BITBUCKET, ...step })).toEqual({ ...common, branch: "main" });
  });
});

describe("Buildkite", () => {
  const BUILDKITE: Variables = {
    CI: "true",
    BUILDKITE: "true",
    BUILDKITE_BUILD_ID: "018f2b1e-0000-4000-8000-000000000042",
    BUILDKITE_BUILD_NUMBER: "42",
    BUILDKITE_BUILD_URL: "https://buildkite.com/acme/web/builds/42",
    BUILDKITE_COMMIT: HEAD,
    BUILDKITE_BRANCH: "feat/a",
    BUILDKITE_PULL_REQUEST: "false",
    BUILDKITE_LABEL: ":jest: unit",
    BUILDKITE_COMMAND: "npm test",
    BUILDKITE_TAG: "",
  };
  const common = {
    system: "buildkite",
    executionKey: "018f2b1e-0000-4000-8000-000000000042",
    task: ":jest: unit",
    commit: HEAD,
    branch: "feat/a",
    buildUrl: "https://buildkite.com/acme/web/builds/42",
  } as const;

  test("a push, a pull request, one of a fork, and a tag", () => {
    expect(detect(BUILDKITE)).toEqual(common);
    expect(detect({ ...BUILDKITE, BUILDKITE_PULL_REQUEST: "7" })).toEqual({ ...common, pullRequest: "7" });
    const fork = { ...BUILDKITE, BUILDKITE_PULL_REQUEST: "7", BUILDKITE_BRANCH: "alice:main" };
    expect(detect(fork)).toEqual({ ...common, branch: "alice:main", pullRequest: "7" });
    const tag = { ...BUILDKITE, BUILDKITE_BRANCH: "v1.2.0", BUILDKITE_TAG: "v1.2.0" };
    expect(detect(tag)).toEqual({ ...common, branch: "v1.2.0" });
  });

  test("a build of the newest commit knows it only once it is checked out", () => {
    const git = { "rev-parse HEAD": HEAD };
    expect(detect({ ...BUILDKITE, BUILDKITE_COMMIT: "HEAD" }, { git })).toEqual(common);
  });

  test("parallel jobs, counted from 0 there, are named by their step", () => {
    const parallel = {
      ...BUILDKITE,
      BUILDKITE_PARALLEL_JOB: "0",
      BUILDKITE_PARALLEL_JOB_COUNT: "4",
      BUILDKITE_LABEL: "unit 1 of 4",
      BUILDKITE_STEP_KEY: "unit",
    };
    expect(detect(parallel)).toEqual({ ...common, task: "unit", shard: "1/4" });
    const { BUILDKITE_STEP_KEY: _, ...unnamed } = parallel;
    expect(detect(unnamed)).toEqual({ ...common, task: "npm test", shard: "1/4" });
  });
});

describe("Drone", () => {
  const DRONE: Variables = {
    CI: "true",
    DRONE: "true",
    DRONE_BUILD_NUMBER: "42",
    DRONE_BUILD_LINK: "https://drone.acme.test/acme/web/42",
    DRONE_COMMIT_SHA: HEAD,
    DRONE_STAGE_NAME: "default",
    DRONE_BRANCH: "main",
  };
  const common = {
    system: "drone",
    executionKey: "42",
    task: "default",
    commit: HEAD,
    buildUrl: "https://drone.acme.test/acme/web/42",
  } as const;

  test("a push, a pull request, whose branch is the target, and a tag", () => {
    expect(detect({ ...DRONE, DRONE_SOURCE_BRANCH: "main" })).toEqual({ ...common, branch: "main" });
    const pullRequest = { ...DRONE, DRONE_SOURCE_BRANCH: "feat/a", DRONE_PULL_REQUEST: "7" };
    expect(detect(pullRequest)).toEqual({ ...common, branch: "feat/a", pullRequest: "7" });
    expect(detect({ ...DRONE, DRONE_TAG: "v1.2.0" })).toEqual({ ...common, branch: "v1.2.0" });
  });
});

describe("Woodpecker", () => {
  const WOODPECKER: Variables = {
    CI: "woodpecker",
    // Its first versions said that they were Drone, too.
    DRONE: "true",
    CI_PIPELINE_NUMBER: "8",
    CI_PIPELINE_URL: "https://ci.acme.test/repos/7/pipeline/8",
    CI_WORKFLOW_NAME: "test",
    CI_COMMIT_SHA: HEAD,
    CI_COMMIT_BRANCH: "main",
    CI_COMMIT_SOURCE_BRANCH: "",
    CI_COMMIT_TAG: "",
    CI_COMMIT_PULL_REQUEST: "",
  };
  const common = {
    system: "woodpecker",
    executionKey: "8",
    task: "test",
    commit: HEAD,
    buildUrl: "https://ci.acme.test/repos/7/pipeline/8",
  } as const;

  test("a push, a pull request, whose branch is the target, and a tag", () => {
    expect(detect(WOODPECKER)).toEqual({ ...common, branch: "main" });
    const pullRequest = { ...WOODPECKER, CI_COMMIT_SOURCE_BRANCH: "issue-branch", CI_COMMIT_PULL_REQUEST: "1" };
    expect(detect(pullRequest)).toEqual({ ...common, branch: "issue-branch", pullRequest: "1" });
    expect(detect({ ...WOODPECKER, CI_COMMIT_TAG: "v1.10.3" })).toEqual({ ...common, branch: "v1.10.3" });
  });
});

test("TeamCity is known for how it is talked to, and tells its commit", () => {
  expect(detect({ TEAMCITY_VERSION: "2025.03", BUILD_NUMBER: "42", BUILD_VCS_NUMBER: HEAD })).toEqual({
    system: "teamcity",
    commit: HEAD,
  });
});

describe("without a CI system", () => {
  const git = { "rev-parse HEAD": HEAD, "branch --show-current": "feat/a" };

  test("git tells commit and branch, if there is a repository", () => {
    expect(detect({}, { git })).toEqual({ commit: HEAD, branch: "feat/a" });
    expect(detect({})).toEqual({});
  });

  test("it tells what a system leaves out, and nothing else", () => {
    expect(detect({ CIRCLECI: "true", CIRCLE_SHA1: MERGE }, { git })).toEqual({
      system: "circleci",
      commit: MERGE,
      branch: "feat/a",
    });
  });
});

describe("what a system says", () => {
  test("empty variables say nothing, and those of a system that is not there neither", () => {
    const names = ["GITHUB_ACTIONS", "GITLAB_CI", "JENKINS_URL", "CIRCLECI", "TF_BUILD", "BITBUCKET_BUILD_NUMBER"];
    const empty = Object.fromEntries([...names, "BUILDKITE", "DRONE", "CI"].map((name) => [name, ""]));
    expect(detect({ ...empty, GITHUB_SHA: HEAD, CI_COMMIT_SHA: HEAD, GIT_COMMIT: HEAD })).toEqual({});
    expect(detect({ GITHUB_ACTIONS: "false" })).toEqual({});
    expect(detect({ GITHUB_ACTIONS: "true", GITHUB_RUN_ID: " " })).toEqual({ system: "github" });
  });

  test("is cut or left out where a server would refuse the upload for it", () => {
    const variables = {
      JENKINS_URL: "https://ci.test/",
      BUILD_TAG: `jenkins-${"x".repeat(300)}-42`,
      BRANCH_NAME: "b".repeat(600),
      STAGE_NAME: "s".repeat(300),
      BUILD_URL: "ci.test/42",
    };
    expect(detect(variables)).toEqual({
      system: "jenkins",
      executionKey: `${"x".repeat(197)}-42`,
      branch: "b".repeat(500),
      task: "s".repeat(200),
    });
    const job = { GITLAB_CI: "true", CI_JOB_NAME: "unit 3/2", CI_NODE_INDEX: "3", CI_NODE_TOTAL: "2" };
    expect(detect(job)).toEqual({ system: "gitlab", task: "unit" });
    const half = { BITBUCKET_BUILD_NUMBER: "1", BITBUCKET_BRANCH: `${"b".repeat(499)}😀` };
    expect(detect(half).branch).toBe(`${"b".repeat(499)}\ufffd`);
  });

  test("an agent of Jenkins that another system has started tells of that one", () => {
    expect(detect({ JENKINS_URL: "https://ci.test/", ...GITHUB }).system).toBe("github");
  });
});
