#!/bin/sh
# Uploads test reports to Assay with sh and curl only: assay-upload.sh [OPTION]… FILE… [-- command …]
#   --task T   --shard 2/4   --tag browser:webkit   --execution-key K   --gate quarantine|new
#   --complete  this is the only job of the build, or the last one   --strict  exit code 3 if nothing was uploaded
# Runs the command, which writes the reports; a FILE may be a pattern. ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY are required, ASSAY_TAGS
# contains tags with commas, ASSAY_EXECUTION_ID is the execution that started the job. Exits with the command's code, else 0; with --gate
# with 0 if the server forgives all failures; with 2 for wrong usage.
set +x # A trace would contain the key.
assay_files='' assay_task='' assay_tags='' assay_key='' assay_shard='' assay_complete='' assay_gate='' assay_lost=0 assay_code=''

# Names from reports could contain commands to CI systems and terminals: ##vso[…], ::error::, escape sequences.
show() { tr '\001-\011\013-\037\177' ' ' | LC_ALL=C sed "$(printf 's/\302[\200-\237]/ /g'); s/##\([A-Za-z0-9_]*\[\)/## \1/g; s/^[^A-Za-z0-9]/- &/"; }
say() { printf 'assay-upload: %s\n' "$1" | show >&2; }
usage() { say "$1" && exit 2; }

while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case $1 in
    --strict) assay_lost=3 ;;
    --complete) assay_complete=true ;;
    --task | --shard | --tag | --execution-key | --gate)
      [ $# -gt 1 ] || usage "$1 needs a value"
      case "$1 $2" in
        --task*) assay_task=$2 ;; --shard*) assay_shard=$2 ;; --tag*) assay_tags=$assay_tags,$2 ;; --execution-key*) assay_key=$2 ;;
        "--gate quarantine" | "--gate new") assay_gate=$2 ;; *) usage "--gate is quarantine or new" ;;
      esac
      shift ;;
    --help) sed -n '2,7s/^# //p' "$0" && exit ;;
    -*) usage "Unknown option $1" ;;
    *) assay_files=$(printf '%s\n%s' "$assay_files" "$1") ;;
  esac
  shift
