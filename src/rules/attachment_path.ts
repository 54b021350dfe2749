/** Makes the paths under which reports and clients name one file comparable. */

/** Longer paths are cut: an index holds them. */
const MAX_PATH_LENGTH = 500;

/**
 * Returns the path with forward slashes and without a leading "./". Two paths are of one file if the results are equal. The path is only
 * compared and shown: no file of the server is named after it.
 */
export function normalizeAttachmentPath(path: string): string {
  const slashed = path.trim().replaceAll("\\", "/");
  const relative = slashed.replace(/^(?:\.\/+)+/, "");
  return relative.replaceAll("\0", "\ufffd").slice(0, MAX_PATH_LENGTH).toWellFormed();
}

/** Returns the last part of a path, by which people know a file. */
export const attachmentName = (path: string): string => path.split("/").pop() || path;

/** Whether files of a result are kept by default: they explain a failure. */
export const isKeptWith = ({ status, flaky }: { status: string; flaky: boolean }): boolean =>
  status === "failed" || flaky;

/** The platform suffix that Playwright adds to the names of pictures in the repository: `cart-linux.png`, `cart-webkit-darwin.png`. */
const PLATFORM = /-(?:linux|darwin|win32)(\.\w+)$/;

const STEM = /^(.+)-(expected|actual|diff)(\.\w+)$/;

/**
 * Three pictures of one comparison, as Playwright names them: `cart-expected.png`, `cart-actual.png`, `cart-diff.png`. Its JUnit report
 * names the expected picture as it is stored in the repository: `cart.png`, or `cart-chromium-linux.png` with project and platform.
 */
export type PictureComparison<File> = { stem: string; expected: File; actual: File; diff: File | undefined };

/** Separates pictures that belong to one comparison from all other files, which keep their order. */
export function findPictureComparisons<File extends { name: string }>(
  files: readonly File[],
): { comparisons: PictureComparison<File>[]; others: File[] } {
  const parts = new Map<string, Partial<Record<string, File>>>();
  for (const file of files) {
    const [, stem, role, extension] = STEM.exec(file.name) ?? [];
    if (stem === undefined) continue;
    const key = `${stem}${extension}`;
    const known = parts.get(key) ?? {};
    known[role!] ??= file;
    parts.set(key, known);
  }
  const findStored = (stem: string): File | undefined => {
    const base = stem.slice(0, stem.lastIndexOf("."));
    return (
      files.find(({ name }) => name === stem) ??
      files.find(({ name }) => name.startsWith(`${base}-`) && stem === `${base}${PLATFORM.exec(name)?.[1]}`)
    );
  };
  const comparisons = [...parts].flatMap(([stem, { expected = findStored(stem), actual, diff }]) =>
    expected && actual ? [{ stem, expected, actual, diff }] : [],
  );
  const taken = new Set(comparisons.flatMap(({ expected, actual, diff }) => [expected, actual, diff]));
  return { comparisons, others: files.filter((file) => !taken.has(file)) };
}
