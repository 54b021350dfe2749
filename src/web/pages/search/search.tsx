/** Searches tests, bugs and executions with one field. An exact match redirects to its page. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { mayBeEmpty, text } from "../../../schema/fields.ts";
import { FilterText } from "../../components/filters.tsx";
import { type Page, SeeOther, type View, page } from "../../site/page.ts";
import { type SearchResults, loadSearch } from "./load_search.ts";
import { FoundBugs, FoundExecutions, FoundTests } from "./results.tsx";

const SearchForm = ({ path, q }: { path: Path; q: string | undefined }): Html => (
  <form class="filters" action={path} role="search">
    <FilterText label="Tests, files, bugs, commits, branches, #numbers" name="q" value={q} type="search" />
    <button>Search</button>
  </form>
);

const emptyView = (path: Path, q: string | undefined): View => ({
  title: "Search",
  body: (
    <>
      <h1>Search</h1>
      <SearchForm path={path} q={q} />
    </>
  ),
});

type Search = { projectId: string; path: Path; q: string; now: Date };

function resultsView({ projectId, path, q, now }: Search, { tests, bugs, executions }: SearchResults): View {
  const hasNone = tests.rows.length + bugs.rows.length + executions.rows.length === 0;
  const body = (
    <>
      <h1>{hasNone ? <>No results for “{q}”</> : <>Results for “{q}”</>}</h1>
      <SearchForm path={path} q={q} />
      {hasNone ? (
        <p class="hint">
          Searches names, suites and files of tests; titles, descriptions and numbers of bugs; keys, commits, branches
          and pull requests of executions.
        </p>
      ) : null}
      <FoundTests projectId={projectId} q={q} found={tests} />
      <FoundBugs projectId={projectId} q={q} found={bugs} />
      <FoundExecutions projectId={projectId} found={executions} now={now} />
    </>
  );
  return { title: `Search: ${q}`, body };
}

export const search: Page[] = [
  page(
    "/projects/:projectId/search",
    { access: "viewer", query: v.strictObject({ q: mayBeEmpty(text(200)) }) },
    async ({ sql, project, query, now, path }) => {
      const q = query.q?.trim();
      if (!q) return emptyView(path, q);
      const found = await loadSearch(sql, project.id, q);
      return typeof found === "string"
        ? new SeeOther(found)
        : resultsView({ projectId: project.id, path, q, now }, found);
    },
  ),
];
