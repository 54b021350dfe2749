/** Writes the title of a test case: its suites and its name in one text, with the tags of its variant. */

import { readVariant } from "../rules/variants.ts";
import type { CaseRef } from "../schema/case_ref.ts";

type NamedCase = Pick<CaseRef, "suite" | "name"> & Partial<Pick<CaseRef, "taskSlug">>;

const toTitle = ({ suite, name }: NamedCase, separator: string): string =>
  [suite, name].filter(Boolean).join(separator);

/** Returns " [browser:webkit]" for a test case of a variant. */
const tagsOf = ({ taskSlug }: NamedCase): string => {
  const { tags } = readVariant(taskSlug ?? "");
  return tags.length === 0 ? "" : ` [${tags.join(", ")}]`;
};

/** Returns "checkout > cart > adds an item", as reports, messages and the API write it. */
export const caseTitle = (testCase: NamedCase): string => `${toTitle(testCase, " > ")}${tagsOf(testCase)}`;

/** Returns "checkout > cart › adds an item", as pages show it. */
export const shownCaseTitle = (testCase: NamedCase): string => `${toTitle(testCase, " › ")}${tagsOf(testCase)}`;

/** Returns "e2e › checkout > cart › adds an item": the task contains the tags. */
export const shownTaskTitle = ({ taskSlug, ...testCase }: NamedCase & Pick<CaseRef, "taskSlug">): string =>
  `${taskSlug} › ${toTitle(testCase, " › ")}`;
