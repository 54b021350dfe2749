/** The one shape that every kind of old results is read into: builds of the past, and what is uploaded for each. */

/** Files with their names, as an upload sends them. */
export type ReportBytes = { name: string; bytes: Uint8Array<ArrayBuffer> };

/** The reports of one task of a build. */
export type PastUpload = {
  /** How messages name it: its path below the folder. */
  name: string;
  /** Undefined: the server takes the name from the report. */
  task: string | undefined;
  completedAt: Date;
  /** The name of a format; undefined: the server recognises it. */
  format?: string;
  /** Throws an Error if a file cannot be read any more. */
  read: () => ReportBytes[];
};

export type PastBuild = {
  /** The execution key. It is the same in every import of the same folder. */
  key: string;
  branch?: string | undefined;
  commit?: string | undefined;
  buildUrl?: string | undefined;
  /** The build comes from a fork. */
  untrusted?: boolean | undefined;
  /** In the order in which they ended; at least one. */
  uploads: PastUpload[];
};

/** `name` is the path of a file below the folder. */
export type FileProblem = { name: string; message: string };

export type PastBuilds = {
  /** In chronological order. */
  builds: PastBuild[];
  /** Files that cannot be imported, with the reasons. */
  problems: FileProblem[];
  /** Paths of files that are not test reports. */
  others: string[];
  /** Sentences about what the files do not say. */
  notes: string[];
};

export const buildEnd = ({ uploads }: PastBuild): Date => uploads.at(-1)!.completedAt;

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
 * Sorts builds by their end. A build whose names state only its day has the same time as others of that day: it keeps the order of
 * the names and is dated a millisecond after the build before it, because the server orders builds by their times.
 */
export function toChronological(builds: readonly PastBuild[]): PastBuild[] {
  const sorted = builds.toSorted(
    (one, other) =>
      buildEnd(one).getTime() - buildEnd(other).getTime() || compareNames(one.uploads[0]!.name, other.uploads[0]!.name),
  );
  let last = Number.NEGATIVE_INFINITY;
  return sorted.map((build) => {
    const shift = Math.max(0, last + 1 - buildEnd(build).getTime());
    last = buildEnd(build).getTime() + shift;
    if (shift === 0) return build;
    const uploads = build.uploads.map((upload) => ({
      ...upload,
      completedAt: new Date(upload.completedAt.getTime() + shift),
    }));
    return { ...build, uploads };
  });
}
