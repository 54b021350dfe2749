/** What checkout, `prepare` and `build` left in a work tree, and how the changes of a task are undone. */

import { lstatSync, readdirSync } from "node:fs";
import { chmod, mkdir, rm } from "node:fs/promises";

/** `print` differs after every change of the file. `isOfCommit`: it is as git checked it out. */
type Entry = { print: string; isOfCommit: boolean };
/** By path in the tree, parents first. A file name may have any bytes, so each byte is one character. */
export type TreeState = Map<string, Entry>;

/** By path, parents first. */
type Prints = Map<string, string>;

/** The runner must go on telling the server that it is there while a large tree is read. */
const ENTRIES_AT_ONCE = 1_000;
const FOLDER = "folder ";

const toPath = (root: string, path: string) => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, "latin1")]);

/** The change time cannot be set by programs, but it also changes when another hard link to the file is made. */
function printOf(path: Buffer): string {
  const { mode, size, mtimeNs, ctimeNs, ino, nlink } = lstatSync(path, { bigint: true });
  if ((mode & 0o170000n) === 0o040000n) return `${FOLDER}${mode & 0o7777n}`;
  return [mode, size, mtimeNs, ino, ...(nlink > 1n ? [] : [ctimeNs])].join(" ");
}

/** Reads everything in a work tree except its git directory. */
export async function readTree(root: string): Promise<Prints> {
  const prints: Prints = new Map();
  const folders = [""];
  for (let folder; (folder = folders.pop()) !== undefined;) {
    for (const name of readdirSync(toPath(root, folder), { encoding: "buffer" })) {
      const path = `${folder}${Buffer.from(name).toString("latin1")}`;
      if (path === ".git") continue;
      const print = printOf(toPath(root, path));
      prints.set(path, print);
      if (print.startsWith(FOLDER)) folders.push(`${path}/`);
      if (prints.size % ENTRIES_AT_ONCE === 0) await Bun.sleep(0);
    }
  }
  return prints;
}

/** `checkedOut`: the tree before `prepare`. */
export const toTreeState = (checkedOut: Prints, prepared: Prints): TreeState =>
  new Map([...prepared].map(([path, print]) => [path, { print, isOfCommit: checkedOut.get(path) === print }]));

/**
 * Removes what was added to the tree, and restores what git had checked out. Returns a path that cannot be restored because
 * `prepare` made or changed it, or undefined if there is none. `checkOut` gets paths of the commit, and returns whether git did it.
 */
export async function restoreTree(
  root: string,
  state: TreeState,
  checkOut: (paths: readonly string[]) => Promise<boolean>,
): Promise<string | undefined> {
  const now = await readTree(root);
  let removed: string | undefined;
  for (const [path, print] of now) {
    const isInRemoved = removed !== undefined && path.startsWith(`${removed}/`);
    const known = state.get(path)?.print;
    const isKept = known !== undefined && known.startsWith(FOLDER) === print.startsWith(FOLDER);
    if (isKept && !isInRemoved) continue;
    now.delete(path);
    if (isInRemoved) continue;
    await removePath(toPath(root, path));
    removed = path;
  }
  const changed = [...state].filter(([path, { print }]) => now.get(path) !== print);
  const isFolder = ([, { print }]: (typeof changed)[number]) => print.startsWith(FOLDER);
  const files = changed.filter((one) => !isFolder(one));
  const lost = files.find(([, { isOfCommit }]) => !isOfCommit);
  if (lost) return lost[0];
  for (const [path, { print }] of changed.filter(isFolder)) {
    await mkdir(toPath(root, path), { recursive: true });
    await chmod(toPath(root, path), Number(print.slice(FOLDER.length)));
  }
  for (const [path] of files) await rm(toPath(root, path), { force: true });
  const paths = files.map(([path]) => path);
  if (files.length > 0 && !(await checkOut(paths))) return paths[0];
  for (const [path, one] of files) {
    const again = tryPrint(toPath(root, path));
    if (again === undefined || isOther(again, one.print)) return path;
    one.print = again;
  }
  return undefined;
}

function tryPrint(path: Buffer): string | undefined {
  try {
    return printOf(path);
  } catch {
    return undefined;
  }
}

/** Compares mode and size, which are first in a print. */
const isOther = (a: string, b: string) => a.split(" ", 2).join(" ") !== b.split(" ", 2).join(" ");

/** Removes a file or folder, also a folder in which nothing may be changed. Throws an error that names what cannot be removed. */
export async function removePath(path: string | Buffer): Promise<void> {
  const remove = () => rm(path, { recursive: true, force: true });
  try {
    await remove();
  } catch {
    const text = typeof path === "string" ? path : path.toString();
    await Bun.spawn(["chmod", "-R", "u+rwX", "--", text], { stdio: ["ignore", "ignore", "ignore"] }).exited;
    await remove();
  }
}
