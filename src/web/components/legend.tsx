/** The statuses that a chart shows by colour. */

import type { Html } from "../../http/html.ts";
import { Mark, wordOf } from "./status.tsx";

export const Legend = ({ statuses }: { statuses: readonly string[] }): Html => (
  <span class="legend">
    {statuses.map((status) => (
      <span>
        <Mark status={status} word={false} /> {wordOf(status)}
      </span>
    ))}
  </span>
);
