/** Finds the tags that explain why tests failed in some variants of an execution only. */

import { toStatus } from "../../rules/merge.ts";
import { onlyWithTags, readVariant, type VariantOutcome } from "../../rules/variants.ts";
import type { Blamed } from "../../rules/blame.ts";
import type { Sql } from "../../database/connect.ts";
import { selectOutcomes, selectReportedRuns, type TestName, type VariantRun } from "../../store/variants.ts";

/** The maximum number of failures of an execution that are explained. */
const MAX_EXPLAINED = 200;

type Failure = TestName & { taskSlug: string };

const keyOf = ({ taskSlug, suite, name, file }: Failure): string =>
  JSON.stringify([readVariant(taskSlug).task, suite, name, file]);

/** Returns the tags of each failure, as `onlyWithTags` does. Costs nothing if none of the failed tasks has tags. */
export async function readOnlyWith(
  sql: Sql,
  projectId: string,
  executionId: string,
  failures: readonly Failure[],
): Promise<(failure: Failure) => string[]> {
  const tagged = failures.filter(({ taskSlug }) => readVariant(taskSlug).tags.length > 0).slice(0, MAX_EXPLAINED);
  if (tagged.length === 0) return () => [];
  const runs = await selectReportedRuns(sql, projectId, executionId);
  const byTask = Map.groupBy(runs, ({ taskSlug }) => readVariant(taskSlug).task);
  const runsOf = ({ taskSlug }: Failure): VariantRun[] => byTask.get(readVariant(taskSlug).task) ?? [];
  const explicable = tagged.filter((failure) => runsOf(failure).length > 1);
  const tests = [...new Map(explicable.map((failure) => [keyOf(failure), failure])).values()];
  if (tests.length === 0) return () => [];
  const concerned = [...new Set(tests.flatMap(runsOf))];
  const letters = new Map<string, string[]>();
  const placeOf = (index: number, runId: string) => `${index} ${runId}`;
  for (const { index, runId, letter } of await selectOutcomes(sql, projectId, concerned, tests)) {
    const place = placeOf(index, runId);
    letters.set(place, [...(letters.get(place) ?? []), letter]);
  }
  const explained = new Map(
    tests.map((test, index) => {
      const outcomes = runsOf(test).map(({ id, taskSlug }): VariantOutcome => {
        return { tags: readVariant(taskSlug).tags, outcome: outcomeOf(letters.get(placeOf(index, id)) ?? []) };
      });
      return [keyOf(test), onlyWithTags(outcomes)];
    }),
  );
  return (failure) => explained.get(keyOf(failure)) ?? [];
}

/** The failures of a run, with the tags that explain why they failed only in some of the variants that have reported so far. */
export async function explainByTags(
  sql: Sql,
  projectId: string,
  executionId: string,
  failures: readonly Blamed[],
): Promise<readonly Blamed[]> {
  const onlyWithOf = await readOnlyWith(sql, projectId, executionId, failures);
  return failures.map((failure) => {
    const onlyWith = onlyWithOf(failure);
    return onlyWith.length === 0 ? failure : { ...failure, onlyWith };
  });
}

/** A test may have several results in a run, where a report lists it more than once. */
function outcomeOf(letters: readonly string[]): VariantOutcome["outcome"] {
  const statuses = letters.map(toStatus);
  if (statuses.includes("failed")) return "failed";
  return statuses.length > 0 && statuses.every((status) => status === "passed") ? "passed" : "unknown";
}
