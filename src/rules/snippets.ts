/** Ready-made uploads for each CI system, with a project's real address. */

import type { System } from "../schema/onboarding.ts";

/** A field that is left out where its variable is empty. */
const field = (name: string, variable: string) => `\${${variable}:+--form-string "${name}=$${variable}"}`;

/** One request that any shell can send; `fields` are its other lines. */
const upload = (url: string, fields: readonly string[]) =>
  [
    `curl -sS --fail-with-body -H "Authorization: Bearer $ASSAY_KEY" -F report=@report.xml \\`,
    ...fields.map((one) => `  ${one} \\`),
    `  "${url}"`,
  ].join("\n");

const indent = (text: string, width: number) => text.replace(/^(?=.)/gm, " ".repeat(width));

/** `url` is the address of the project's test runs. */
export function createSnippets(url: string): Record<System, string> {
  const github = upload(url, [
    `--form-string "commit=$COMMIT" --form-string "branch=$BRANCH"`,
    field("pull_request", "PULL_REQUEST"),
    `--form-string "build_url=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"`,
  ]);
  const gitlab = upload(url, [
    `--form-string "commit=\${CI_MERGE_REQUEST_SOURCE_BRANCH_SHA:-$CI_COMMIT_SHA}"`,
    `--form-string "branch=\${CI_MERGE_REQUEST_SOURCE_BRANCH_NAME:-$CI_COMMIT_REF_NAME}"`,
    field("pull_request", "CI_MERGE_REQUEST_IID"),
    `--form-string "build_url=$CI_JOB_URL"`,
  ]);
  const jenkins = upload(url, [
    field("commit", "GIT_COMMIT"),
    `--form-string "branch=\${CHANGE_BRANCH:-\${BRANCH_NAME:-\${GIT_BRANCH#origin/}}}"`,
    field("pull_request", "CHANGE_ID"),
    `--form-string "build_url=$BUILD_URL"`,
  ]);
  const circle = upload(url, [
    `--form-string "commit=$CIRCLE_SHA1"`,
    field("branch", "CIRCLE_BRANCH"),
    `\${CIRCLE_PULL_REQUEST:+--form-string "pull_request=\${CIRCLE_PULL_REQUEST##*/}"}`,
    `--form-string "build_url=$CIRCLE_BUILD_URL"`,
  ]);
  const azure = upload(url, [
    `--form-string "commit=\${SYSTEM_PULLREQUEST_SOURCECOMMITID:-$BUILD_SOURCEVERSION}"`,
    `--form-string "branch=$(echo "\${SYSTEM_PULLREQUEST_SOURCEBRANCH:-$BUILD_SOURCEBRANCH}" | sed s,^refs/heads/,,)"`,
    field("pull_request", "SYSTEM_PULLREQUEST_PULLREQUESTID"),
    `--form-string "build_url=$SYSTEM_COLLECTIONURI$SYSTEM_TEAMPROJECT/_build/results?buildId=$BUILD_BUILDID"`,
  ]);
  const buildkite = upload(url, [
    `--form-string "commit=$BUILDKITE_COMMIT" --form-string "branch=$BUILDKITE_BRANCH"`,
    `$([ "\${BUILDKITE_PULL_REQUEST:-false}" = false ] || echo "--form-string pull_request=$BUILDKITE_PULL_REQUEST")`,
    `--form-string "build_url=$BUILDKITE_BUILD_URL"`,
  ]);
  return {
    curl: `# report.xml is what your tests wrote; ASSAY_KEY holds the project's key.
${upload(url, [`--form-string "branch=$(git rev-parse --abbrev-ref HEAD)" --form-string "commit=$(git rev-parse HEAD)"`])}
`,
    githubActions: `# A step after the one that runs the tests; ASSAY_KEY is a secret of the repository.
- name: Upload test results to Assay
  if: \${{ !cancelled() }}
  continue-on-error: true
  env:
    ASSAY_KEY: \${{ secrets.ASSAY_KEY }}
    COMMIT: \${{ github.event.pull_request.head.sha || github.sha }}
    BRANCH: \${{ github.head_ref || github.ref_name }}
    PULL_REQUEST: \${{ github.event.pull_request.number }}
  run: |
${indent(github, 4)}
`,
    gitlabCi: `# In the job that runs the tests; ASSAY_KEY is a masked variable of the project.
after_script:
  - |
${indent(gitlab, 4)}
`,
    jenkins: `// In the Jenkinsfile's pipeline; ASSAY_KEY is a credential of the kind "Secret text".
post {
  always {
    withCredentials([string(credentialsId: 'ASSAY_KEY', variable: 'ASSAY_KEY')]) {
      sh label: 'Upload test results to Assay', returnStatus: true, script: '''
${indent(jenkins.replaceAll("\\", "\\\\"), 8)}
      '''
    }
  }
}
`,
    circleci: `# A step after the one that runs the tests; ASSAY_KEY is an environment variable of the project.
- run:
    name: Upload test results to Assay
    when: always
    command: |
${indent(circle, 6)} || true
`,
    azurePipelines: `# A step after the one that runs the tests; ASSAY_KEY is a secret variable of the pipeline.
- bash: |
${indent(azure, 4)}
  displayName: Upload test results to Assay
  condition: not(canceled())
  continueOnError: true
  env:
    ASSAY_KEY: $(ASSAY_KEY)
`,
    buildkite: `# .buildkite/hooks/post-command runs after the tests; ASSAY_KEY is a secret that the agent provides.
${buildkite} || true
`,
  };
}
