/** Histories that Allure 2.46 and Allure 3.18 wrote for the same four builds. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { readAllureHistory } from "../../src/history/read_allure_history.ts";
import { readReport } from "../../src/reports/read.ts";

const read = (name: string) =>
  readAllureHistory(join(import.meta.dir, "../fixtures/allure_history", name), { branch: "main", task: undefined });
type Build = ReturnType<typeof read>["builds"][number];
const toReport = ({ uploads: [upload] }: Build) =>
  readReport(upload!.read(), { format: "assay", maxInflatedBytes: 1_000_000 });
/** Sorted by name. */
const toCases = (build: Build) =>
  toReport(build)
    .cases.map(({ suite, name, status, kind }) => [suite, name, kind ?? status])
    .toSorted(([, one], [, other]) => (one! < other! ? -1 : 1));

const SUITE = "outer <script>";
const first = [
  [SUITE, "flaky", "passed"],
  [SUITE, "hangs", "error"],
  [SUITE, "nul \ufffd lone \ufffd", "error"],
  [SUITE, "passes 😀", "passed"],
  [SUITE, "pending", "skipped"],
  [SUITE, "skipped", "skipped"],
];
const END = ["2026-10-12", "2026-10-13", "2026-10-14", "2026-10-15"].map((day) => new Date(`${day}T05:10:02.586Z`));

test("the results of a report with addresses are grouped by the report that they come from", () => {
  const { builds, notes } = read("addresses");
  expect(builds.map(({ key }) => key)).toEqual(
    [10, 11, 12, 13].map((number) => `allure https://ci.example/job/web/${number}/allure`),
  );
  expect(builds.map(({ uploads }) => uploads[0]!.completedAt)).toEqual(END);
  expect(toCases(builds[0]!)).toEqual(first);
  expect(notes).toEqual(["1 test is not in the newest report, so the names are unknown: 3 results are left out"]);
});

test("the results of a report without addresses are grouped by their times", () => {
  const { builds } = read("times/history");
  expect(builds.map(({ uploads }) => uploads[0]!.completedAt)).toEqual(END);
  expect(builds.map(toCases)).toEqual(read("addresses").builds.map(toCases));
  expect(builds[0]).toMatchObject({ key: "allure 2026-10-12T05:10:02.540Z", branch: "main" });
});

test("a history file of Allure 3 names all tests, also those that are gone", () => {
  const { builds, notes } = read("history.jsonl");
  expect([builds.map(({ uploads }) => uploads[0]!.completedAt), notes]).toEqual([END, []]);
  expect(toCases(builds[0]!)).toEqual([[SUITE, "ansi red", "failure"], ...first]);
  expect(toCases(builds[3]!).map(([, name]) => name)).not.toContain("ansi red");
});

test("a failure has its message, and in the newest build its stack", () => {
  const failureOf = (build: Build) => toReport(build).cases.find(({ name }) => name === "hangs")!;
  const { builds } = read("addresses");
  expect(failureOf(builds[0]!)).toMatchObject({
    message: expect.stringContaining("Timeout of 30ms exceeded"),
    stack: null,
  });
  expect(failureOf(builds[3]!).stack).toContain("at listOnTimeout");
  expect(failureOf(read("history.jsonl").builds[0]!).stack).toContain("at listOnTimeout");
});
