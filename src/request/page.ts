/** Makes the page of a list from the rows of a keyset query. */

import type { ListPage } from "../schema/page.ts";
import type { PageRequest } from "./route.ts";

type ListContext = { query: { limit: number }; page: PageRequest };

/** `last` is the place of the page's last row in the order, when there are further rows. */
export const toPagination = (
  { page: { cursors, list } }: Pick<ListContext, "page">,
  last: readonly string[] | undefined,
): ListPage<never>["pagination"] =>
  last === undefined ? { hasMore: false } : { hasMore: true, cursor: cursors.write(list, last) };

/** The page of a list from `limit + 1` rows; `place` gives a row's place in the order, `answer` what is shown of it. */
export function toPage<Row, Answer = Row>(
  context: ListContext,
  rows: readonly Row[],
  place: (row: Row) => string[],
  answer: (row: Row) => Answer = (row) => row as unknown as Answer,
): ListPage<Answer> {
  const { limit } = context.query;
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? place(shown.at(-1)!) : undefined;
  return { data: shown.map(answer), pagination: toPagination(context, last) };
}
