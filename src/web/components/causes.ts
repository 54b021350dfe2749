/** The cursor of a page of causes, as addresses contain it. */

import * as v from "valibot";
import type { FailurePosition } from "../../store/causes.ts";

const CURSOR = /^([1-9])\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d{1,9})$/;

export const causeCursor = v.optional(v.pipe(v.string(), v.regex(CURSOR, "expected a link of this page")));

/** Returns undefined for the first page. */
export function readCauseCursor(cursor: string | undefined): FailurePosition | undefined {
  const match = CURSOR.exec(cursor ?? "");
  return match ? { rank: Number(match[1]), runId: match[2]!, number: Number(match[3]) } : undefined;
}

export const writeCauseCursor = (last: FailurePosition | undefined): string | undefined =>
  last && `${last.rank}.${last.runId}.${last.number}`;
