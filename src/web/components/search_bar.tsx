/** The search field of a list, with selects that add words to it. */

import type { Html, Path, Piece } from "../../http/html.ts";
import { FormError } from "./form.tsx";

type Properties = {
  path: Path;
  /** The searched list, such as "tests". */
  of: string;
  q: string | undefined;
  /** Says why the words cannot be read. */
  problem: string | undefined;
  isFiltered: boolean;
  example: string;
  order: Html;
  hint: string;
  /** The selects. The server writes what is chosen into the search. */
  children?: Piece;
};

export const SearchBar = ({ path, of, q, problem, isFiltered, example, order, hint, children }: Properties): Html => (
  <form role="search" aria-label={`Search ${of}`} action={path}>
    <div class="filters">
      <label>
        Search
        <input
          type="search"
          name="q"
          value={q ?? ""}
          maxlength={500}
          placeholder={example}
          autocomplete="off"
          spellcheck="false"
          aria-invalid={problem === undefined ? undefined : "true"}
          aria-describedby={problem === undefined ? undefined : "search-problem"}
        />
      </label>
      {order}
      <button>Search</button>
      {isFiltered ? (
        <a class="small" href={path}>
          Clear filters
        </a>
      ) : null}
    </div>
    {problem === undefined ? null : (
      <div id="search-problem">
        <FormError message={`Cannot read the search: ${problem}`} />
      </div>
    )}
    <details class="panel after">
      <summary class="small">Add a filter</summary>
      <div class="filters">
        {children}
        <button>Add</button>
      </div>
      <p class="hint">{hint}</p>
    </details>
  </form>
);
