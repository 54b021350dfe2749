/** Variants of a task: how their runs are named, and which tags explain that a test fails in some of them only. */

import { isTag, keyOfTag, MAX_TAGS } from "../schema/tags.ts";

/** A task, and the tags that distinguish one of its variants; no tags: the task itself. In alphabetical order. */
type Variant = { task: string; tags: string[] };

/**
 * Returns the name of the run of a variant, such as "e2e [browser:webkit, os:linux]". Each variant is a task of its own: its run,
 * baseline, test cases and their health are separate from those of the other variants, so a pass in one of them never makes up for
 * a failure in another one.
 */
export const nameVariant = (task: string, tags: readonly string[]): string =>
  tags.length === 0 ? task : `${task} [${tags.toSorted().join(", ")}]`;

const NAME = /^(.+) \[([^[\]]+)\]$/su;

/** The opposite of `nameVariant`. A name that only looks similar is that of a task without tags. */
export function readVariant(name: string): Variant {
  const [, task, list] = NAME.exec(name) ?? [];
  const tags = list?.split(", ") ?? [];
  const isVariant =
    task !== undefined &&
    tags.length <= MAX_TAGS &&
    tags.every(isTag) &&
    new Set(tags.map(keyOfTag)).size === tags.length &&
    nameVariant(task, tags) === name;
  return isVariant ? { task, tags } : { task: name, tags: [] };
}

/** Whether a task is among the named ones, or a variant of one. */
export const isTaskAmong = (slug: string, named: readonly string[]): boolean =>
  named.includes(slug) || named.includes(readVariant(slug).task);

/** The result of one test in one variant of its task; "unknown": it was skipped, or has no result. */
export type VariantOutcome = { tags: readonly string[]; outcome: "passed" | "failed" | "unknown" };

/**
 * Returns the tags that explain why a test failed in some variants of an execution: all variants with these tags failed and all
 * others passed. A single tag is preferred; if several single tags explain the failures equally well, all of them are returned.
 * Returns no tags if there is no such explanation.
 */
export function onlyWithTags(outcomes: readonly VariantOutcome[]): string[] {
  const failed = outcomes.filter(({ outcome }) => outcome === "failed");
  const others = outcomes.filter(({ outcome }) => outcome !== "failed");
  if (failed.length === 0 || others.length === 0 || others.some(({ outcome }) => outcome !== "passed")) return [];
  const common = failed[0]!.tags.filter((tag) => failed.every(({ tags }) => tags.includes(tag)));
  const single = common.filter((tag) => others.every(({ tags }) => !tags.includes(tag)));
  if (single.length > 0) return single;
  const distinctive = common.filter((tag) => others.some(({ tags }) => !tags.includes(tag)));
  const isExplained = others.every(({ tags }) => !distinctive.every((tag) => tags.includes(tag)));
  return isExplained ? distinctive : [];
}

/** The newest results of a test in one variant. */
type VariantResults = { tags: readonly string[]; passed: number; failed: number };

/** Sums the newest results of a test by tag; in alphabetical order. */
export function resultsByTag(variants: readonly VariantResults[]): { tag: string; passed: number; failed: number }[] {
  const sums = new Map<string, { passed: number; failed: number }>();
  for (const { tags, passed, failed } of variants)
    for (const tag of tags) {
      const sum = sums.get(tag) ?? { passed: 0, failed: 0 };
      sums.set(tag, { passed: sum.passed + passed, failed: sum.failed + failed });
    }
  return [...sums].map(([tag, sum]) => ({ tag, ...sum })).sort((a, b) => (a.tag < b.tag ? -1 : 1));
}
