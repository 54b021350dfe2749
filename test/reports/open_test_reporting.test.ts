import { expect, test } from "bun:test";
import { inShort, read, refusalOf } from "./reading.ts";

const CORE = 'xmlns="https://schemas.opentest4j.org/reporting/core/0.2.0"';
const events = (inner: string) =>
  read(`<e:events ${CORE} xmlns:e="https://schemas.opentest4j.org/reporting/events/0.2.0">${inner}</e:events>`);
const started = (id: number, name: string, parent?: number) =>
  `<e:started id="${id}" name="${name}"${parent ? ` parentId="${parent}"` : ""} time="2026-01-01T10:00:0${id}Z"/>`;
const finished = (id: number, status: string) =>
  `<e:finished id="${id}" time="2026-01-01T10:00:09Z"><result status="${status}"/></e:finished>`;

test.each([
  ["SUCCESSFUL", "passed"],
  ["SKIPPED", "skipped"],
  ["ABORTED", "skipped"],
  ["FAILED", "failed failure"],
  ["ERRORED", "failed error"],
  ["ODD", "failed failure"],
])("a test with %s is %s", (status, outcome) => {
  const report = events(
    started(1, "phpunit.xml") + started(2, "Cart", 1) + started(3, "adds", 2) + finished(3, status),
  );
  const { cases, warnings } = report;
  expect(inShort(report)).toContain(`${outcome}: Cart > adds`);
  expect(cases.find(({ name }) => name === "adds")).toMatchObject({ suite: "Cart", durationMs: 6000 });
  expect(warnings).toHaveLength(status === "ODD" ? 1 : 0);
});

test("a run that breaks off is partial, and what did not finish has failed", () => {
  const report = events(
    started(1, "Cart") + started(2, "adds", 1) + finished(2, "SUCCESSFUL") + started(3, "total", 1),
  );
  expect(report.partial).toBe(true);
  expect(inShort(report)).toEqual(["passed: adds", "failed error: total"]);
});

test("a class that fails although its tests passed is a failure", () => {
  const report = events(started(1, "Cart") + started(2, "adds", 1) + finished(2, "SUCCESSFUL") + finished(1, "FAILED"));
  expect(inShort(report)).toEqual(["failed failure: (Cart failed)", "passed: adds"]);
  const inner = events(started(1, "Cart") + started(2, "adds", 1) + finished(2, "FAILED") + finished(1, "FAILED"));
  expect(inShort(inner)).toEqual(["failed failure: adds"]);
});

test("the hierarchy of a converted report is read", () => {
  const tree = (inner: string) =>
    `<h:execution ${CORE} xmlns:h="https://schemas.opentest4j.org/reporting/hierarchy/0.2.0"><h:root name="e" start="2026-01-01T10:00:00Z" duration="PT1M1.5S"><result status="SUCCESSFUL"/>${inner}</h:root></h:execution>`;
  const one = (name: string, status: string, inner = "") =>
    `<h:child name="${name}" duration="PT0.25S"><result status="${status}"/>${inner}</h:child>`;
  const report = read(tree(one("Cart", "SUCCESSFUL", one("adds", "SUCCESSFUL") + one("total", "FAILED"))));
  expect(inShort(report)).toEqual(["passed: Cart > adds", "failed failure: Cart > total"]);
  expect(report.cases[0]!.durationMs).toBe(250);
  expect(report.completedAt).toEqual(new Date("2026-01-01T10:01:01.500Z"));
  expect(refusalOf(tree("<h:child>".repeat(200) + "</h:child>".repeat(200)))).toContain("nested");
});
