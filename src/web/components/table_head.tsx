/** The caption of a table, which is for screen readers, and its header row. */

import type { Html, Piece } from "../../http/html.ts";

/** `hidden`: the title is for screen readers only; `wide`: the column is left out on small screens. */
type Trait = "number" | "wide" | "hidden";
/** A column that is false is left out. */
export type Column = string | readonly [title: Piece, ...traits: Trait[]] | false;

/** The columns that each table of tasks begins with. */
export const TASK_COLUMNS: readonly Column[] = [
  ["Status", "hidden"],
  "Task",
  ["Passed", "number"],
  ["Failed", "number"],
  ["Skipped", "number", "wide"],
  ["Duration", "number"],
];

function Header({ title, traits }: { title: Piece; traits: readonly Trait[] }): Html {
  const classes = traits.filter((trait) => trait !== "hidden");
  return (
    <th scope="col" class={classes.join(" ")}>
      {traits.includes("hidden") ? <span class="visually-hidden">{title}</span> : title}
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
