/** The filters of a list: a form whose address is the filtered list. */

import type { Html, Path, Piece } from "../../http/html.ts";
import { type Choice, Options, toChoices } from "./form.tsx";

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

type TextProperties = FilterProperties & {
  type?: "text" | "search" | "date";
  max?: number;
  suggestions?: readonly string[];
};

/** A text field. The browser offers the suggestions while the reader types. */
export function FilterText({ label, name, value, type = "text", max = 200, suggestions }: TextProperties): Html {
  const listId = suggestions && `${name}-suggestions`;
  return (
    <>
      <label>
        {label}
        <input
          type={type}
          name={name}
          value={value ?? ""}
          maxlength={type === "date" ? undefined : max}
          list={listId}
        />
      </label>
      {suggestions && (
        <datalist id={listId}>
          {suggestions.map((one) => (
            <option value={one} />
          ))}
        </datalist>
      )}
    </>
  );
}

/** Maximum number of names to choose from. With more, the name is typed. */
export const MAX_CHOICES = 40;

/** Offers a few names as a list and many as a text field. Shows nothing if there is no choice. */
export function FilterName({
  names,
  first = "all",
  ...filter
}: FilterProperties & { names: readonly string[]; first?: string }): Html | null {
  const { value } = filter;
  if (names.length > MAX_CHOICES) return <FilterText {...filter} />;
  if (names.length < 2 && value === undefined) return null;
  const all = value === undefined || names.includes(value) ? names : [value, ...names];
  return <FilterSelect {...filter} options={toChoices(first, all)} />;
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

type StatusProperties = { path: Path; options: readonly Choice[]; value: string | undefined };

/** The only filter of a list. */
export const StatusFilter = ({ path, options, value }: StatusProperties): Html => (
  <form class="filters" method="get" action={path}>
    <FilterSelect label="Status" name="status" options={options} value={value} />
    <button>Show</button>
  </form>
);
