/** Formats times, names, commits and shares. */

import { type Html, type Piece, safeUrl } from "../../http/html.ts";
import { counted } from "../../wording/numbers.ts";

const UNITS: readonly (readonly [seconds: number, name: string])[] = [
  [86_400 * 365, "year"],
  [86_400 * 30, "month"],
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
];

/** Formats a duration as "2 hours", "5 minutes" or "less than a minute". */
export function toSpan(ms: number): string {
  const seconds = ms / 1_000;
  for (const [size, name] of UNITS) if (seconds >= size) return counted(Math.floor(seconds / size), name);
  return "less than a minute";
}

/** Formats how long a state has lasted; `isLonger`: it may have begun earlier than is known. */
export function toStateSpan(ms: number, isLonger: boolean): string {
  if (!isLonger) return toSpan(ms);
  return ms < 60_000 ? "an unknown time" : `more than ${toSpan(ms)}`;
}

/** How long ago a time was, with the time itself in the title. `at` is an ISO time in UTC. */
export function Ago({ at, now }: { at: string; now: Date }): Html {
  const ms = now.getTime() - Date.parse(at);
  return (
    <time datetime={at} title={toExact(at)} data-ago>
      {ms < 60_000 ? "just now" : `${toSpan(ms)} ago`}
    </time>
  );
}

/** Formats a time as `22 Nov 2026, 14:03:07 UTC`. */
export function toExact(iso: string): string {
  const date = new Date(iso);
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
  return `${day}, ${iso.slice(11, 19)} UTC`;
}

/** Formats a share from 0 to 1 as a percentage. */
export const toPercent = (share: number): string =>
  `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0).replace(/\.0$/, "")} %`;

/** Shows a commit by its first seven characters, with the whole hash in the title. */
export const Commit = ({ hash }: { hash: string }): Html => (
  <code title={hash}>{/^[0-9a-f]{8,}$/i.test(hash) ? hash.slice(0, 7) : hash}</code>
);

type NamedCommit = { commitAuthor: string | null; commitSubject: string | null };

/** Shows the subject and the author of a commit, as far as an upload has described it. */
export const CommitText = ({ of: { commitSubject, commitAuthor } }: { of: NamedCommit }): Html | null =>
  commitSubject === null ? null : (
    <>
      {commitSubject}
      {commitAuthor ? <span class="soft"> by {commitAuthor}</span> : null}
    </>
  );

/** Shows a long name, which may break after `/`, `.`, `>`, `_` and `:`. */
export const Breakable = ({ text }: { text: string }): Html => (
  <>{text.split(/(?<=[/.>_:])/).flatMap((part, index): Piece[] => (index === 0 ? [part] : [<wbr />, part]))}</>
);

/** A link to another site, or only its text if there is no address. */
export function External({ href, of }: { href: string | null; of: Piece }): Html {
  const url = safeUrl(href);
  return url ? (
    <a href={url} rel="noreferrer">
      {of}
    </a>
  ) : (
    <span>{of}</span>
  );
}
