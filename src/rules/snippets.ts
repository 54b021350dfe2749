/** Ready-made steps for each CI system: they run the tests and upload what becomes of them to a project's real address. */

import type { System } from "../schema/onboarding.ts";
import { CI_SYSTEM_LIST, type CiField, type CiSystemName } from "./ci_systems.ts";

/** What an upload says of its build, as words of a shell script. */
type Origin = {
  report?: string;
  build: string;
  task: string;
  /** The name of a variable, which may be empty. */
  shard: string;
  commit: string;
  branch: string;
  pullRequest: string;
  buildUrl: string;
  /** Whether no further upload belongs to the build: "true" or "false". */
  complete?: string;
};

const field = (name: string, value: string) => `--form-string "${name}=${value}"`;

/**
 * For sh, bash and busybox, with `set -e` or without; `$code` is the exit code of the tests. It never fails.
 * - What is told of a name is `--form-string`, which takes "@", "<" and ";" literally.
 * - `--fail` would hide why Assay refuses a report, and makes curl before 7.75 ignore Retry-After; `--retry-all-errors`
 *   and `--fail-with-body` are unknown to curl before 7.71 and 7.76, which would then upload nothing.
 * - The key reaches curl by a pipe: other users of the machine can read the words of a command.
 * - The answer is printed without the commands that GitHub, Azure and TeamCity look for in a log, such as ::error:: and
 *   ##vso[…]: it may hold names from reports.
 * - Only the author of the pipeline knows whether other jobs upload to the same build. A build of one job ends at once; where
 *   there are several, a task that comes after the end joins the build, and its failures are told, but "passed" may be told
 *   before all of them are in: ASSAY_COMPLETE is for that. A shard never ends its build.
 * - A report without test cases is taken only where the exit code makes a failure of it.
 */
function upload(url: string, origin: Origin): string {
  const { report = "report.xml", build, task, shard, commit, branch, complete } = origin;
  const fields = [
    field("exit_code", "$code"),
    field("allow_empty", `$([ "$code" = 0 ] && echo false || echo true)`),
    field("execution_key", build),
    field("task_slug", task),
    `\${${shard}:+${field("shard", `$${shard}`)}}`,
    field("commit", commit),
    field("branch", branch),
    field("pull_request", origin.pullRequest),
    field("build_url", origin.buildUrl),
    field("repository_root", "$PWD"),
    field("complete", complete ?? `\${ASSAY_COMPLETE:-$([ -n "\${${shard}-}" ] && echo false || echo true)}`),
  ];
  return [
    `# No report is a failure too: runner exited $code, or -1 where the tests claim success.`,
    `report=${report}`,
    `[ -s "$report" ] || { report=$(mktemp); echo '<testsuites/>' > "$report"; [ "$code" != 0 ] || code=-1; }`,
    `{ printf 'header = "Authorization: Bearer %s"' "$ASSAY_KEY" |`,
    `  curl -sS --retry 6 --retry-connrefused --retry-max-time 120 --connect-timeout 10 --max-time 90 \\`,
    `  -K - -H "Accept: text/plain" \\`,
    `  -H "Idempotency-Key: $(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')" -F "report=@$report" \\`,
    ...fill(fields).map((line) => `  ${line} \\`),
    `  "${url}" ||`,
    `  echo "Assay was not reached: the results are not uploaded" >&2; } |`,
    `  tr '\\001-\\011\\013-\\037' ' ' | LC_ALL=C sed 's/##\\([a-zA-Z0-9_]*\\[\\)/## \\1/g; s/^[^a-zA-Z0-9{]/- &/'`,
  ].join("\n");
}

/** Returns the shell word that expands to a field of the build: the first of the system's variables that is not empty. */
function wordOf(system: CiSystemName, field: CiField): string {
  const { sources, parts = {}, notInSnippet = [] } = new Map(CI_SYSTEM_LIST).get(system)!;
  return sources[field]
    .filter((source) => !notInSnippet.includes(source))
    .reduceRight((rest, source) => {
      if (rest !== "") return `\${${source}:-${rest}}`;
      if (source.includes("$")) return source;
      const part = parts[source];
      return part === undefined ? `$${source}` : `\${${source}${part}}`;
    }, "");
}

/** Lines of words, none longer than `WIDTH` unless it is one word. */
function fill(words: readonly string[]): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length <= WIDTH) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
const WIDTH = 110;

const indent = (text: string, width: number) => text.replace(/^(?=.)/gm, " ".repeat(width));

/** Of tests whose system does not tell the steps after them how they ended: a file does, unless even the shell died. */
const RUN_AND_TELL = `rm -f report.xml exit_code; trap 'echo $? > exit_code' EXIT
npm test`;

/** Where the lines before have worked them out. */
const JOB = { task: "$task", shard: "shard" };

