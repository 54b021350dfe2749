/** Links to the first and the next page of a list. The filters stay in the address. */

import type { Html, Path } from "../../http/html.ts";
import { toAddress } from "../site/paths.ts";

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
