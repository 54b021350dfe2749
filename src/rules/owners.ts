/** Determines the owners of a test case by an ownership file: the rules of each section that match its file or its class. */

import { type OwnerRule, type OwnerSection, type ParsedOwners, splitClassName } from "./codeowners.ts";
import {
  MAX_OWNED_PATH_LENGTH,
  MAX_OWNED_SEGMENTS,
  MAX_STEPS_OF_CASE,
  matchesRest,
  type Steps,
} from "./owner_patterns.ts";

export type OwnedCase = { suite: string; file: string | null };

export type Ownership = {
  /** The owners without duplicates; empty if the case has none. */
  owners: string[];
  /** The rule of each section that decided, in the order of sections. */
  rules: OwnerRule[];
};

/**
 * Indexes of rules by the literal segments that their patterns begin with, or by a segment that they need anywhere, so that a path is
 * compared with few rules of a large file.
 */
type RuleIndex = { byPrefix: Map<string, number[]>; anywhere: Map<string, number[]>; rules: readonly OwnerRule[] };

function createIndex(rules: readonly OwnerRule[], isOfClass: boolean): RuleIndex {
  const [byPrefix, anywhere] = [new Map<string, number[]>(), new Map<string, number[]>()];
  for (const [place, rule] of rules.entries()) {
    if (rule.isOfClass !== isOfClass) continue;
    const { prefix, anywhere: segment } = rule.pattern;
    const [index, key] = segment === undefined ? [byPrefix, prefix] : [anywhere, segment];
    const places = index.get(key);
    if (places) places.push(place);
    else index.set(key, [place]);
  }
  return { byPrefix, anywhere, rules };
}

/** A path, and what all sections look up for it. */
type Place = { path: readonly string[]; prefixes: readonly string[]; segments: ReadonlySet<string> };

function toPlace(path: readonly string[]): Place {
  const prefixes = [""];
  for (const segment of path) prefixes.push(prefixes.length === 1 ? segment : `${prefixes.at(-1)!}/${segment}`);
  return { path, prefixes, segments: new Set(path) };
}

/** The place of the last rule that matches, if it is behind `after`; else `after`. */
function findLast(
  { byPrefix, anywhere, rules }: RuleIndex,
  { path, prefixes, segments }: Place,
  after: number,
  steps: Steps,
): number {
  let last = after;
  const look = (places: readonly number[] | undefined, depth: number) => {
    for (let index = (places?.length ?? 0) - 1; index >= 0 && places![index]! > last; index--)
      if (matchesRest(rules[places![index]!]!.pattern, path, depth, steps)) last = places![index]!;
  };
  if (byPrefix.size > 0) {
    steps.taken += prefixes.length;
    for (let depth = 0; depth < prefixes.length; depth++) look(byPrefix.get(prefixes[depth]!), depth);
  }
  if (anywhere.size > 0) {
    steps.taken += segments.size;
    for (const segment of segments) look(anywhere.get(segment), 0);
  }
  return last;
}

type Lookup = (path: Place | null, name: Place, steps: Steps) => OwnerRule | undefined;

/** For a case without a file, only patterns of classes and patterns that match everything apply. */
function createLookup(rules: readonly OwnerRule[]): Lookup {
  const [paths, classes] = [createIndex(rules, false), createIndex(rules, true)];
  const lastForAll = rules.findLastIndex(({ isOfClass, pattern }) => !isOfClass && pattern.matchesAll);
  return (path, name, steps) => {
    const byPath = path === null ? lastForAll : findLast(paths, path, -1, steps);
    return rules[findLast(classes, name, byPath, steps)];
  };
}

const createSection = ({ rules, exclusions }: OwnerSection): Lookup => {
  const [decide, exclude] = [createLookup(rules), createLookup(exclusions)];
  return (path, name, steps) => (exclude(path, name, steps) ? undefined : decide(path, name, steps));
};

const splitPath = (file: string): string[] | null => {
  if (file.length > MAX_OWNED_PATH_LENGTH) return null;
  const path = file.split("/").filter((part) => part !== "");
  return path.length > MAX_OWNED_SEGMENTS ? null : path;
};

/**
 * Returns a function that returns the owners of a case, whose file is a path within the repository, with forward slashes. Adds the steps
 * taken to `steps`; returns undefined if one case takes too many.
 */
export function createOwnership({ sections }: ParsedOwners): (one: OwnedCase, steps?: Steps) => Ownership | undefined {
  const lookups = sections.map(createSection);
  return ({ suite, file }, all = { taken: 0 }) => {
    const segments = file === null ? null : splitPath(file);
    const path = segments && toPlace(segments);
    const name = toPlace(splitClassName(suite.slice(0, MAX_OWNED_PATH_LENGTH)).slice(0, MAX_OWNED_SEGMENTS));
    const steps = { taken: lookups.length };
    const rules = lookups.flatMap((lookup) => lookup(path, name, steps) ?? []);
    all.taken += steps.taken;
    if (steps.taken > MAX_STEPS_OF_CASE) return undefined;
    return { owners: [...new Set(rules.flatMap(({ owners }) => owners))], rules };
  };
}
