/** Puts errors of the file system into words. */

type Verb = "read" | "write" | "use";

const REASONS: Record<Verb, Record<string, string>> = {
  read: {
    ENOENT: "it does not exist",
    ENOTDIR: "it is not a directory",
    EISDIR: "it is a directory",
    EACCES: "this account may not read it",
  },
  write: {
    ENOENT: "its directory does not exist",
    ENOTDIR: "a part of its path is not a directory",
    EISDIR: "it is a directory",
    EACCES: "this account may not write there",
    EEXIST: "a file of this name exists",
  },
  use: {
    ENOENT: "it does not exist",
    ENOTDIR: "a part of its path is not a directory",
    EISDIR: "it is a directory",
    EACCES: "this account may not use it",
    EEXIST: "a file of this name exists",
  },
};

const DISK_REASONS: Record<string, string> = {
  EROFS: "its file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota of this account is used up",
  EIO: "the disk reports an error",
  EFBIG: "it would become larger than this account may write",
};

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException | null)?.code ?? "");

/** Returns what is wrong with the disk, for an error that does not concern one file; undefined for all other errors. */
export const toDiskReason = (error: unknown): string | undefined => DISK_REASONS[codeOf(error)];

const reasonOf = (error: unknown, verb: Verb): string | undefined =>
  REASONS[verb][codeOf(error)] ?? toDiskReason(error);

/** Returns the reason alone, for a sentence that names the file itself. */
export const toFileReason = (error: unknown, verb: Verb): string => reasonOf(error, verb) ?? (error as Error).message;

/** Returns an Error of one sentence that names the file. */
export const toFileError = (error: unknown, verb: Verb, path: string): Error =>
  new Error(`Cannot ${verb} "${path}": ${toFileReason(error, verb)}`, { cause: error });

/** Puts an error of the file system into words where nothing else has; returns all other errors as they are. */
export function toPlainError(error: unknown): unknown {
  const { path } = Object(error) as NodeJS.ErrnoException;
  return path !== undefined && reasonOf(error, "use") !== undefined ? toFileError(error, "use", path) : error;
}

/** Whether the error came up while the file `path`, or one whose path begins like that, was written. */
export function isWriteFailure(error: unknown, path: string): boolean {
  const { syscall, path: failed } = error as NodeJS.ErrnoException;
  if (reasonOf(error, "write") === undefined) return false;
  return failed?.startsWith(path) === true || syscall === "write" || syscall === "fsync";
}
