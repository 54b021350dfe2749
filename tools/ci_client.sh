#!/bin/sh
# Builds the client from the sources in the folder of the GitHub action: `ci_client.sh FILE`; the path is absolute. Needs npm, or Bun of the version that Assay needs.
set -eu
cd "$(dirname "$0")/.."
# The action's own folder may be read-only, or the checkout that is tested.
mkdir -p "$1.source"
cp -R package.json bun.lock bunfig.toml tsconfig.json patches src tools "$1.source"
cd "$1.source"
version=$(sed -n 's/.*"bun": ">=\(.*\)".*/\1/p' package.json)
bun=bun
if [ "$(bun --version 2>/dev/null)" != "$version" ]; then
  # With --prefix, npm would not read its global configuration.
  (mkdir -p "$1.bun" && cd "$1.bun" && echo '{}' > package.json && npm install --loglevel=error --no-audit --no-fund "bun@$version")
  # bun.exe is a placeholder that fails if npm did not run the install script of Bun.
  for bun in "$1.bun"/node_modules/bun/bin/bun.exe "$1.bun"/node_modules/@oven/bun-*/bin/bun; do
    ! "$bun" --version >/dev/null 2>&1 || break
  done
fi
"$bun" install --frozen-lockfile --production --omit=optional
"$bun" tools/executable.ts --client --outfile "$1"
