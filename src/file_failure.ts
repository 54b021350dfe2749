/** Puts errors of the file system into words. */

const REASONS: Record<"read" | "write", Record<string, string>> = {
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
  },
};

const DISK_REASONS: Record<string, string> = {
  EROFS: "its file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota of this account is used up",
  EIO: "the disk reports an error",
};

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException | null)?.code ?? "");

/** Returns what is wrong with the disk, for an error that does not concern one file; undefined for all other errors. */
export const toDiskReason = (error: unknown): string | undefined => DISK_REASONS[codeOf(error)];

/** Returns an Error of one sentence that names the file. */
export function toFileError(error: unknown, verb: "read" | "write", path: string): Error {
  const reason = REASONS[verb][codeOf(error)] ?? toDiskReason(error) ?? (error as Error).message;
  return new Error(`Cannot ${verb} "${path}": ${reason}`, { cause: error });
}

/** Whether the error came up while the file `path`, or one whose path begins like that, was written. */
export function isWriteFailure(error: unknown, path: string): boolean {
  const { syscall, path: failed } = error as NodeJS.ErrnoException;
  const isKnown = Object.hasOwn(REASONS.write, codeOf(error)) || toDiskReason(error) !== undefined;
  return isKnown && (failed?.startsWith(path) === true || syscall === "write" || syscall === "fsync");
}
