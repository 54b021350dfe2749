/** The shape of an old build, and the order in which old builds are uploaded. */

/** Files with their names, as an upload sends them. */
type ReportBytes = { name: string; bytes: Uint8Array<ArrayBuffer> };

export type PastBuild = {
  /** The execution key. It is the same in every import of the same folder. */
  key: string;
  /** The name of its folder or file. */
  name: string;
  /** Undefined: the server takes the name from the report. */
  task?: string | undefined;
  branch?: string | undefined;
  commit?: string | undefined;
  buildUrl?: string | undefined;
  /** The name of a format; undefined: the server recognises it. */
  format?: string | undefined;
  completedAt: Date;
  /** Throws an Error if a file cannot be read any more. */
  read: () => ReportBytes[];
};

/** `name` is the path of a file below the folder. */
export type FileProblem = { name: string; message: string };

export type PastBuilds = {
  /** Builds in chronological order. */
  builds: PastBuild[];
  /** Files that cannot be imported, with the reasons. */
  problems: FileProblem[];
  /** Paths of files that are not test reports. */
  others: string[];
};

const MAX_KEY_LENGTH = 200;

/** Returns an execution key that is not longer than the server accepts. */
export function toKey(text: string): string {
  const key = text.toWellFormed();
  if (key.length <= MAX_KEY_LENGTH) return key;
  const digest = Bun.SHA256.hash(key, "hex").slice(0, 16);
  return `${key.slice(0, MAX_KEY_LENGTH - 17).toWellFormed()}-${digest}`;
}

/** Compares texts so that numbers in them count as numbers: "build-9" comes before "build-10". */
export const compareNames = new Intl.Collator("en", { numeric: true }).compare;

/**
 * Sorts builds by their end. A build whose name states only its day has the same time as others of that day: it keeps the order of
 * the names and is dated a millisecond after the build before it, because the server orders builds by their times.
 */
export function toChronological(builds: readonly PastBuild[]): PastBuild[] {
  const sorted = builds.toSorted(
    (one, other) => one.completedAt.getTime() - other.completedAt.getTime() || compareNames(one.name, other.name),
  );
  let last = Number.NEGATIVE_INFINITY;
  return sorted.map((build) => {
    last = Math.max(last + 1, build.completedAt.getTime());
    return { ...build, completedAt: new Date(last) };
  });
}
