#!/bin/sh
# Uploads test reports to Assay, after the command that writes them where there is one; all it takes is sh and curl.
#   assay-upload.sh [--task T] [--tag K:V]… [--shard 2/4] [--execution-key K] [--attach FILE]… [--gate quarantine|new] [--complete] [--strict] FILE… [-- command …]
# ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY say where to; ASSAY_EXECUTION_ID is the execution that has asked for the tests.
# A FILE may be a pattern. --attach sends a log, a picture, any file (no link) for the run as a whole. Exits with the command's code, else 0; 2: wrong usage; 3: --strict, and nothing was uploaded.
# --complete is for the only job of a build, or the last one: the build then ends at once. --tag browser:webkit is for a job of a matrix (docs/variants.md); ASSAY_TAGS has several, with commas. --gate: exits with 0 if the server forgives all failures (docs/gate.md).
set +x; assay_config='' assay_files='' assay_attached='' assay_task='' assay_tags='' assay_key='' assay_shard='' assay_complete='' assay_gate='' assay_lost=0 assay_code=''
# One line without the key (a trace has it, hence set +x), and without commands to terminals and CI systems: ESC, ::x::, ##vso[.
plain() { assay_line='' assay_rest=$(printf %s "$1" | LC_ALL=C tr '\001-\037\177' ' ' | LC_ALL=C sed "$(printf 's/\302[\200-\237]/ /g')
  s/##\([A-Za-z0-9_]*\[\)/## \1/g; s/^[^A-Za-z0-9]/- &/"); while case $assay_rest in *"${ASSAY_KEY:-$assay_rest-}"*) ;; *) false ;; esac; do
    assay_line="$assay_line${assay_rest%%"$ASSAY_KEY"*}***" assay_rest=${assay_rest#*"$ASSAY_KEY"}
  done; printf '%.4000s\n' "$assay_line$assay_rest"; }
say() { plain "assay-upload: $1" >&2; }; lost() { say "Warning: the results are not uploaded: $1"; [ -z "${GITHUB_ACTIONS-}" ] || echo '::warning title=Assay::Results were not uploaded: the log of this step says why' >&2; exit "$assay_lost"; }
quote() { printf %s "$1" | tr '\n\r' '  ' | LC_ALL=C sed 's/[\\"]/\\&/g'; }
option() { assay_config=$(printf '%s\n%s = "%s"' "$assay_config" "$1" "$(quote "$2")"); }
field() { [ -z "$2" ] || option form-string "$1=$2"; }; attach() { option form "report=@\"$(quote "$1")\""; }
send() { field exit_code "$1"; field gate "$assay_asked"; option url "${ASSAY_URL%/}/api/v1/projects/$ASSAY_PROJECT/test-runs"; option header "Authorization: Bearer $ASSAY_KEY"
  status=$(trap '' XFSZ; ulimit -f 128 2>/dev/null; printf %s "$assay_config" | curl -sS -K - -o "$assay_work/answer" -w '%{http_code}' \
  --retry 5 --retry-connrefused --retry-max-time 120 --connect-timeout 10 --max-time 90 -H Accept:text/plain -H \
  "Idempotency-Key: $(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')" 2>&1); } # The answer may have 128 blocks.
while [ $# -gt 0 ] && [ "$1" != -- ]; do case $1 in --strict) assay_lost=3 ;; --complete) assay_complete=true ;;
    --task | --tag | --shard | --execution-key | --attach | --gate) [ $# -gt 1 ] || { say "$1 wants a value" && exit 2; }
      case $1 in --task) assay_task=$2 ;; --tag) assay_tags=$assay_tags,$2 ;; --shard) assay_shard=$2; case $2 in '') ;; *[!0-9/]* | */*/* | 0* | */0* | /* | */) false ;; */*) [ "${2%/*}" -le "${2#*/}" ] ;; *) false ;; esac || { say "--shard is one such as 2/4" && exit 2; } ;; --gate) assay_gate=$2; case $2 in quarantine | new) ;; *) say "--gate is quarantine or new" && exit 2 ;; esac ;; --attach) assay_attached=$(printf '%s\n%s' "$assay_attached" "$2") ;; *) assay_key=$2 ;; esac && shift ;;
    --help) sed -n '2,6s/^# //p' "$0" && exit ;; -*) say "Unknown option $1" && exit 2 ;;
    *) assay_files=$(printf '%s\n%s' "$assay_files" "$1") ;;
  esac && shift; done; [ -n "$assay_files" ] || { say "Name the report: FILE… [-- command …]" && exit 2; }