const curl = (
  url: string,
) => `# npm test stands for your tests, which write report.xml; ASSAY_KEY holds the project's key.
# Where several jobs make a build, all have the same BUILD_ID, and each a TASK of its own or a SHARD such as 2/4.
# All of them but the last have COMPLETE=false: until then the build waits.
rm -f report.xml
tests=0; npm test || tests=$?
code=$tests
build=\${BUILD_ID:-$(date +%s)-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \\n')}
${upload(url, {
  build: "$build",
  task: "${TASK:-tests}",
  shard: "SHARD",
  commit: "${COMMIT:-$(git rev-parse HEAD)}",
  branch: "${BRANCH:-$(git symbolic-ref -q --short HEAD)}",
  pullRequest: "${PULL_REQUEST-}",
  buildUrl: "${BUILD_URL-}",
  complete: `\${COMPLETE:-$([ -n "\${SHARD-}" ] && echo false || echo true)}`,
})}
(exit "$tests")
`;

const githubActions = (
  url: string,
) => `# npm test stands for your tests, which write report.xml; ASSAY_KEY is a secret of the repository.
# Where several jobs upload to one build, set ASSAY_COMPLETE to false in all of them but the last.
# On Windows both steps want shell: bash.
- id: tests
  run: |
    rm -f report.xml
    npm test
- name: Upload test results to Assay
  if: \${{ !cancelled() && (failure() || steps.tests.outcome != 'skipped') }}
  continue-on-error: true
  env:
    ASSAY_KEY: \${{ secrets.ASSAY_KEY }}
    OUTCOME: \${{ steps.tests.outcome || job.status }}
    TASK: \${{ github.job }} \${{ join(matrix.*, ' ') }} # in a matrix over shards: \${{ github.job }}
    SHARD: "" # and here: \${{ matrix.shard }}/4
    COMMIT: \${{ github.event.pull_request.head.sha || github.sha }}
    BRANCH: \${{ github.head_ref || github.ref_name }}
    PULL_REQUEST: \${{ github.event.pull_request.number }}
  run: |
    code=1; [ "$OUTCOME" != success ] || code=0
${indent(
  upload(url, {
    build: wordOf("github", "executionKey"),
    task: "${TASK% }",
    shard: "SHARD",
    commit: "$COMMIT",
    branch: "$BRANCH",
    pullRequest: "$PULL_REQUEST",
    buildUrl: wordOf("github", "buildUrl"),
  }),
  4,
)}
`;

const gitlabCi = (
  url: string,
) => `# npm test stands for your tests, which write report.xml; ASSAY_KEY is a masked variable of the project.
# Where several jobs upload to one build, set ASSAY_COMPLETE to false in all of them but the last.
script:
  - rm -f report.xml
  - npm test
after_script:
  - |
    [ "$CI_JOB_STATUS" != canceled ] || exit 0
    code=1; [ "$CI_JOB_STATUS" != success ] || code=0
    # "parallel: 4" makes shards of a job; a matrix makes jobs of other names.
    task=\${CI_JOB_NAME% "$CI_NODE_INDEX/$CI_NODE_TOTAL"} shard=
    [ "$task" = "$CI_JOB_NAME" ] || shard=$CI_NODE_INDEX/$CI_NODE_TOTAL
${indent(
  upload(url, {
    ...JOB,
    build: wordOf("gitlab", "executionKey"),
    commit: wordOf("gitlab", "commit"),
    branch: wordOf("gitlab", "branch"),
    pullRequest: wordOf("gitlab", "pullRequest"),
    buildUrl: wordOf("gitlab", "buildUrl"),
  }),
  4,
)}
`;

/** Of a pull request that is merged before it is built, the head is what was fetched as its branch. */
const jenkins = (
  url: string,
) => `// npm test stands for your tests, which write report.xml; ASSAY_KEY is a credential of the kind "Secret text".
// Where several jobs upload to one build, set ASSAY_COMPLETE to false in all of them but the last.
stage('unit') {
  steps {
    sh '''
${indent(RUN_AND_TELL, 6)}
    '''
  }
  post { always { script {
    if (currentBuild.currentResult == 'ABORTED') return
    withCredentials([string(credentialsId: 'ASSAY_KEY', variable: 'ASSAY_KEY')]) {
      sh label: 'Upload test results to Assay', returnStatus: true, script: '''
${indent(
  `code=$(cat exit_code || echo 1); rm -f exit_code
