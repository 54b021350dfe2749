/** Answers the page of a list as comma-separated values, for a request with `Accept: text/csv`. */

import type * as v from "valibot";
import { formatCsv } from "../http/csv.ts";
import { Reply } from "./reply.ts";
import type { Route } from "./route.ts";

/** The header of the answer that has the cursor of the next page; it is missing on the last page. */
export const NEXT_CURSOR = "X-Next-Cursor";

/** What is read of a schema: the fields of an object, the elements of an array, and the alternatives of a union. */
type AnySchema = v.GenericSchema & {
  entries?: Record<string, AnySchema>;
  item?: AnySchema;
  options?: readonly AnySchema[];
};

/** Where the elements of a list stand in its answer, and the names of their fields. */
export type CsvTable = { rows: string; columns: readonly string[] };

const columnsOf = ({ entries, options = [] }: AnySchema): string[] =>
  entries ? Object.keys(entries) : [...new Set(options.flatMap(columnsOf))];

/** Returns the table of a list; undefined for other routes. The answer of a list has a pagination, and one array beside it. */
export function csvTableOf({ answer, method }: Pick<Route, "answer" | "method">): CsvTable | undefined {
  const { entries = {} } = (answer ?? {}) as AnySchema;
  if (method !== "GET" || !("pagination" in entries)) return undefined;
  const [rows, schema] = Object.entries(entries).find(([, entry]) => entry.item !== undefined)!;
  return { rows, columns: columnsOf(schema.item!) };
}

/** The reply as comma-separated values if it is the page of a list, and otherwise as it is. */
export function toCsvReply(route: Route, reply: Reply): Reply {
  const table = csvTableOf(route);
  if (!table || reply.status !== 200 || reply.type !== "application/json") return reply;
  const page = JSON.parse(reply.body!) as Record<string, unknown> & { pagination: { cursor?: string } };
  const rows = page[table.rows] as readonly Record<string, unknown>[];
  const { cursor } = page.pagination;
  return new Reply(200, formatCsv(table.columns, rows), "text/csv; charset=utf-8; header=present", {
    ...reply.headers,
    ...(cursor === undefined ? {} : { [NEXT_CURSOR]: cursor }),
  });
}
