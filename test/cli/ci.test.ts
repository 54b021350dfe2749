/** `detectBuild` reads the build from what a CI system says of it. */

import { describe, expect, test } from "bun:test";
import { type CiBuild, detectBuild } from "../../src/cli/ci.ts";
import { BUILDS, EVENT_PATH, HEAD, MERGE } from "./ci_builds.ts";

type Outside = { event?: string; git?: Record<string, string> };

/** Without a git, unless there is one to ask; `git` has its answers, by the last argument. */
const detect = (variables: Record<string, string>, { event, git = {} }: Outside = {}): CiBuild =>
  detectBuild(
    variables,
    (path) => (path === EVENT_PATH ? event : undefined),
    (...args) => git[args.at(-1)!],
  );

test.each(BUILDS.map((build) => [build.name, build] as const))("%s", (_, { variables, build, ...outside }) => {
  expect(detect(variables, outside)).toEqual(build);
});

describe("without a CI system", () => {
  const git = { HEAD, "--show-current": "feat/a" };

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
});
