/** Failures outside of tests (a hook, a file that did not load, a build, a process), and the results that show that they have ended. */

import { mayBeSameFile, type PlacedCase } from "./identity.ts";

/** The names that our readers give to failures outside of tests. */
const NAMED_BY_READERS =
  /^\((?:no name|bail out|all tests skipped|plan mismatch|stream is broken|file without test cases|failure without a test case|[\w ]{1,60} (?:failed(?: to load)?|did not finish)|(?:error|failure|issue) outside of [\w ]{1,20})\)$/;

/** Mocha and Cypress, JUnit 4 and Gradle, JUnit 5, unittest. */
const NAMED_BY_TOOLS =
  /^"(?:before|after)(?: all| each)" hook\b|^(?:initializationError|executionError|classMethod)$|^(?:setUp|tearDown)(?:Class|Module) \(/;

/** The failure that stands for the exit code of a runner, see operations/ingest/prepare.ts. */
const isRunner = ({ name, suite, file }: PlacedCase): boolean =>
  suite === "" && file === null && /^runner\b/.test(name);

/** Whether a failed case of a report is no test. */
export const isOutsideOfTests = (one: PlacedCase): boolean =>
  NAMED_BY_READERS.test(one.name) || NAMED_BY_TOOLS.test(one.name) || isRunner(one);

/** The suite and file of tests that ran. */
export type TestPlace = Pick<PlacedCase, "suite" | "file">;

/** unittest names the class, or the module, in the name of the failure. */
const classIn = (name: string): string => /^(?:setUp|tearDown)(?:Class|Module) \((.{1,500})\)$/.exec(name)?.[1] ?? "";

/**
 * Whether a later attempt shows that a failure outside of tests has ended: it ran tests of the same file, class or package. Any complete
 * attempt shows it for a failure of the whole tool.
 */
export function isRepeated(
  failure: PlacedCase,
  places: readonly TestPlace[],
  { isComplete }: { isComplete: boolean },
): boolean {
  const { file } = failure;
  const suite = classIn(failure.name) || failure.suite;
  if (suite === "" && file === null) return isComplete && places.length > 0;
  return places.some((place) => {
    if (file !== null && place.file !== null && !mayBeSameFile(file, place.file)) return false;
    if (suite === "") return place.file !== null;
    const isInside = place.suite === suite || /^(?: > |[.$/])/.test(afterPrefix(place.suite, suite));
    // A suite of another name in the same file: the names of suites may differ between a hook and its tests.
    return isInside || (file !== null && place.file !== null);
  });
}

const afterPrefix = (text: string, prefix: string): string =>
  text.startsWith(prefix) ? text.slice(prefix.length) : "";

/** A failure outside of tests that a later attempt has shown to be over. */
export type ReplacedFailure = PlacedCase & {
  testCase: number;
  /** The attempt of the run that it is from; null: it is from an earlier run of the build. */
  attempt: number | null;
};
