/** Filters of a list as a form whose address is the view, and the place in the list where a page of it begins. */

import type { Html, Path } from "../http/html.ts";
import { fail } from "../http/problem.ts";

export type Option = readonly [value: string, label: string];

/** A label with what is chosen from; the first option is what holds where nothing is said. */
export const filterChoice = (
  label: string,
  name: string,
  options: readonly Option[],
  value: string | undefined,
): Html => (
  <label>
    {label}
    <select name={name}>
      {options.map(([option, text]) => (
        <option value={option} selected={option === (value ?? "")}>
          {text}
        </option>
      ))}
    </select>
  </label>
);

export const words = (
  label: string,
  name: string,
  value: string | undefined,
  type: "text" | "search" = "text",
): Html => (
  <label>
    {label}
    <input type={type} name={name} value={value ?? ""} maxlength={200} />
  </label>
);

/** So many names are chosen from a list; more of them are typed. */
export const CHOICES = 40;

/** Of few names one is chosen, of many it is typed; of one there is nothing to choose. */
export function nameFilter(label: string, name: string, names: readonly string[], value: string | undefined) {
  if (names.length > CHOICES) return words(label, name, value);
  if (names.length < 2 && value === undefined) return null;
  const all = value === undefined || names.includes(value) ? names : [value, ...names];
  return filterChoice(label, name, [["", "all"], ...all.map((one): Option => [one, one])], value);
}

/** A form of GET: what is empty stays in the address and says nothing. */
export const filterForm = (path: Path, fields: readonly (Html | null)[], isFiltered: boolean): Html => (
  <form class="filters" action={path}>
    {fields}
    <button>Filter</button>
    {isFiltered ? (
      <a class="small" href={path}>
        Without filters
      </a>
    ) : null}
  </form>
);

/** Which texts are the parts of a place in a list. */
export const PART = {
  number: (text: string) => /^\d{1,10}$/.test(text) && Number(text) <= 2_147_483_647,
  real: (text: string) => /^\d{1,10}(?:\.\d{1,20})?(?:e-?\d\d?)?$/.test(text),
  time: (text: string) =>
    text === "-infinity" ||
    (/^2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00$/.test(text) && !Number.isNaN(Date.parse(text))),
  id: (text: string) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text),
  none: (text: string) => text === "",
} as const;

export const writePlace = (place: readonly string[]): string => place.join("~");

/** Undefined: from the beginning. Fails with VALIDATION_ERROR on what no page has led to. */
export function readPlace(
  cursor: string | undefined,
  parts: readonly ((text: string) => boolean)[],
): string[] | undefined {
  if (cursor === undefined) return undefined;
  const place = cursor.split("~");
  if (place.length !== parts.length || !parts.every((isPart, index) => isPart(place[index]!)))
    fail("VALIDATION_ERROR", `Cannot read "cursor": expected a link of this list`);
  return place;
}
