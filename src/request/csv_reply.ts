/** Answers the page of a list as comma-separated values, for a request with `Accept: text/csv`. */

import type * as v from "valibot";
import { formatCsv } from "../http/csv.ts";
import { Reply } from "./reply.ts";
import type { Route } from "./route.ts";

/** The header of the answer that has the cursor of the next page; it is missing on the last page. */
export const NEXT_CURSOR = "X-Next-Cursor";

/** The properties of a schema that are read here: the fields of an object, the element of an array, and the alternatives of a union. */
type AnySchema = v.GenericSchema & {
  entries?: Record<string, AnySchema>;
  item?: AnySchema;
  options?: readonly AnySchema[];
};

/** The name of the array in the response of a list, and the names of the fields of its elements. */
export type CsvTable = { rows: string; columns: readonly string[] };

const columnsOf = ({ entries, options = [] }: AnySchema): string[] =>
  entries ? Object.keys(entries) : [...new Set(options.flatMap(columnsOf))];

/** Returns the table of a route that answers a list; undefined for other routes. Such a response has a pagination and one array. */
export function csvTableOf({ answer, method }: Pick<Route, "answer" | "method">): CsvTable | undefined {
  const { entries = {} } = (answer ?? {}) as AnySchema;
  if (method !== "GET" || !("pagination" in entries)) return undefined;
  const [rows, schema] = Object.entries(entries).find(([, entry]) => entry.item !== undefined)!;
  return { rows, columns: columnsOf(schema.item!) };
}

/** Returns the reply as comma-separated values if it is the page of a list, and otherwise unchanged. */
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
