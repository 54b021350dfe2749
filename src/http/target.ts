/** The path and query of a request, as sent. */

export type RequestTarget = {
  /** Percent-encoded. */
  path: string;
  /** Without the question mark. */
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

/**
 * Bun 1.4.5 resolves dot segments (`%2e` is a dot) and backslashes before it shows a URL, but matches its routes against
 * the path as sent: patterns of parameters alone tell the segments of every path that can be one of ours.
 */
export const segmentPatterns = (): string[] =>
  Array.from({ length: MAX_SEGMENTS }, (_, last) =>
    Array.from({ length: last + 1 }, (_, index) => `/:segment${index}`).join(""),
  );

/** Whether `path` is what was sent; `segments` are what a pattern has found there, in their order, decoded. */
export function isAsSent(path: string, segments: Record<string, string> | undefined): boolean {
  if (segments === undefined) return false;
  const shown = path.split("/");
  let index = 0;
  for (const name in segments) {
    const segment = shown[++index];
    if (segment === undefined || (segment !== segments[name] && !decodesTo(segment, segments[name]!))) return false;
  }
  return index === shown.length - 1;
}

function decodesTo(segment: string, decoded: string): boolean {
  try {
    return decodeURIComponent(segment) === decoded;
  } catch {
    // What is no UTF-8 is nobody's dot segment, and whoever reads it will say what it is.
    return decoded.includes("\ufffd");
  }
}
