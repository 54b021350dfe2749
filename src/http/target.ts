/** The path and query of a request, as sent. */

export type RequestTarget = {
  /** Percent-encoded. */
  path: string;
  /** The query without the question mark. */
  search: string;
  /** The request's Host header makes no address. */
  badHost: boolean;
};

/** Bun gives the bare path where the Host header is missing or makes no address. */
export function toRequestTarget(url: string): RequestTarget {
  const badHost = url.startsWith("/");
  const start = badHost ? 0 : url.indexOf("/", url.indexOf("://") + 3);
  const fragment = url.indexOf("#", start);
  const end = fragment === -1 ? url.length : fragment;
  const question = url.indexOf("?", start);
  if (question === -1 || question > end) return { path: url.slice(start, end), search: "", badHost };
  return { path: url.slice(start, question), search: url.slice(question + 1, end), badHost };
}

/** A path of more segments, or with an empty one, is not among those that `isAsSent` can vouch for. */
export const MAX_SEGMENTS = 16;
const NAMES = Array.from({ length: MAX_SEGMENTS }, (_, index) => `segment${index}`);

/**
 * Bun 1.4.5 resolves dot segments (`%2e` is a dot) and backslashes before it shows a URL, but matches its routes against the path as sent.
 * So only patterns of parameters give the segments of a path as sent.
 */
export const segmentPatterns = (): string[] =>
  NAMES.map((_, last) =>
    NAMES.slice(0, last + 1)
      .map((name) => `/:${name}`)
      .join(""),
  );

/** Whether `path` is the path as sent; `segments` are those that a pattern has matched, by name, decoded. */
export function isAsSent(path: string, segments: Record<string, string> | undefined): boolean {
  if (segments === undefined) return false;
  let start = 1;
  for (const name of NAMES) {
    const sent = segments[name];
    if (sent === undefined) break;
    if (start > path.length) return false;
    const slash = path.indexOf("/", start);
    const end = slash === -1 ? path.length : slash;
    const isSame = end - start === sent.length && path.startsWith(sent, start);
    if (!isSame && !decodesTo(path.slice(start, end), sent)) return false;
    start = end + 1;
  }
  return start > path.length;
}

function decodesTo(segment: string, decoded: string): boolean {
  try {
    return decodeURIComponent(segment) === decoded;
  } catch {
    // A segment that is not UTF-8 is no dot segment; the code that decodes it reports the error.
    return decoded.includes("\ufffd");
  }
}
