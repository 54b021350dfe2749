/** Builds a release from the last commit; USAGE explains it. The same commit gives the same bytes. */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { run, TARGETS, toTarget } from "./executable.ts";
import { runTool } from "./tool.ts";

/** Returns a folder with the files of the last commit and the packages of all platforms. */
async function checkOut(repository: string): Promise<string> {
  const changes = new TextDecoder().decode(await run(["git", "status", "--porcelain"], repository)).trimEnd();
  if (changes !== "")
    throw new Error(`A release is built from a commit, and these files are not committed:\n${changes}`);
  const folder = mkdtempSync(join(tmpdir(), "assay-release-"));
  const archive = join(folder, "source.tar");
  await run(["git", "archive", `--output=${archive}`, "HEAD"], repository);
  await run(["tar", "-xf", archive, "-C", folder], repository);
  rmSync(archive);
  await run(["bun", "install", "--frozen-lockfile", "--production", "--os=*", "--cpu=*"], folder);
  return folder;
}

/** Returns the section of the version in the changelog. */
function notesOf(changelog: string, version: string): string {
  const section = changelog.split(/^## /m).find((text) => text.startsWith(`${version}\n`));
  if (section === undefined)
    throw new Error(`CHANGELOG.md has no section "${version}", which is the version of package.json`);
  return `## ${section.trim()}\n`;
}

const USAGE = `Usage: bun tools/release.ts [--out FOLDER] [--target TARGET]…

Builds the executables of the last commit for all platforms, compressed and with the licences of what they contain, with SHA256SUMS and the section of the changelog (NOTES.md), into
FOLDER (default: dist). --target, which can be repeated, is one of ${TARGETS.join(", ")}. Needs git, GNU tar and the npm registry.`;

async function release(): Promise<void> {
  const { values } = parseArgs({
    options: { out: { type: "string", default: "dist" }, target: { type: "string", multiple: true } },
  });
  const targets = (values.target ?? TARGETS).map(toTarget);
  const out = resolve(values.out);
  const folder = await checkOut(resolve(import.meta.dir, ".."));
  try {
    const { version, license } = await Bun.file(join(folder, "package.json")).json();
    if (license === undefined)
      console.warn("package.json names no licence of Assay itself: nobody may use this release yet");
    const notes = notesOf(await Bun.file(join(folder, "CHANGELOG.md")).text(), version);
    mkdirSync(out, { recursive: true });
    const sums: string[] = [];
    for (const target of targets)
      for (const isClient of [false, true]) {
        const name = `${isClient ? "assay-cli" : "assay"}-${target}`;
        const build = ["bun", "tools/executable.ts", "--target", target, "--outfile", name];
        await run(isClient ? [...build, "--client"] : build, folder);
        const bytes = Bun.gzipSync(await Bun.file(join(folder, name)).bytes(), { level: 9 });
        await Bun.write(join(out, `${name}.gz`), bytes);
        sums.push(`${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}  ${name}.gz`);
        console.log(`${name}.gz: ${(bytes.length / 1e6).toFixed(1)} MB`);
      }
    await Bun.write(join(out, "SHA256SUMS"), `${sums.join("\n")}\n`);
    await Bun.write(join(out, "NOTES.md"), notes);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await runTool(USAGE, release);
