/** Sentences about tests without a result: those of the baseline that did not run, and failed ones that a rerun does not repeat. */

import { caseTitle } from "./case_title.ts";
import { counted } from "./numbers.ts";
import { singleLine } from "./single_line.ts";

/** Returns "190 tests of the baseline did not run". */
const absentWords = (count: number): string => `${counted(count, "test")} of the baseline did not run`;

/** Returns "2 failed tests of the build were not rerun". */
export const notRerunWords = (count: number): string =>
  `${counted(count, "failed test")} of the build ${count === 1 ? "was" : "were"} not rerun`;

type SomeTests = { count: number; testCases: readonly Parameters<typeof caseTitle>[0][] };
export type NamedAbsence = Record<"missing" | "newlySkipped" | "notRerun", SomeTests>;

/** The words for each kind of absent tests. */
const KINDS: [kind: keyof NamedAbsence, words: (count: number) => string][] = [
  ["notRerun", notRerunWords],
  ["missing", absentWords],
  ["newlySkipped", (count) => `${counted(count, "test")} of the baseline ${count === 1 ? "is" : "are"} newly skipped`],
];

/** Returns "190 tests of the baseline did not run, 1 test of the baseline is newly skipped". */
export const absenceWords = (counts: Partial<Record<keyof NamedAbsence, number>>): string =>
  KINDS.flatMap(([kind, words]) => (counts[kind] ? words(counts[kind]) : [])).join(", ");

/** The kinds that there are, each with its sentence. */
export const absentKinds = <Test extends SomeTests>(absence: Record<keyof NamedAbsence, Test>) =>
  KINDS.filter(([kind]) => absence[kind].count > 0).map(([kind, words]) => ({
    kind,
    sentence: words(absence[kind].count),
    tests: absence[kind],
  }));

/** Returns lines such as "190 tests of the baseline did not run: cart > adds an item, cart > pays and 188 more". */
export const absentLines = (absence: NamedAbsence): string[] =>
  absentKinds(absence).map(({ sentence, tests: { count, testCases } }) => {
    const more = count - testCases.length;
    return singleLine(
      `${sentence}: ${testCases.map((test) => caseTitle(test)).join(", ")}${more > 0 ? ` and ${more} more` : ""}`,
    );
  });
