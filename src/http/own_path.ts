/** Validates paths that our links return to: a path of this server, and nothing else in any notation. */

import type { Path } from "./html.ts";

const MAX_LENGTH = 1_000;
const NOWHERE = "http://own.invalid";
/** Browsers read a backslash as a slash, and pass over tabs and line ends. */
const TREACHEROUS = /[\\\s\p{Cc}]/u;

const isOwn = (path: string): boolean =>
  path.startsWith("/") &&
  !path.startsWith("//") &&
  !TREACHEROUS.test(path) &&
  URL.canParse(path, NOWHERE) &&
  new URL(path, NOWHERE).origin === NOWHERE;

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** The path with its query as a browser would ask for it; `/` where the text is anything else. */
export function toOwnPath(text: string | undefined): Path {
  if (text === undefined || text.length > MAX_LENGTH || !isOwn(text)) return "/";
  const { pathname, search } = new URL(text, NOWHERE);
  // A path that decodes to the address of another host may be decoded by a proxy in front of us.
  const plain = decoded(pathname);
  return plain !== undefined && isOwn(plain.replaceAll(" ", "%20")) ? (`${pathname}${search}` as Path) : "/";
}
