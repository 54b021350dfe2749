/** The digest of a project: what changed in a period, compared with the period before. */

import * as v from "valibot";
import { caseRef } from "./case_ref.ts";
import { count, described, time } from "./fields.ts";

const url = described(
  v.string(),
  "Its page",
  "https://assay.example.com/projects/0199b2c4-7c1e-7a54-9f0d-3b1c5a7e8d21",
);

const tests = <Entries extends v.ObjectEntries>(entries: Entries, description: string) =>
  described(v.array(v.strictObject({ ...caseRef.entries, ...entries, url })), description);

const compared = (what: string, example: number) => ({
  count: described(count, what, example),
  before: described(count, "The same in the period before", 4),
});

const bug = v.strictObject({
  number: described(count, "Its number", 12),
  title: described(v.string(), "Its title", "expected 2 items, got 1"),
  createdAt: described(time, "When it was opened"),
  url,
});

export const digest = v.strictObject({
  since: described(time, "The beginning of the period", "2026-01-24T09:00:00.000Z"),
  until: described(time, "Its end", "2026-01-31T09:00:00.000Z"),
  owners: described(
    v.nullable(v.array(v.string())),
    "Only tests and bugs of these owners, and nothing about builds; null: all",
    ["@acme/cart"],
  ),
  flaky: described(
    v.strictObject({
      ...compared("Flaky tests at the end of the period", 7),
      became: tests(
        {
          failed: described(count, "Failures by itself when it was found to be flaky", 3),
          results: described(count, "The results that were counted then", 25),
        },
        "The first tests that became flaky, and still are",
      ),
      becameCount: described(count, "The number of all of them", 4),
      recovered: tests({}, "The first flaky tests that recovered, or whose fix was verified"),
      recoveredCount: described(count, "The number of all of them", 1),
    }),
    "Flaky tests",
  ),
  bugs: described(
    v.strictObject({
      opened: described(v.strictObject(compared("Opened in the period", 4)), "Opened bugs"),
      resolved: described(v.strictObject(compared("Resolved in the period", 2)), "Resolved bugs"),
      open: described(count, "Open at the end of the period", 9),
      oldest: described(v.array(bug), "The oldest of the open ones"),
    }),
    "Bug reports",
  ),
  slower: tests(
    {
      runs: described(count, "Runs of the default branch in which it took longer than usual", 5),
      durationMs: described(count, "The median of its durations there", 12_000),
      usualMs: described(count, "How long it usually takes", 4_000),
    },
    "Tests that took longer than usual in at least two runs of the default branch, the greatest loss first",
  ),
  slowest: tests(
    { p95Ms: described(count, "The 95th percentile of its last durations", 41_000) },
    "The slowest tests that take a second or more",
  ),
  builds: described(
    v.nullable(
      v.strictObject({
        branch: described(v.string(), "The default branch", "main"),
        ...compared("Builds that ended", 91),
        passed: described(count, "Those that passed", 84),
        passedBefore: described(count, "The same in the period before", 70),
        timesRed: described(count, "How often it turned red", 3),
        redMs: described(count, "How long it was red, in milliseconds", 18_720_000),
        redMsBefore: described(count, "The same in the period before", 7_560_000),
        rescued: described(
          v.strictObject(compared("Builds of all branches", 6)),
          "Builds that passed because their gates forgave failures, such as those of quarantined tests",
        ),
      }),
    ),
    "Builds of the default branch; null: none has ended, or the digest is for owners",
  ),
});
export type Digest = v.InferOutput<typeof digest>;
