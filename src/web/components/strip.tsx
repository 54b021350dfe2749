/** A strip of results, a link each. */

import type { Href, Html } from "../../http/html.ts";

/** One result in a strip or a grid. */
type StripItem = { status: string; href: Href; label: string };

/** Results, oldest first. A table of links, so that keyboards and screen readers can navigate it. */
export const Strip = ({ items, label }: { items: readonly StripItem[]; label: string }): Html | null =>
  items.length === 0 ? null : (
    <table class="strip">
      <caption class="visually-hidden">{label}</caption>
      <tbody>
        <tr>
          {items.map(({ status, href, label }) => (
            <td>
              <a class={status} href={href} title={label} aria-label={label} />
            </td>
          ))}
        </tr>
      </tbody>
    </table>
  );
