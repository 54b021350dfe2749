/** What every list takes and answers. */

import * as v from "valibot";
import { described, integerText } from "./fields.ts";

const DEFAULT_LIMIT = 10;

export const pageQuery = {
  limit: described(v.optional(integerText(1, 100), String(DEFAULT_LIMIT)), "How many elements a page holds at most"),
  cursor: described(
    v.optional(v.string()),
    "Where to go on: pagination.cursor of the page before, with the same filters. One of another list is a 400",
  ),
};

export const pagination = described(
  v.strictObject({
    hasMore: described(v.boolean(), "Whether there are further elements", true),
    cursor: described(
      v.optional(v.string()),
      "What the next request takes as cursor; there exactly when hasMore is true",
      "gAAxOTliMmM0Nw",
    ),
  }),
  "Whether the list goes on, and from where",
);

export type ListPage<Row> = { data: Row[]; pagination: v.InferOutput<typeof pagination> };

/** The answer of a list: `{ data, pagination }`. */
export const listPage = <const Row extends v.GenericSchema>(row: Row) =>
  v.strictObject({ data: described(v.array(row), "The elements of this page"), pagination });
