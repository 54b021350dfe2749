#!/bin/sh
# Runs the program of this package with Bun: the one that the package depends on, otherwise the one in the PATH.
package=$(dirname "$(dirname "$(readlink -f "$0")")")
for bun in "$package"/node_modules/bun/bin/bun.exe "$package"/../bun/bin/bun.exe \
  "$package"/node_modules/@oven/bun-*/bin/bun "$package"/../@oven/bun-*/bin/bun bun; do
  # bun.exe is a placeholder that fails if the package manager did not run the install script of Bun.
  "$bun" --version >/dev/null 2>&1 || continue
  # The folder belongs to somebody's project: its .env and bunfig.toml are not meant for Assay.
  exec "$bun" --no-env-file --config=/dev/null "$package/dist/program/main.js" "$@"
done
echo "assay: Bun is not installed: the package \"bun\" is missing, and there is no bun in the PATH" >&2
exit 1
