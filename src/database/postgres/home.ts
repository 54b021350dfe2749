/** The files of the built-in PostgreSQL and the account that it runs under, because it refuses to run as root. */
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

export type SystemAccount = { uid: number; gid: number; name: string };

/** `account` is only set if we are root, so that PostgreSQL runs under another account. */
export type Home = { directory: string; account: SystemAccount | undefined };

/** A directory that an unprivileged account can enter although the checkout and DATA_DIR are closed to it. */
export const accessibleDirectory = "/var/lib/assay-postgresql";

/** The file in a directory below `accessibleDirectory` that contains the path of the link to it. */
const LINK_RECORD = "link";

/** Options to spawn a program of PostgreSQL: under its account, and without our environment, which has secrets. */
export const as = (account: SystemAccount | undefined) => ({
  // Bun drops the supplementary groups together with the uid.
  ...(account && { uid: account.uid, gid: account.gid }),
  cwd: "/",
  env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C" },
  stdin: "ignore" as const,
});

/** Runs a quick program and returns what it wrote; `ok` is false also when it could not be run at all. */
export function execute(account: SystemAccount | undefined, command: string[]): { ok: boolean; output: string } {
  try {
    const { success, stdout, stderr } = Bun.spawnSync(command, { ...as(account), stdout: "pipe", stderr: "pipe" });
    return { ok: success, output: `${stdout}${stderr}`.trim() };
  } catch (error) {
    return { ok: false, output: String(error) };
  }
}

/** Never follows a link, because the account could replace its own files by links. */
export function give(account: SystemAccount | undefined, path: string): void {
  if (account) lchownSync(path, account.uid, account.gid);
}

/** Makes `requested` usable for PostgreSQL: the directory itself or, when its account cannot get there, a link. */
export function openHome(requested: string, say: (message: string) => void): Home {
  if (lstatSync(requested, { throwIfNoEntry: false })?.isSymbolicLink() && !existsSync(requested)) {
    throw new Error(
      `The database that "${requested}" points to is gone: ` +
        `restore "${readlinkSync(requested)}" from a backup, or delete the link to start with an empty database`,
    );
  }
  const account = process.getuid?.() === 0 ? unprivilegedAccount(requested) : undefined;
  mkdirSync(requested, { recursive: true, mode: 0o700 });
  if (!account) {
    const { uid } = statSync(requested);
    if (uid !== process.getuid?.()) {
      throw new Error(`"${requested}" belongs to the account with uid ${uid}: run Assay under that account`);
    }
    return { directory: realpathSync(requested), account };
  }
  if (statSync(requested).uid === 0) {
    if (statSync(dirname(requested)).uid === account.uid) give(account, requested);
    else letPass(requested);
  }
  checkLink(requested);
  if (!existsSync(join(requested, "cluster"))) sayForgotten(requested, say);
  if (!canEnter(account, realpathSync(requested))) moveHome(requested, account, say);
  return { directory: realpathSync(requested), account };
}

/**
 * Refuses the link of a copied DATA_DIR, which leads to the database of the original. A DATA_DIR that was moved is not a copy:
 * its former path no longer leads here, and the new one is recorded.
 */
function checkLink(requested: string): void {
  const link = lstatSync(requested);
  if (!link.isSymbolicLink()) return;
  const record = join(realpathSync(requested), LINK_RECORD);
  if (!existsSync(record)) return;
  const recorded = readFileSync(record, "utf8");
  const other = lstatSync(recorded, { throwIfNoEntry: false });
  const leadsHere = other !== undefined && existsSync(recorded) && realpathSync(recorded) === realpathSync(requested);
  if (leadsHere && (other.ino !== link.ino || other.dev !== link.dev)) {
    throw new Error(
      `"${requested}" is a copy of the link "${recorded}" and leads to the same database: a copied DATA_DIR contains no database. ` +
        `Delete the copied link, then restore a backup (assay restore) or start with an empty database`,
    );
  }
  if (!leadsHere) writeFileSync(record, requested);
}

// The new name is random and stored only in the link, so deleting DATA_DIR really starts afresh.
function moveHome(requested: string, account: SystemAccount, say: (message: string) => void): void {
  if (readdirSync(requested).length > 0) {
    throw new Error(`The account ${account.name} cannot enter "${requested}": give it search permission for the path`);
  }
  const directory = join(accessibleDirectory, randomBytes(8).toString("hex"));
  makeAccessibleDirectory();
  mkdirSync(directory);
  letPass(directory);
  if (!canEnter(account, directory)) {
    rmdirSync(directory);
    throw new Error(`The account ${account.name} can enter neither "${requested}" nor "${accessibleDirectory}"`);
  }
  writeFileSync(join(directory, LINK_RECORD), requested);
  rmdirSync(requested);
  symlinkSync(directory, requested);
  say(
    `PostgreSQL cannot run as root and the account ${account.name} cannot enter "${dirname(requested)}": ` +
      `the database is kept in "${directory}", to which "${requested}" is a link`,
  );
}

function sayForgotten(requested: string, say: (message: string) => void): void {
  for (const name of existsSync(accessibleDirectory) ? readdirSync(accessibleDirectory) : []) {
    const link = join(accessibleDirectory, name, LINK_RECORD);
    const isInUse = dirname(link) === realpathSync(requested);
    if (!isInUse && existsSync(link) && readFileSync(link, "utf8") === requested) {
      say(`"${dirname(link)}" holds an earlier database of "${requested}": delete it when nobody needs it any more`);
    }
  }
}

export function makeAccessibleDirectory(): void {
  mkdirSync(accessibleDirectory, { recursive: true });
  letPass(accessibleDirectory);
}

// The directory stays root's, so that an account that was taken over cannot plant links where root writes.
const letPass = (directory: string) => chmodSync(directory, 0o711);

const canEnter = (account: SystemAccount, directory: string) =>
  execute(account, ["/bin/sh", "-c", 'cd "$0"', directory]).ok;

// A non-root owner takes precedence, so that the database of a service account keeps its owner when root runs a command.
function unprivilegedAccount(requested: string): SystemAccount {
  for (const path of [join(requested, "cluster"), requested, dirname(requested)]) {
    const owner = statSync(path, { throwIfNoEntry: false });
    if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, name: `with uid ${owner.uid}` };
  }
  const accounts = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = accounts.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid), name };
  }
  throw new Error("PostgreSQL cannot run as root and there is no account postgres or nobody: run Assay as a user");
}

/** Runs under the account, because links could mislead root when it empties a directory of another account. */
export function removeUnfinished({ directory, account }: Home): void {
  for (const name of readdirSync(directory).filter((name) => name.startsWith("new-"))) {
    execute(account, ["rm", "-rf", join(directory, name)]);
    execute(undefined, ["rmdir", join(directory, name)]);
  }
}
