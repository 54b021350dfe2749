/** Opens a file that a report names, if it may be sent: a path in a report is the input of a stranger. */

import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, readSync, realpathSync } from "node:fs";
import { isAbsolute, relative, resolve } from "node:path";

const CHUNK_BYTES = 262_144;
/** A terminal does not become ours, a FIFO does not block, and a link is not followed. */
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Folders that hold the credentials of tools. `.git/config` has the token of the CI job after a checkout. */
const SECRET_FOLDERS = new Set([
  ".aws",
  ".azure",
  ".config",
  ".docker",
  ".git",
  ".gnupg",
  ".hg",
  ".kube",
  ".ssh",
  ".svn",
]);

/** An open file. Its bytes come from the descriptor that was checked, whatever happens to its path. */
export type AttachmentFile = {
  size: number;
  /** Yields `size` bytes from the beginning; throws where the file has become shorter. May be called again. */
  chunks(): Generator<Uint8Array<ArrayBuffer>>;
  close(): void;
};

/** Why a file is not sent: the end of a sentence that begins with its path. */
export type NotSent = { reason: string };

const refused = (reason: string): NotSent => ({ reason });
const OUTSIDE = refused("outside of the attach root");
const MISSING = refused("not found");

/** Returns the path of the folder without links, below which files may be sent. Throws where there is no such folder. */
export const openAttachRoot = (folder: string): string => realpathSync(folder);

/** Returns the path of a file relative to the root, or undefined if it is not below it. */
function pathBelow(root: string, path: string): string | undefined {
  const inner = relative(root, path);
  return inner === "" || inner === ".." || inner.startsWith("../") || isAbsolute(inner) ? undefined : inner;
}

/** `.env`, `.npmrc` and their like are named by their dot. */
function isSecret(inner: string): boolean {
  const parts = inner.split("/");
  return parts.at(-1)!.startsWith(".") || parts.some((part) => SECRET_FOLDERS.has(part.toLowerCase()));
}

/**
 * Opens the first of the paths that exists, if it is a regular file whose real path is below `root`. A relative path begins
 * at each of `bases` in turn. The descriptor is checked, not the path: another file may have been put there meanwhile.
 */
export function openAttachment(path: string, root: string, bases: readonly string[]): AttachmentFile | NotSent {
  if (path.includes("\0")) return MISSING;
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return refused("an address, not a file");
  const candidates = new Set(bases.map((base) => resolve(base, path)));
  let problem = MISSING;
  for (const candidate of candidates) {
    const opened = openBelow(candidate, root);
    if (!("reason" in opened)) return opened;
    if (opened !== MISSING) problem = opened;
  }
  return problem;
}

function openBelow(path: string, root: string): AttachmentFile | NotSent {
  let descriptor: number | undefined;
  try {
    const real = realpathSync(path);
    const inner = pathBelow(root, real);
    if (inner === undefined) return OUTSIDE;
    if (isSecret(inner)) return refused("hidden, and may hold secrets");
    // Opening a device can have effects of its own.
    if (!lstatSync(real).isFile()) return refused("not a regular file");
    descriptor = openSync(real, FLAGS);
    const problem = checkDescriptor(descriptor, real, root);
    if (problem) return problem;
    const file = fileOf(descriptor);
    descriptor = undefined;
    return file;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return MISSING;
    if (code === "ELOOP") return refused("a link that leads nowhere");
    return refused(`not readable (${code ?? (error as Error).message})`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function checkDescriptor(descriptor: number, path: string, root: string): NotSent | undefined {
  const stats = fstatSync(descriptor);
  if (!stats.isFile()) return refused("not a regular file");
  const real = pathOfDescriptor(descriptor, path);
  if (real === undefined) return refused("replaced while it was opened");
  const inner = pathBelow(root, real);
  if (inner === undefined) return OUTSIDE;
  if (isSecret(inner)) return refused("hidden, and may hold secrets");
  return stats.size === 0 ? refused("empty") : undefined;
}

/** Returns where the open file really is; undefined where its path leads to another file by now. */
function pathOfDescriptor(descriptor: number, path: string): string | undefined {
  // The kernel knows it whatever the path has become since.
  if (process.platform === "linux") return readlinkSync(`/proc/self/fd/${descriptor}`);
  const [opened, real] = [fstatSync(descriptor), realpathSync(path)];
  const found = lstatSync(real);
  return found.dev === opened.dev && found.ino === opened.ino ? real : undefined;
}

function fileOf(descriptor: number): AttachmentFile {
  const { size } = fstatSync(descriptor);
  return {
    size,
    *chunks() {
      // Reads at a position leave the descriptor as it is, so another try begins at the beginning.
      for (let at = 0; at < size;) {
        const bytes = new Uint8Array(Math.min(CHUNK_BYTES, size - at));
        const count = readSync(descriptor, bytes, 0, bytes.length, at);
        if (count === 0) throw new Error("the file has become shorter while it was sent");
        at += count;
        yield bytes.subarray(0, count);
      }
    },
    close: () => closeSync(descriptor),
  };
}
