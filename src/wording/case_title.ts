/** Writes the title of a test case: its suites and its name in one text. */

import type { CaseRef } from "../schema/case_ref.ts";

type NamedCase = Pick<CaseRef, "suite" | "name">;

const toTitle = ({ suite, name }: NamedCase, separator: string): string =>
  [suite, name].filter(Boolean).join(separator);

/** Returns "checkout > cart > adds an item", as reports, messages and the API write it. */
export const caseTitle = (testCase: NamedCase): string => toTitle(testCase, " > ");

/** Returns "checkout > cart › adds an item", as pages show it. */
export const shownCaseTitle = (testCase: NamedCase): string => toTitle(testCase, " › ");
