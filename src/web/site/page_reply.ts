/** Answers a browser with a page or a redirect, with the headers that protect both. */

import { Reply } from "../../request/reply.ts";
import type { Visitor } from "../../request/visitors.ts";
import { layout } from "./layout.tsx";
import type { PageContext, View } from "./page.ts";
import { PageError } from "./page_error.ts";

/** Maximum number of characters. Every list and text of a page has its own, much lower limit. */
const MAX_PAGE_LENGTH = 16_777_216;

/** Content of other sites cannot run, load, frame a page or receive a form. */
export const PAGE_HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; form-action 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};

/** A shared page is public, but its address is not disclosed to other sites. */
const SHARED_HEADERS = { "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex" };

/** The visitor of a page, and the team and the project of its path. */
export type PageFrame = Pick<PageContext<never, never, never, never>, "project" | "team" | "role"> & {
  visitor: Visitor | undefined;
};

/** Whether the client of a request accepts HTML, as browsers do. */
export const acceptsHtml = (request: Request): boolean => /\btext\/html\b/.test(request.headers.get("accept") ?? "");

export const redirect = (to: string, headers: Record<string, string> = {}): Reply =>
  new Reply(303, null, null, { ...PAGE_HEADERS, Location: to, ...headers });

/** Cookies are not set with a shared page. */
export function toPageReply(view: View, frame: PageFrame & { csrf: string }, cookies: Record<string, string>): Reply {
  const { text } = layout(view, frame);
  if (text.length > MAX_PAGE_LENGTH)
    throw new PageError(500, "This page is too large to be shown", "Use the API to read its contents in parts.");
  const headers = view.isShared ? SHARED_HEADERS : cookies;
  return new Reply(view.status ?? 200, text, "text/html; charset=utf-8", { ...PAGE_HEADERS, ...headers });
}
