/** The path and query of a request, as sent. */

export type Target = {
  /** Percent-encoded. */
  path: string;
  /** Without the question mark. */
  search: string;
  /** The request's Host header makes no address. */
  badHost: boolean;
};

/** Bun gives the bare path where the Host header is missing or makes no address. */
export function toTarget(url: string): Target {
  const badHost = url.startsWith("/");
  const start = badHost ? 0 : url.indexOf("/", url.indexOf("://") + 3);
  const fragment = url.indexOf("#", start);
  const end = fragment === -1 ? url.length : fragment;
  const question = url.indexOf("?", start);
  if (question === -1 || question > end) return { path: url.slice(start, end), search: "", badHost };
  return { path: url.slice(start, question), search: url.slice(question + 1, end), badHost };
}
