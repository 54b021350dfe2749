/** When the tests of JUnit XML ran, from the times of its suites. */

import type { Node } from "./junit_outcome.ts";
import type { Report } from "./report.ts";
import { msFromSeconds } from "./text.ts";

/** The suites directly below the root, of which there may be too many to keep. */
export function createTops() {
  let count = 0;
  let first: Node | undefined;
  let end = 0;
  let from: number | null = null;
  let to: number | null = null;
  return {
    add(suites: Node[]): void {
      first ??= suites[0] && { ...suites[0], children: [] };
      count += suites.length;
      for (const suite of suites) {
        end = Math.max(end, suiteEnd(suite));
        const began = localTime(suite.attributes.timestamp);
        if (began === null) continue;
        from = Math.min(from ?? began, began);
        to = Math.max(to ?? 0, began + (msFromSeconds(suite.attributes.time) ?? 0));
      }
    },
    first: () => first,
    only: () => (count === 1 ? first! : null),
    /** Returns when the last suite ended; NaN if one has no time. */
    end: () => end,
    /** Returns when the first suite began and the last one ended, if known. */
    span: () => ({ from, to }),
  };
}

/** Returns times in the unknown zone of the machine, to be compared only with reports of the same machine. */
export function toTestSpan(root: Node, tops: ReturnType<typeof createTops>): Pick<Report, "span"> {
  const { from, to } = tops.span();
  const began = localTime(root.attributes.timestamp) ?? from;
  if (began === null) return {};
  return { span: { from: began, to: Math.max(began + (msFromSeconds(root.attributes.time) ?? 0), to ?? 0) } };
}

/** Milliseconds; a time without an offset is taken for UTC. */
function localTime(timestamp = ""): number | null {
  const text = timestamp.trim();
  const time = Date.parse(/^\d{4}-\d\d-\d\dT[\d:.]+$/.test(text) ? `${text}Z` : text);
  return time >= Date.UTC(2000) ? time : null;
}

// A time without an offset is in the time zone of a machine that the report does not name.
const INSTANT =
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$|^\w{3}, \d\d \w{3} \d{4} [\d:]+ GMT$/;

/** Unix milliseconds; NaN when it does not say when it began. */
export const suiteEnd = ({ attributes: { timestamp = "", time } }: Node): number =>
  INSTANT.test(timestamp.trim()) ? Date.parse(timestamp.trim()) + (msFromSeconds(time) ?? 0) : Number.NaN;

// googletest writes 1970 for a test that did not run.
export const toCompletion = (end: number): Date | null => (end >= Date.UTC(2000) ? new Date(end) : null);