task="$STAGE_NAME" shard= # in a matrix with its axes: task="$STAGE_NAME $PLATFORM $BROWSER"
commit=${wordOf("jenkins", "commit")} # of a pull request its head, where Jenkins has merged it
[ -z "$CHANGE_ID" ] || commit=$(git rev-parse -q --verify "origin/$BRANCH_NAME") || commit=${wordOf("jenkins", "commit")}
${upload(url, {
  ...JOB,
  build: wordOf("jenkins", "executionKey"),
  commit: "$commit",
  branch: wordOf("jenkins", "branch"),
  pullRequest: wordOf("jenkins", "pullRequest"),
  buildUrl: wordOf("jenkins", "buildUrl"),
})}`.replaceAll("\\", "\\\\"),
  8,
)}
      '''
    }
  } } }
}
`;

const circleci = (
  url: string,
) => `# npm test stands for your tests, which write report.xml; ASSAY_KEY is an environment variable of the project.
# Where several jobs upload to one build, set ASSAY_COMPLETE to false in all of them but the last.
- run:
    name: Test
    command: |
${indent(RUN_AND_TELL, 6)}
- run:
    name: Upload test results to Assay
    when: always
    command: |
${indent(
  `code=$(cat exit_code || echo 1)
shard=; [ "\${CIRCLE_NODE_TOTAL:-1}" = 1 ] || shard=$((CIRCLE_NODE_INDEX + 1))/$CIRCLE_NODE_TOTAL
${upload(url, {
  build: wordOf("circleci", "executionKey"),
  task: "$CIRCLE_JOB",
  shard: "shard",
  commit: wordOf("circleci", "commit"),
  branch: wordOf("circleci", "branch"),
  pullRequest: wordOf("circleci", "pullRequest"),
  buildUrl: wordOf("circleci", "buildUrl"),
})}`,
  6,
)}
`;

const azurePipelines = (
  url: string,
) => `# npm test stands for your tests, which write report.xml; ASSAY_KEY is a secret variable of the pipeline.
# Where several jobs upload to one build, set ASSAY_COMPLETE to false in all of them but the last.
- bash: |
    rm -f report.xml
    npm test
- bash: |
    case $JOB_STATUS in Succeeded*) code=0 ;; *) code=1 ;; esac
    task=$SYSTEM_JOBIDENTIFIER shard=
    # "parallel: 4" makes shards of a job; a matrix makes jobs of other names.
    if [ "$SYSTEM_PARALLELEXECUTIONTYPE" = MultiMachine ]; then
      task=\${task%.*} shard=$SYSTEM_JOBPOSITIONINPHASE/$SYSTEM_TOTALJOBSINPHASE
    fi
    branch=${wordOf("azure", "branch")}
${indent(
  upload(url, {
    build: wordOf("azure", "executionKey"),
    task: "${task%.__default}",
    shard: "shard",
    commit: wordOf("azure", "commit"),
    branch: "${branch#refs/heads/}",
    pullRequest: wordOf("azure", "pullRequest"),
    buildUrl: wordOf("azure", "buildUrl"),
  }),
  4,
)}
  displayName: Upload test results to Assay
  condition: not(canceled())
  continueOnError: true
  env:
    ASSAY_KEY: $(ASSAY_KEY)
    JOB_STATUS: $(Agent.JobStatus)
`;

/** The label of a parallel step may number its jobs, and a matrix may neither be parallel nor have keys of its own. */
const buildkite = (
  url: string,
) => `# .buildkite/hooks/post-command, for the steps with env: { REPORT: report.xml }; ASSAY_KEY is a secret of the agent.
# The label names the task: in a matrix it holds {{matrix}}.
# Where several jobs upload to one build, set ASSAY_COMPLETE to false in all of them but the last.
if [ -n "$REPORT" ]; then
  code=\${BUILDKITE_COMMAND_EXIT_STATUS:-1}
  task=\${BUILDKITE_LABEL:-$BUILDKITE_COMMAND} shard=
  if [ -n "$BUILDKITE_PARALLEL_JOB_COUNT" ]; then
    task=\${BUILDKITE_STEP_KEY:-$BUILDKITE_COMMAND}
    shard=$((BUILDKITE_PARALLEL_JOB + 1))/$BUILDKITE_PARALLEL_JOB_COUNT
  fi
  [ "${wordOf("buildkite", "commit")}" = HEAD ] && commit=$(git rev-parse HEAD) || commit=${wordOf("buildkite", "commit")}
${indent(
  upload(url, {
    ...JOB,
    report: "$REPORT",
    build: wordOf("buildkite", "executionKey"),
    commit: "$commit",
    branch: wordOf("buildkite", "branch"),
    pullRequest: wordOf("buildkite", "pullRequest"),
    buildUrl: wordOf("buildkite", "buildUrl"),
  }),
  2,
)}
fi
`;

/** `url` is the address of the project's test runs. */
export const createSnippets = (url: string): Record<System, string> => ({
  curl: curl(url),
  githubActions: githubActions(url),
  gitlabCi: gitlabCi(url),
  jenkins: jenkins(url),
  circleci: circleci(url),
  azurePipelines: azurePipelines(url),
  buildkite: buildkite(url),
});