assay_work=$(mktemp -d) || assay_work=/dev/null/none; trap 'rm -rf "$assay_work"' EXIT; trap : HUP INT TERM # It waits.
[ $# -lt 2 ] || { shift; touch "$assay_work/start"; "$@"; assay_code=$?; exec >&2; [ $assay_code = 0 ] || assay_lost=$assay_code; }; assay_asked=$assay_gate; [ -z "$assay_gate" ] || [ "$assay_code$assay_lost" != 0 ] || assay_lost=1
# Reads GitHub's event file. Strings come one to a line, and so does the punctuation between them; at is the path of keys.
event() { at='' key='' last='' tokens=$(tr '\n\r\t' '   ' < "$GITHUB_EVENT_PATH" 2>/dev/null | LC_ALL=C sed 's/\\\\/ /g; s|\\/|/|g; s/\\./ /g; s/"[^"]*"/\
&\
/g' | LC_ALL=C sed '/^"/!s/[][{},:]/\
&\
/g')
  while IFS=' ' read -r token; do case $token in
    '{' | '[') at=$at/$key key=; [ "$token" = '{' ] || key=0 ;; '}' | ']') at=${at%/*} key= ;; ',') key= ;;
    :) case $last in */*) key=_ ;; *) key=$last ;; esac ;; '') ;;
    *) last=${token#\"}; last=${last%\"}; [ -z "$key" ] || case $at/$key in
        //pull_request/number | //workflow_run/pull_requests/0/number) pull=$last ;;
        //pull_request/head/sha | //workflow_run/head_sha) commit=$last ;;
        //pull_request/head/ref | //workflow_run/head_branch) head=$last ;;
        //pull_request/head/repo/full_name | //workflow_run/head_repository/full_name) source=$last ;;
        //pull_request/base/repo/full_name | //workflow_run/repository/full_name) target=$last ;;
        //pull_request/head/repo/owner/login | //workflow_run/head_repository/owner/login) owner=$last ;;
        //pull_request/head/user/login) user=$last ;; //workflow_run/id) run=$last ;; //workflow_run/html_url) url=$last ;;
      esac ;;
  esac; done <<EVENT
$tokens
EVENT
}
shard='' commit='' pull='' base='' untrusted='' fork='' url='' head='' source='' target='' owner='' user='' run='' reports='' IFS=$(printf '\n.') IFS=${IFS%.}
if [ -n "$GITHUB_ACTIONS" ]; then [ ! -r "$GITHUB_EVENT_PATH" ] || event
  key=$GITHUB_RUN_ID task=$GITHUB_JOB branch=${GITHUB_HEAD_REF:-${GITHUB_REF_NAME:-$GITHUB_REF}} # The pull request's number, if all else fails:
  [ -n "$commit" ] || { pull= && case $GITHUB_REF in refs/pull/*/*) pull=${GITHUB_REF#refs/pull/} pull=${pull%%/*} ;; esac; }
  if [ -n "$run" ] && [ -n "$commit" ]; then key=$run branch=$head; [ "$source" = "$target" ] || untrusted=true; else branch=${GITHUB_HEAD_REF:-${head:-$branch}} url=; fi # Or of workflow_run.
  [ -z "$commit" ] || [ "$source" = "$target" ] || fork=${owner:-$user}
  [ -z "$FORGEJO_ACTIONS" ] || run=$GITHUB_RUN_NUMBER
  commit=${commit:-$GITHUB_SHA} url=${url:-$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/${run:-$GITHUB_RUN_ID}}
elif [ -n "$GITLAB_CI" ]; then key=$CI_PIPELINE_ID commit=${CI_MERGE_REQUEST_SOURCE_BRANCH_SHA:-${CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA:-$CI_COMMIT_SHA}} task=$CI_JOB_NAME
  branch=${CI_MERGE_REQUEST_SOURCE_BRANCH_NAME:-${CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME:-$CI_COMMIT_REF_NAME}}
  pull=${CI_MERGE_REQUEST_IID:-$CI_EXTERNAL_PULL_REQUEST_IID} url=${CI_JOB_URL:-$CI_PIPELINE_URL}
  [ -z "$CI_MERGE_REQUEST_PROJECT_PATH" ] || [ "${CI_MERGE_REQUEST_SOURCE_PROJECT_PATH:-$CI_MERGE_REQUEST_PROJECT_PATH}" = "$CI_MERGE_REQUEST_PROJECT_PATH" ] || fork=${CI_MERGE_REQUEST_SOURCE_PROJECT_PATH%/*}
  [ "$CI_MERGE_REQUEST_EVENT_TYPE" != merge_train ] || # It tests more than the head of its merge request.
    branch=refs/merge-requests/$pull/train base=$CI_MERGE_REQUEST_TARGET_BRANCH_NAME commit=$CI_COMMIT_SHA fork=
  task=${task% "$CI_NODE_INDEX/$CI_NODE_TOTAL"}; [ "$task" = "$CI_JOB_NAME" ] || shard=$CI_NODE_INDEX/$CI_NODE_TOTAL # No matrix.
elif [ -n "$CIRCLECI" ]; then key=$CIRCLE_WORKFLOW_ID task=$CIRCLE_JOB commit=$CIRCLE_SHA1 branch=${CIRCLE_BRANCH:-$CIRCLE_TAG}
  pull=${CIRCLE_PULL_REQUEST##*/} url=$CIRCLE_BUILD_URL; [ "${CIRCLE_NODE_TOTAL:-1}" = 1 ] || shard=$((CIRCLE_NODE_INDEX + 1))/$CIRCLE_NODE_TOTAL
