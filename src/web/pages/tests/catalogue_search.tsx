/** The search of the list of tests: its words, and the selects that add them. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { toSearchWord } from "../../../rules/search_words.ts";
import { readVariant } from "../../../rules/variants.ts";
import { mayBeEmpty, text } from "../../../schema/fields.ts";
import { splitTags, tagFilter } from "../../../schema/tags.ts";
import { HEALTHS, health } from "../../../schema/test_cases.ts";
import { FilterName, FilterSelect, FilterText } from "../../components/filters.tsx";
import { type Choice, toChoices } from "../../components/form.tsx";
import { SearchBar } from "../../components/search_bar.tsx";

const SORTS = ["flakeRate", "failures", "p95Ms", "lastRunAt", "firstSeen"] as const;

const SORT_OPTIONS: readonly Choice[] = [
  ["", "flakiest first"],
  ["failures", "most failures first"],
  ["p95Ms", "slowest first"],
  ["lastRunAt", "last run first"],
  ["firstSeen", "first seen"],
];

const QUARANTINE_OPTIONS: readonly Choice[] = [
  ["", "–"],
  ["true", "quarantined"],
  ["false", "not quarantined"],
];

const OWNED_OPTIONS: readonly Choice[] = [
  ["", "–"],
  ["true", "with an owner"],
  ["false", "without an owner"],
];

const FLAGS = ["true", "false"] as const;
const flag = mayBeEmpty(v.picklist(FLAGS, `expected "true" or "false"`));

export const searchFields = {
  q: mayBeEmpty(text(500)),
  // Each of these becomes a word of `q`.
  health: mayBeEmpty(health),
  task: mayBeEmpty(text(200)),
  tag: tagFilter,
  owner: mayBeEmpty(text(200)),
  owned: flag,
  quarantined: flag,
  sort: mayBeEmpty(v.picklist(SORTS, "expected a known order")),
};

type SearchQuery = v.InferOutput<v.StrictObjectSchema<typeof searchFields, undefined>>;

/** Returns the words of the parameters beside `q`. */
export const chosenTestWords = ({ health, task, tag, owner, owned, quarantined }: SearchQuery): string[] =>
  [
    health && `is:${health}`,
    task && toSearchWord("task", task),
    ...splitTags(tag ?? "").map((one) => toSearchWord("tag", one)),
    owner && toSearchWord("owner", owner),
    owned && (owned === "true" ? "is:owned" : "is:unowned"),
    quarantined && (quarantined === "true" ? "is:quarantined" : "is:unquarantined"),
  ].filter((word) => word !== undefined);

/** Whether one of the tasks is a variant: without any, there are no tags to filter by. */
const hasVariants = (tasks: readonly string[]): boolean => tasks.some((task) => readVariant(task).tags.length > 0);

type FiltersProperties = {
  path: Path;
  query: SearchQuery;
  problem: string | undefined;
  isFiltered: boolean;
  tasks: readonly string[];
  owners: readonly string[];
};

export const CatalogueSearch = ({ path, query, problem, isFiltered, tasks, owners }: FiltersProperties): Html => (
  <SearchBar
    path={path}
    of="tests"
    q={query.q}
    problem={problem}
    isFiltered={isFiltered}
    example="is:flaky owner:@acme/cart failed:>2 text"
    order={
      <FilterSelect
        label="Order"
        name="sort"
        options={SORT_OPTIONS}
        value={query.sort === "flakeRate" ? "" : query.sort}
      />
    }
    hint="Also: suite:cart, failed:>2, flaky:>5%, slow:>2s, is:skipped. All words must hold; the rest is text in suite, name or file."
  >
    {[
      <FilterSelect label="Health" name="health" options={toChoices("–", HEALTHS)} value={undefined} />,
      <FilterName label="Task" name="task" names={tasks} value={undefined} first="–" />,
      hasVariants(tasks) ? <FilterText label="Tag" name="tag" value={undefined} max={600} /> : null,
      <FilterName label="Owner" name="owner" names={owners} value={undefined} first="–" />,
      <FilterSelect label="Owned" name="owned" options={OWNED_OPTIONS} value={undefined} />,
      <FilterSelect label="Quarantine" name="quarantined" options={QUARANTINE_OPTIONS} value={undefined} />,
    ]}
  </SearchBar>
);
