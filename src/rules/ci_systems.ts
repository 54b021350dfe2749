/** Recognises CI systems, and maps their environment variables to the fields of a build. */

// `assay upload` uses this table, and tools/assay-upload.sh is tested against it.

/** The fields of a build that a CI system describes in variables. */
export type CiField = "executionKey" | "commit" | "branch" | "pullRequest" | "baseBranch" | "baseCommit" | "buildUrl";

type CiSystem = {
  /** The variable that only this system sets; with a value where others set the variable as well. */
  recognisedBy: { variable: string; value?: string };
  /**
   * The sources of each field, in order: the first one that is not empty is used. A source is the name of a variable, or
   * a text in which `$NAME` stands for one.
   */
  sources: Record<CiField, readonly string[]>;
};

/**
 * Systems are checked in this order. Exceptions that depend on more than one variable, such as forks, GitHub's event file and a commit that
 * only git knows, are in `cli/ci.ts`. The base commit of a system that provides none is in `cli/base_commit.ts`.
 */
const CI_SYSTEMS = {
  // Woodpecker comes first: versions that were forked from Drone set Drone's variable as well.
  woodpecker: {
    recognisedBy: { variable: "CI", value: "woodpecker" },
    sources: {
      executionKey: ["CI_PIPELINE_NUMBER"],
      commit: ["CI_COMMIT_SHA"],
      // In a pull request CI_COMMIT_BRANCH is the target.
      branch: ["CI_COMMIT_TAG", "CI_COMMIT_SOURCE_BRANCH", "CI_COMMIT_BRANCH"],
      pullRequest: ["CI_COMMIT_PULL_REQUEST"],
      baseBranch: ["CI_COMMIT_TARGET_BRANCH"],
      baseCommit: [],
      buildUrl: ["CI_PIPELINE_URL"],
    },
  },
  // Gitea and Forgejo set the same variables. The event file names the pull request and its head.
  github: {
    recognisedBy: { variable: "GITHUB_ACTIONS" },
    sources: {
      executionKey: ["GITHUB_RUN_ID"],
      commit: ["GITHUB_SHA"],
      branch: ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "GITHUB_REF"],
      pullRequest: [],
      baseBranch: ["GITHUB_BASE_REF"],
      baseCommit: [],
      buildUrl: ["$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"],
    },
  },
  gitlab: {
    recognisedBy: { variable: "GITLAB_CI" },
    sources: {
      executionKey: ["CI_PIPELINE_ID"],
      commit: ["CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"],
      branch: [
        "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
        "CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME",
        "CI_COMMIT_REF_NAME",
      ],
      pullRequest: ["CI_MERGE_REQUEST_IID", "CI_EXTERNAL_PULL_REQUEST_IID"],
      baseBranch: ["CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME"],
      // The head of the target branch is known where the merged result is tested; else the merge base counts.
      baseCommit: ["CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA"],
      buildUrl: ["CI_JOB_URL", "CI_PIPELINE_URL"],
    },
  },
  circleci: {
    recognisedBy: { variable: "CIRCLECI" },
    sources: {
      executionKey: ["CIRCLE_WORKFLOW_ID"],
      commit: ["CIRCLE_SHA1"],
      branch: ["CIRCLE_BRANCH", "CIRCLE_TAG"],
      // The first is an address that ends with the number.
      pullRequest: ["CIRCLE_PULL_REQUEST", "CIRCLE_PR_NUMBER"],
      baseBranch: [],
      baseCommit: [],
      buildUrl: ["CIRCLE_BUILD_URL"],
    },
  },
  azure: {
    recognisedBy: { variable: "TF_BUILD" },
    sources: {
      executionKey: ["BUILD_BUILDID"],
      commit: ["SYSTEM_PULLREQUEST_SOURCECOMMITID", "BUILD_SOURCEVERSION"],
      branch: ["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"],
      // For a repository at GitHub the id is not the number of the pull request.
      pullRequest: ["SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", "SYSTEM_PULLREQUEST_PULLREQUESTID"],
      baseBranch: ["SYSTEM_PULLREQUEST_TARGETBRANCH"],
      baseCommit: [],
      buildUrl: ["$SYSTEM_COLLECTIONURI$SYSTEM_TEAMPROJECT/_build/results?buildId=$BUILD_BUILDID"],
    },
  },
  bitbucket: {
    recognisedBy: { variable: "BITBUCKET_BUILD_NUMBER" },
    sources: {
      executionKey: ["BITBUCKET_BUILD_NUMBER"],
      commit: ["BITBUCKET_COMMIT"],
      branch: ["BITBUCKET_BRANCH", "BITBUCKET_TAG"],
      pullRequest: ["BITBUCKET_PR_ID"],
      baseBranch: ["BITBUCKET_PR_DESTINATION_BRANCH"],
      // The tested commit is merged with this one.
      baseCommit: ["BITBUCKET_PR_DESTINATION_COMMIT"],
      buildUrl: ["https://bitbucket.org/$BITBUCKET_REPO_FULL_NAME/pipelines/results/$BITBUCKET_BUILD_NUMBER"],
    },
  },
  buildkite: {
    recognisedBy: { variable: "BUILDKITE" },
    sources: {
      executionKey: ["BUILDKITE_BUILD_ID"],
      commit: ["BUILDKITE_COMMIT"],
      branch: ["BUILDKITE_BRANCH"],
      pullRequest: ["BUILDKITE_PULL_REQUEST"],
      baseBranch: ["BUILDKITE_PULL_REQUEST_BASE_BRANCH"],
      baseCommit: [],
      buildUrl: ["BUILDKITE_BUILD_URL"],
    },
  },
  drone: {
    recognisedBy: { variable: "DRONE" },
    sources: {
      executionKey: ["DRONE_BUILD_NUMBER"],
      commit: ["DRONE_COMMIT_SHA"],
      branch: ["DRONE_TAG", "DRONE_SOURCE_BRANCH", "DRONE_BRANCH"],
      pullRequest: ["DRONE_PULL_REQUEST"],
      // The variable is also set for pushes.
      baseBranch: ["DRONE_TARGET_BRANCH"],
      baseCommit: [],
      buildUrl: ["DRONE_BUILD_LINK"],
    },
  },
  // TeamCity sets few variables unless its builds are configured to.
  teamcity: {
    recognisedBy: { variable: "TEAMCITY_VERSION" },
    sources: {
      executionKey: [],
      commit: ["BUILD_VCS_NUMBER"],
      branch: [],
      pullRequest: [],
      baseBranch: [],
      baseCommit: [],
      buildUrl: ["BUILD_URL"],
    },
  },
  // Jenkins comes last, because one of its agents may have started any of the others.
  jenkins: {
    recognisedBy: { variable: "JENKINS_URL" },
    sources: {
      executionKey: ["BUILD_TAG"],
      commit: ["GIT_COMMIT"],
      branch: ["CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"],
      pullRequest: ["CHANGE_ID"],
      baseBranch: ["CHANGE_TARGET"],
      baseCommit: [],
      buildUrl: ["BUILD_URL"],
    },
  },
} as const satisfies Record<string, CiSystem>;

export type CiSystemName = keyof typeof CI_SYSTEMS;

/** The systems in the order in which they are asked for. */
export const CI_SYSTEM_LIST = Object.entries(CI_SYSTEMS) as [CiSystemName, CiSystem][];