elif [ -n "$TF_BUILD" ]; then key=$BUILD_BUILDID commit=${SYSTEM_PULLREQUEST_SOURCECOMMITID:-$BUILD_SOURCEVERSION}
  branch=${SYSTEM_PULLREQUEST_SOURCEBRANCH:-$BUILD_SOURCEBRANCH} task=${SYSTEM_JOBIDENTIFIER%.__default}
  pull=${SYSTEM_PULLREQUEST_PULLREQUESTNUMBER:-$SYSTEM_PULLREQUEST_PULLREQUESTID}
  [ "$SYSTEM_PARALLELEXECUTIONTYPE" != MultiMachine ] || task=${task%.*} shard=$SYSTEM_JOBPOSITIONINPHASE/$SYSTEM_TOTALJOBSINPHASE
  url=$SYSTEM_COLLECTIONURI$SYSTEM_TEAMPROJECT/_build/results?buildId=$BUILD_BUILDID
  fork=${SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI%/}; case $fork in */_git/*) ;; *) fork=${fork%/*} ;; esac # Else the owner at GitHub.
  fork=${fork##*/}; case $SYSTEM_PULLREQUEST_ISFORK in [Tt]rue) ;; *) fork= ;; esac
elif [ -n "$BUILDKITE" ]; then key=$BUILDKITE_BUILD_ID commit=$BUILDKITE_COMMIT branch=$BUILDKITE_BRANCH url=$BUILDKITE_BUILD_URL
  [ "$commit" != HEAD ] || commit=$(git rev-parse -q --verify HEAD 2>&-); task=${BUILDKITE_LABEL:-$BUILDKITE_COMMAND} pull=${BUILDKITE_PULL_REQUEST#false}
  [ -z "$BUILDKITE_PARALLEL_JOB_COUNT" ] || { task=${BUILDKITE_STEP_KEY:-$BUILDKITE_COMMAND}
    [ "$BUILDKITE_PARALLEL_JOB_COUNT" = 1 ] || shard=$((BUILDKITE_PARALLEL_JOB + 1))/$BUILDKITE_PARALLEL_JOB_COUNT; }
elif [ -n "$JENKINS_URL" ]; then key=$BUILD_TAG task=$STAGE_NAME branch=${CHANGE_BRANCH:-${BRANCH_NAME:-${GIT_BRANCH#origin/}}}
  [ -z "$CHANGE_ID" ] || commit=$(git rev-parse -q --verify "origin/$BRANCH_NAME" 2>/dev/null) # The head of what it merges.
  commit=${commit:-$GIT_COMMIT} pull=$CHANGE_ID url=$BUILD_URL fork=${CHANGE_FORK%%/*}
else key='' task='' url='' commit=$(git rev-parse -q --verify HEAD 2>&-) branch=$(git symbolic-ref -q --short HEAD 2>&-); fi
[ -n "$ASSAY_URL" ] && [ -n "$ASSAY_PROJECT" ] && [ -n "$ASSAY_KEY" ] || { [ -z "$fork" ] || GITHUB_ACTIONS=''; lost "set ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY${fork:+ (the pull request of a fork has no secrets)}"; }
[ -n "$ASSAY_EXECUTION_ID" ] && field execution_id "$ASSAY_EXECUTION_ID" || field execution_key "${assay_key:-$key}"
field complete "$assay_complete"; field task_slug "${assay_task:-$task}"; field tag "${assay_tags:-$ASSAY_TAGS}"; field shard "${assay_shard:-$shard}"; field commit "$commit"; field pull_request "$pull"; field base_branch "$base"; field untrusted "$untrusted"
field branch "${fork:+$fork:}${branch#refs/heads/}"; field build_url "$url"; fields=$assay_config status=400; for file in $assay_files; do
  [ -s "$file" ] && [ ! "$assay_work/start" -nt "$file" ] && attach "$file" && reports=1 && continue; assay_asked=''; say "No \"$file\", or none since the command began"; done
[ -n "$reports$assay_code" ] || lost "there is no report"; bare=$assay_config attached=; for file in $assay_attached; do # A link could lead to a secret.
  folder=.; case $file in */*) folder=${file%/*}/ ;; esac; case $(cd -P -- "$folder" 2>&- && pwd -P)/ in "$(pwd -P)"/*) ;; *) folder= ;; esac
  [ -n "$folder" ] && [ -f "$file" ] && [ ! -h "$file" ] && [ -s "$file" ] || { say "Not attached: \"$file\" is no file below this directory"; continue; }
  name=$(quote "$file"); option form "attachment=@\"$name\";filename=\"$name\""; attached=1; done
full=$assay_config; [ -z "$reports" ] || send "$assay_code"; case $assay_asked:$status in ?*:*400) case $(cat "$assay_work/answer") in *Unknown\ field*gate*)
    assay_asked='' assay_config=$full; say "The server is too old for --gate"; send "$assay_code" ;; esac ;; esac; case $reports$attached:$status in 11:*400 | 11:*413) # They may be what it refuses.
    say "Without the attachments: $(cat "$assay_work/answer")"; assay_config=$bare; send "$assay_code" ;; esac
case $assay_code:$status in ?*:*400) [ -z "$reports" ] || say "$(cat "$assay_work/answer")" # Silence is red.
  echo '<testsuites/>' > "$assay_work/none.xml"; code=${assay_code#0} assay_config=$fields; attach "$assay_work/none.xml" && send "${code:--1}" ;; esac
case $status in *20[01]) [ -n "$assay_asked" ] || plain "$(cat "$assay_work/answer")"; [ -n "$assay_gate" ] || exit "${assay_code:-0}"
  first='' count=0; [ -z "$assay_asked" ] || while [ $count -lt 50 ] && IFS= read -r line; do first=${first:-$line} count=$((count + 1)); plain "$line"; done < "$assay_work/answer"
  case $assay_gate:$first in *":Gate $assay_asked: passed"*) [ "${assay_code:-0}" -ge 126 ] || exit 0 ;; esac; exit "${assay_code:-1}" ;; esac; lost "$(cat "$assay_work/answer" 2>/dev/null || printf '%s\n' "$status" | sed -n 'x;$p') (${status##*"$IFS"})"
