/** The caption of a table, which is for screen readers, and its header row. */

import type { Html, Piece } from "../../http/html.ts";

/** `hidden`: the title is for screen readers only; `wide`: the column is left out on small screens. */
type Trait = "number" | "wide" | "hidden";
/** False: the table does not have this column. */
export type Column = string | readonly [title: Piece, ...traits: Trait[]] | false;

function Header({ title, traits }: { title: Piece; traits: readonly Trait[] }): Html {
  const classes = traits.filter((trait) => trait !== "hidden");
  const shown = traits.includes("hidden") ? <span class="visually-hidden">{title}</span> : title;
  return classes.length === 0 ? (
    <th scope="col">{shown}</th>
  ) : (
    <th scope="col" class={classes.join(" ")}>
      {shown}
    </th>
  );
}

export const TableHead = ({ caption, columns }: { caption?: Piece; columns: readonly Column[] }): Html => (
  <>
    {caption === undefined ? null : <caption class="visually-hidden">{caption}</caption>}
    <thead>
      <tr>
        {columns.map((column) => {
          if (!column) return null;
          const [title, ...traits] = typeof column === "string" ? [column] : column;
          return <Header title={title} traits={traits} />;
        })}
      </tr>
    </thead>
  </>
);
