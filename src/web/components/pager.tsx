/** The pages of a list, and links to the first and the next one. The filters stay in the address. */

import type { Html, Path } from "../../http/html.ts";
import { toAddress } from "../site/paths.ts";

/** A page of a list. `next` is the cursor of the next page. */
export type PagedRows<Row> = { rows: readonly Row[]; next: string | undefined };

/** Expects one row more than `limit` if there is a next page. */
export function toPagedRows<Row>(found: readonly Row[], limit: number, cursorOf: (row: Row) => string): PagedRows<Row> {
  const rows = found.slice(0, limit);
  return { rows, next: found.length > limit ? cursorOf(rows.at(-1)!) : undefined };
}

type Pages = { path: Path; query: Record<string, string | undefined>; cursor: string | undefined };

export function Pager({ path, query, cursor }: Pages): Html | null {
  const isFirst = query["cursor"] === undefined;
  if (isFirst && cursor === undefined) return null;
  return (
    <nav class="pages" aria-label="Pages">
      {isFirst ? null : <a href={toAddress(path, { ...query, cursor: undefined })}>First page</a>}

      {cursor === undefined ? null : (
        <a rel="next" href={toAddress(path, { ...query, cursor })}>
          Next
        </a>
      )}
    </nav>
  );
}
