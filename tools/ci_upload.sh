#!/bin/sh
# Runs the tests with `assay upload`. The inputs of the GitHub action and of the GitLab component are in ASSAY_INPUT_….
# templates/assay.yml contains a copy of these lines.
set +e -fu
assay=$ASSAY_INPUT_BIN assay_folder=${RUNNER_TEMP:-${CI_PROJECT_DIR-}.tmp}/assay-client
if [ -z "$assay" ] && [ -n "$ASSAY_INPUT_DOWNLOAD" ]; then
  assay=$assay_folder/assay
  mkdir -p "$assay_folder" && curl -fsSL --retry 3 -o "$assay.gz" "$ASSAY_INPUT_DOWNLOAD" && gzip -cd "$assay.gz" > "$assay" && chmod 755 "$assay"
elif [ -z "$assay" ] && [ -n "$ASSAY_INPUT_PACKAGE" ]; then
  assay=$assay_folder/node_modules/.bin/assay-cli
  # With --prefix, npm would not read its global configuration.
  (mkdir -p "$assay_folder" && cd "$assay_folder" && echo '{}' > package.json &&
    npm install --loglevel=error --no-audit --no-fund "$ASSAY_INPUT_PACKAGE" >&2)
fi
set --
[ -z "$ASSAY_INPUT_COMMAND" ] || set -- sh -e -c "$ASSAY_INPUT_COMMAND"
[ $# = 0 ] || ! command -v bash >/dev/null || set -- bash -e -o pipefail -c "$ASSAY_INPUT_COMMAND"
if [ -n "$assay" ] && "$assay" --version >/dev/null; then
  [ $# = 0 ] || set -- -- "$@"
  [ "$ASSAY_INPUT_COMPLETE" != true ] || set -- --complete "$@"
  [ "$ASSAY_INPUT_STRICT" != true ] || set -- --strict "$@"
  for assay_file in $ASSAY_INPUT_ATTACH; do set -- --attach="$assay_file" "$@"; done
  # The client ignores empty options.
  set -- --task="$ASSAY_INPUT_TASK" --shard="$ASSAY_INPUT_SHARD" --gate="$ASSAY_INPUT_GATE" "$@"
  exec "$assay" upload $ASSAY_INPUT_REPORT --exit-code="$ASSAY_INPUT_EXIT_CODE" $ASSAY_INPUT_OPTIONS "$@"
fi
# Only the tests may fail the build: they run without the client, and a gate forgives nothing.
assay_reason="the client cannot be installed or started"
[ -n "$assay" ] || assay_reason="there is no client: none of the inputs assay-bin, download and package is set"
echo "assay: Warning: the results are not uploaded: $assay_reason" >&2
[ -z "${GITHUB_ACTIONS-}" ] || echo "::warning title=Assay::Results were not uploaded: $assay_reason" >&2
assay_code=0
if [ $# -gt 0 ]; then "$@" || assay_code=$?; elif [ -n "$ASSAY_INPUT_GATE" ]; then assay_code=${ASSAY_INPUT_EXIT_CODE:-1}; fi
[ "$assay_code" != 0 ] || [ "$ASSAY_INPUT_STRICT" != true ] || assay_code=3
exit "$assay_code"
