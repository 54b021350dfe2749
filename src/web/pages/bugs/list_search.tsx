/** The search of the list of bugs: its words, and the selects that add them. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { toSearchWord } from "../../../rules/search_words.ts";
import { BUG_STATUSES, SEVERITIES, severity as severitySchema } from "../../../schema/bug_reports.ts";
import { listText, mayBeEmpty, text } from "../../../schema/fields.ts";
import { refuse } from "../../../schema/refusal.ts";
import { FilterName, FilterSelect, FilterText } from "../../components/filters.tsx";
import { type Choice, toChoices } from "../../components/form.tsx";
import { SearchBar } from "../../components/search_bar.tsx";
import { wordOf } from "../../components/status.tsx";

const SOURCES = ["automatic", "manual"] as const;

const STATUS_OPTIONS: readonly Choice[] = [
  ["", "–"],
  ["open", "open, not started"],
  ["in_progress", "in progress"],
  ["resolved", "resolved"],
  ["ignored", "ignored"],
  ["open,in_progress,resolved,ignored", "any"],
];

const SORT_OPTIONS: readonly Choice[] = [
  ["", "Impact, last 14 days"],
  ["severity", "Regressed first, then severity"],
  ["newest", "Newest"],
  ["lastSeenAt", "Last seen"],
  ["occurrences", "Most failures"],
];

const SORTS = ["severity", "newest", "lastSeenAt", "occurrences"] as const;

export const bugSearchFields = {
  q: mayBeEmpty(text(500)),
  // Each of these becomes a word of `q`.
  status: v.optional(v.string()),
  severity: mayBeEmpty(severitySchema),
  source: mayBeEmpty(v.picklist(SOURCES, `expected "automatic" or "manual"`)),
  task: mayBeEmpty(text(200)),
  assignee: mayBeEmpty(text(200)),
  owner: mayBeEmpty(text(200)),
  sort: mayBeEmpty(v.picklist(SORTS, "expected a known order")),
};

type SearchQuery = v.InferOutput<v.StrictObjectSchema<typeof bugSearchFields, undefined>>;

const statusesText = listText(BUG_STATUSES);

function toStatusWord(value: string): string {
  const read = v.safeParse(statusesText, value);
  const statuses = read.success ? read.output : refuse(`Cannot read "status": ${read.issues[0].message}`);
  return statuses!.length === BUG_STATUSES.length ? "is:any" : `is:${statuses!.join(",")}`;
}

/** Returns the words of the parameters beside `q`. */
export const chosenBugWords = ({ status, severity, source, task, assignee, owner }: SearchQuery): string[] =>
  [
    status && toStatusWord(status),
    severity && `severity:${severity}`,
    source && `is:${source}`,
    task && toSearchWord("task", task),
    assignee && toSearchWord("assignee", assignee),
    owner && toSearchWord("owner", owner),
  ].filter((word) => word !== undefined && word !== "") as string[];

type FiltersProperties = {
  path: Path;
  query: SearchQuery;
  problem: string | undefined;
  isFiltered: boolean;
  tasks: readonly string[];
  owners: readonly string[];
};

export const BugSearch = ({ path, query, problem, isFiltered, tasks, owners }: FiltersProperties): Html => (
  <SearchBar
    path={path}
    of="bugs"
    q={query.q}
    problem={problem}
    isFiltered={isFiltered}
    example="is:regressed severity:critical text"
    order={<FilterSelect label="Order" name="sort" options={SORT_OPTIONS} value={query.sort} />}
    hint="Also: is:regressed, label:checkout, test:cart, first:>2026-01-31, last:<2026-01-31. All words must hold; the rest is text in title or description."
  >
    {[
      <FilterSelect label="Status" name="status" options={STATUS_OPTIONS} value={undefined} />,
      <FilterSelect label="Severity" name="severity" options={toChoices("–", SEVERITIES, wordOf)} value={undefined} />,
      <FilterSelect label="Source" name="source" options={toChoices("–", SOURCES, wordOf)} value={undefined} />,
      <FilterName label="Task" name="task" names={tasks} value={undefined} first="–" />,
      <FilterText label="Assignee" name="assignee" value={undefined} />,
      <FilterName label="Owner" name="owner" names={owners} value={undefined} first="–" />,
    ]}
  </SearchBar>
);