done
[ -n "$assay_files" ] || usage "Name the report: FILE… [-- command …]"
assay_work=$(mktemp -d) || assay_work=/dev/null/none
trap 'rm -rf "$assay_work"' EXIT
trap : HUP INT TERM # The command ends, and its results are uploaded.
if [ $# -gt 1 ]; then
  shift
  touch "$assay_work/start"
  "$@"
  assay_code=$?
  exec >&2
  [ $assay_code = 0 ] || assay_lost=$assay_code
elif [ -n "$assay_gate" ] && [ $assay_lost = 0 ]; then assay_lost=1; fi

event='' shard='' commit='' pull='' base='' base_commit='' fork='' IFS=$(printf '\n.') IFS=${IFS%.}
lost() {
  say "Warning: the results are not uploaded: $1"
  [ -z "$GITHUB_ACTIONS" ] || [ -n "$fork" ] || echo '::warning title=Assay::Results were not uploaded: the log of this step says why' >&2
  exit "$assay_lost"
}
text() { case $event in *"\"$1\":\""*) event=${event#*"\"$1\":\""} && printf %s "${event%%\"*}" ;; esac; }
if [ -n "$GITHUB_ACTIONS" ]; then
  [ "$GITHUB_EVENT_NAME" != workflow_run ] || lost "assay-upload.sh does not know which build caused a workflow_run: use assay upload"
  key=$GITHUB_RUN_ID task=$GITHUB_JOB branch=${GITHUB_HEAD_REF:-${GITHUB_REF_NAME:-$GITHUB_REF}}
  run=$GITHUB_RUN_ID && [ -z "$FORGEJO_ACTIONS" ] || run=$GITHUB_RUN_NUMBER
  url=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$run
  case $GITHUB_REF in refs/pull/*/*) pull=${GITHUB_REF#refs/pull/} pull=${pull%%/*} ;; esac
  base=$GITHUB_BASE_REF
  # Without escaped quotation marks, no text in the event contains "head":{ or another of these keys.
  [ -z "$GITHUB_HEAD_REF" ] || [ ! -r "$GITHUB_EVENT_PATH" ] ||
    event=$(tr '\n\r\t' '   ' < "$GITHUB_EVENT_PATH" | LC_ALL=C sed 's/\\\\//g; s/\\"//g; s/" *: */":/g')
  case $event in *'"pull_request":{'*'"head":{'*)
    [ -n "$pull" ] || pull=${event#*'"number":'} pull=${pull%%[!0-9]*} # pull_request_target runs on the base branch.
    # The merge with the base is tested. A checkout says whether this is so, and with which commit.
    [ "$GITHUB_EVENT_NAME" != pull_request ] || git rev-parse -q --verify HEAD >/dev/null 2>&1 ||
      base_commit=$(event=${event#*'"base":{'} && text sha)
    event=${event#*'"head":{'} && commit=$(text sha) source=$(text full_name)
    case $event in *'"repo":null'*) source=$(text label) ;; esac # The repository of the fork was deleted.
    [ "$source" = "$GITHUB_REPOSITORY" ] || fork=${source%%[:/]*} ;;
  esac
  commit=${commit:-$GITHUB_SHA}
elif [ -n "$GITLAB_CI" ]; then
  key=$CI_PIPELINE_ID task=$CI_JOB_NAME url=${CI_JOB_URL:-$CI_PIPELINE_URL}
  commit=${CI_MERGE_REQUEST_SOURCE_BRANCH_SHA:-${CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA:-$CI_COMMIT_SHA}}
  branch=${CI_MERGE_REQUEST_SOURCE_BRANCH_NAME:-${CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME:-$CI_COMMIT_REF_NAME}}
  pull=${CI_MERGE_REQUEST_IID:-$CI_EXTERNAL_PULL_REQUEST_IID}
  base=${CI_MERGE_REQUEST_TARGET_BRANCH_NAME:-$CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME}
  base_commit=${CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-$CI_MERGE_REQUEST_DIFF_BASE_SHA}
  [ "${CI_MERGE_REQUEST_SOURCE_PROJECT_PATH:-$CI_MERGE_REQUEST_PROJECT_PATH}" = "$CI_MERGE_REQUEST_PROJECT_PATH" ] ||
    fork=${CI_MERGE_REQUEST_SOURCE_PROJECT_PATH%/*}
  [ "$CI_MERGE_REQUEST_EVENT_TYPE" != merge_train ] || # It tests more than the head of its merge request.
    branch=refs/merge-requests/$pull/train commit=$CI_COMMIT_SHA fork=''
  # The jobs of a matrix have the same variables, but other names.
  task=${task% "$CI_NODE_INDEX/$CI_NODE_TOTAL"} && [ "$task" = "$CI_JOB_NAME" ] || shard=$CI_NODE_INDEX/$CI_NODE_TOTAL
elif [ -n "$CIRCLECI" ]; then
  key=$CIRCLE_WORKFLOW_ID task=$CIRCLE_JOB commit=$CIRCLE_SHA1 branch=${CIRCLE_BRANCH:-$CIRCLE_TAG}
  pull=${CIRCLE_PULL_REQUEST##*/} url=$CIRCLE_BUILD_URL
  [ "${CIRCLE_NODE_TOTAL:-1}" = 1 ] || shard=$((CIRCLE_NODE_INDEX + 1))/$CIRCLE_NODE_TOTAL
elif [ -n "$TF_BUILD" ]; then
  key=$BUILD_BUILDID task=${SYSTEM_JOBIDENTIFIER%.__default} commit=${SYSTEM_PULLREQUEST_SOURCECOMMITID:-$BUILD_SOURCEVERSION}
  branch=${SYSTEM_PULLREQUEST_SOURCEBRANCH:-$BUILD_SOURCEBRANCH} base=${SYSTEM_PULLREQUEST_TARGETBRANCH#refs/heads/}
  pull=${SYSTEM_PULLREQUEST_PULLREQUESTNUMBER:-$SYSTEM_PULLREQUEST_PULLREQUESTID}
  url=$SYSTEM_COLLECTIONURI$SYSTEM_TEAMPROJECT/_build/results?buildId=$BUILD_BUILDID
  [ "$SYSTEM_PARALLELEXECUTIONTYPE" != MultiMachine ] || task=${task%.*} shard=$SYSTEM_JOBPOSITIONINPHASE/$SYSTEM_TOTALJOBSINPHASE
  case $SYSTEM_PULLREQUEST_ISFORK in [Tt]rue) # The owner at GitHub, or the repository at Azure.
    fork=${SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI%/}
    case $fork in */_git/*) ;; *) fork=${fork%/*} ;; esac && fork=${fork##*/} ;;
  esac
elif [ -n "$BUILDKITE" ]; then
  key=$BUILDKITE_BUILD_ID task=${BUILDKITE_LABEL:-$BUILDKITE_COMMAND} commit=$BUILDKITE_COMMIT branch=$BUILDKITE_BRANCH
  url=$BUILDKITE_BUILD_URL pull=${BUILDKITE_PULL_REQUEST#false} base=$BUILDKITE_PULL_REQUEST_BASE_BRANCH
  [ "$commit" != HEAD ] || commit=$(git rev-parse -q --verify HEAD 2>&-)
  [ -z "$BUILDKITE_PARALLEL_JOB_COUNT" ] || task=${BUILDKITE_STEP_KEY:-$BUILDKITE_COMMAND}
  [ "${BUILDKITE_PARALLEL_JOB_COUNT:-1}" = 1 ] || shard=$((BUILDKITE_PARALLEL_JOB + 1))/$BUILDKITE_PARALLEL_JOB_COUNT
elif [ -n "$JENKINS_URL" ]; then
  key=$BUILD_TAG task=$STAGE_NAME pull=$CHANGE_ID url=$BUILD_URL fork=${CHANGE_FORK%%/*} base=$CHANGE_TARGET
  branch=${CHANGE_BRANCH:-${BRANCH_NAME:-${GIT_BRANCH#origin/}}}
  [ -z "$CHANGE_ID" ] || commit=$(git rev-parse -q --verify "origin/$BRANCH_NAME" 2>/dev/null) # The head of what it merges.
  commit=${commit:-$GIT_COMMIT}
else
  key='' task='' url='' commit=$(git rev-parse -q --verify HEAD 2>&-) branch=$(git symbolic-ref -q --short HEAD 2>&-)
fi
if [ -n "$pull" ] && [ -z "$base_commit" ]; then
  # The commit and its true parents, which a shallow clone knows as well. Nothing is fetched.
  set -- $(GIT_NO_LAZY_FETCH=1 git show -s HEAD --format=raw 2>/dev/null | sed -n 's/^commit //p; s/^parent //p')
  case $#:$commit in
    3:"$2") base_commit=$3 ;; 3:"$3") base_commit=$2 ;; # HEAD merges the pull request with its base.
    [1-3]:"$1") base_commit=$(GIT_NO_LAZY_FETCH=1 git merge-base HEAD "origin/${base:-HEAD}" 2>/dev/null) ;;
  esac
fi
[ "$base_commit" != "$commit" ] || base_commit=''
[ -n "$ASSAY_URL" ] && [ -n "$ASSAY_PROJECT" ] && [ -n "$ASSAY_KEY" ] ||
  lost "set ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY${fork:+ (the pull request of a fork has no secrets)}"

# curl reads its options from a pipe, because other users can read the words of a command.
quote() { printf %s "$1" | tr '\n\r' '  ' | LC_ALL=C sed 's/[\\"]/\\&/g'; }
option() { printf '%s = "%s"\n' "$1" "$(quote "$2")"; }
field() { [ -z "$2" ] || option form-string "$1=$2"; }
report() { option form "report=@\"$(quote "$1")\""; }
fields=$(
  if [ -n "$ASSAY_EXECUTION_ID" ]; then field execution_id "$ASSAY_EXECUTION_ID"; else field execution_key "${assay_key:-$key}"; fi
  field task_slug "${assay_task:-$task}"; field shard "${assay_shard:-$shard}"; field tag "${assay_tags:-$ASSAY_TAGS}"
  field commit "$commit"; field branch "${fork:+$fork:}${branch#refs/heads/}"; field base_branch "$base"; field base_commit "$base_commit"
  field pull_request "$pull"
  field build_url "$url"; field complete "$assay_complete"
)
send() { # Takes the options for the reports, the exit code, the gate, why there is no report, and whether a shard may have none.
  status=$({
    printf '%s\n' "$fields" "$1"; field exit_code "$2"; field gate "$3"; field failure "$4"; field allow_empty "$5"
    option url "${ASSAY_URL%/}/api/v1/projects/$ASSAY_PROJECT/test-runs"; option header "Authorization: Bearer $ASSAY_KEY"
  } | curl -sS -K - -o "$assay_work/answer" -w '%{http_code}' \
    --retry 5 --retry-connrefused --retry-max-time 120 --connect-timeout 10 --max-time 90 -H Accept:text/plain \
    -H "Idempotency-Key: $(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" 2>&1)
}
reports='' absent='' gate=$assay_gate status=400
for file in $assay_files; do
  [ -s "$file" ] && [ ! "$assay_work/start" -nt "$file" ] && reports=$(printf '%s\n%s' "$reports" "$(report "$file")") && continue
  gate='' && say "No \"$file\", or none since the command began"
  case $file in *[*?[]*) ;; *) [ -e "$file" ] || absent="$absent $file" ;; esac # A pattern may match nothing.
done
[ -n "$reports$assay_code" ] || lost "there is no report"
[ "${assay_code:-0}" = 0 ] || absent=''
[ -z "$reports" ] || send "$reports" "$assay_code" "$gate" "${absent:+No report: File not found:$absent}"
case ${assay_shard:-$shard}:$assay_code:$status in ?*:0:*400) # The split may have given this shard no files.
  : > "$assay_work/none.xml"
  send "$(report "$assay_work/none.xml")" 0 "$assay_gate" '' if_no_files ;;
esac
case $assay_code:$status in ?*:*400) # A command without a readable report has failed, whatever its code.
  why="No report: File not found:$(printf %s "$assay_files" | tr '\n' ' ')"
  [ -z "$reports" ] || { why=$(printf 'No report: %.900s' "$(sed 's/.*"message":"//; s/"}}$//; s/\\"/"/g' "$assay_work/answer")") && say "$why"; }
  gate='' && : > "$assay_work/none.xml"
  send "$(report "$assay_work/none.xml")" "$assay_code" '' "$why" ;;
esac
case $status in *20[01]) ;; *)
  lost "$(cat "$assay_work/answer" 2>/dev/null || printf '%s\n' "$status" | sed -n 'x;$p') (${status##*"$IFS"})" ;;
esac
show < "$assay_work/answer"
[ -n "$assay_gate" ] || exit "${assay_code:-0}"
read -r first < "$assay_work/answer"
case $gate:$first in ?*":Gate $gate: passed"*) [ "${assay_code:-0}" -ge 126 ] || exit 0 ;; esac
exit "${assay_code:-1}"
