/** The filters of a list: a form whose address is the filtered list. */

import type { Html, Path, Piece } from "../../http/html.ts";
import { type Choice, Options } from "./form.tsx";

type FilterProperties = { label: string; name: string; value: string | undefined };

/** The first option is the default. */
export const FilterSelect = ({
  label,
  name,
  options,
  value,
}: FilterProperties & { options: readonly Choice[] }): Html => (
  <label>
    {label}
    <select name={name}>
      <Options options={options} value={value ?? ""} />
    </select>
  </label>
);

export const FilterText = ({
  label,
  name,
  value,
  type = "text",
}: FilterProperties & { type?: "text" | "search" }): Html => (
  <label>
    {label}
    <input type={type} name={name} value={value ?? ""} maxlength={200} />
  </label>
);

/** Maximum number of names to choose from. With more, the name is typed. */
export const MAX_CHOICES = 40;

/** Offers a few names as a list and many as a text field. Shows nothing if there is no choice. */
export function FilterName({ names, ...filter }: FilterProperties & { names: readonly string[] }): Html | null {
  const { value } = filter;
  if (names.length > MAX_CHOICES) return <FilterText {...filter} />;
  if (names.length < 2 && value === undefined) return null;
  const all = value === undefined || names.includes(value) ? names : [value, ...names];
  return <FilterSelect {...filter} options={[["", "all"], ...all.map((one): Choice => [one, one])]} />;
}

export const FilterBar = ({
  path,
  isFiltered,
  children,
}: {
  path: Path;
  isFiltered: boolean;
  children?: Piece;
}): Html => (
  <form class="filters" action={path}>
    {children}
    <button>Filter</button>
    {isFiltered ? (
      <a class="small" href={path}>
        Clear filters
      </a>
    ) : null}
  </form>
);
