/** Reads what GET routes answer on one connection, page by page: the answers are those of the API. */

import type { Cursors } from "../http/cursor.ts";
import { check } from "../http/input.ts";
import type { Sql } from "../database/connect.ts";
import type { Context, Route, Services } from "./route.ts";

/** More than a page of a client has: there are fewer statements, and as little memory is needed. */
const PAGE_ROWS = 500;

/** The cursors stay in this process, so they need no signature. */
const PLAIN_CURSORS: Cursors = {
  write: (_, place) => JSON.stringify(place),
  read: (_, cursor) => JSON.parse(cursor) as string[],
};

export type ReadOptions = Pick<Context, "publicUrl"> & {
  /** A snapshot: all statements see the same moment. */
  sql: Sql;
  services: Pick<Services, "begin" | "retentionDays">;
};

type Page = { data: object[]; pagination: { cursor?: string } };

/** `routes` are all routes of the API. Only lists and objects can be read, not texts, files or streams. */
export function createRouteReader(routes: readonly Route[], { sql, ...options }: ReadOptions) {
  const known = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]));

  async function call(
    pattern: string,
    params: Record<string, string>,
    query: object,
    after?: string[],
  ): Promise<object> {
    const route = known.get(pattern);
    if (!route) throw new Error(`There is no route ${pattern}`);
    const checked = check(route.query, query) as object;
    const context = {
      ...{ sql, fast: sql, params, ...options, wantsText: false },
      query: "limit" in checked ? { ...checked, limit: PAGE_ROWS } : checked,
      page: { cursors: PLAIN_CURSORS, list: "", after },
    };
    return (await route.handle(context as never)) as object;
  }

  return {
    /** Returns the answer of the route. */
    one: (pattern: string, params: Record<string, string>): Promise<object> => call(pattern, params, {}),

    /** All elements of a list. */
    async *all<Element extends object>(
      pattern: string,
      params: Record<string, string>,
      query: Record<string, string | undefined> = {},
    ): AsyncGenerator<Element, void> {
      let after: string[] | undefined;
      do {
        const { data, pagination } = (await call(pattern, params, query, after)) as Page;
        yield* data as Element[];
        after = pagination.cursor === undefined ? undefined : PLAIN_CURSORS.read("", pagination.cursor);
      } while (after !== undefined);
    },
  };
}

export type RouteReader = ReturnType<typeof createRouteReader>;
