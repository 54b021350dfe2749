/** Patterns of names, and the dates in names. */

import { expect, test } from "bun:test";
import { type NamePattern, readNameDate, readPattern } from "../../src/history/name_pattern.ts";

const match = (pattern: string, path: string) => (readPattern(pattern) as NamePattern).match(path);

test("a pattern describes the first folders of a path, or all of it", () => {
  expect(match("{branch}/{date}", "main/2026-01-02/a/b.xml")).toEqual({
    prefix: "main/2026-01-02",
    fields: { branch: "main", date: "2026-01-02" },
  });
  expect(match("{date}-{build}-{task}.xml", "2026-01-02-17-e2e-firefox.xml")?.fields).toEqual({
    ...{ date: "2026-01-02", build: "17", task: "e2e-firefox" },
  });
  expect(match("build_{build}", "build_17.xml.gz")).toEqual({ prefix: "build_17", fields: { build: "17" } });
  expect(match("*/{commit}", "any/0123abc/report.xml")?.fields).toEqual({ commit: "0123abc" });
});

test("a path that does not match is not described", () => {
  expect(match("{date}", "notes/a.xml")).toBeUndefined();
  expect(match("{commit}", "main/a.xml")).toBeUndefined();
  // A dot is a dot.
  expect(match("a.b/{build}", "axb/17.xml")).toBeUndefined();
});

test("a pattern with an unknown or repeated field, or without one, is refused", () => {
  expect(readPattern("{day}")).toEqual({
    problem: 'expected {date}, {build}, {commit}, {branch}, {task} or *, got "{day}"',
  });
  expect(readPattern("{build}/{build}")).toEqual({ problem: "{build} is there twice" });
  expect(readPattern("reports")).toMatchObject({ problem: expect.stringContaining("expected at least one of") });
});

test("dates have a time or not, an offset, or are numbers of seconds", () => {
  const read = (text: string, offset = 0) => readNameDate(text, offset)?.toISOString();
  expect(read("2026-01-02")).toBe("2026-01-02T00:00:00.000Z");
  expect(read("20260102", 60)).toBe("2026-01-01T23:00:00.000Z");
  expect(read("2026-01-02_03-04-05")).toBe("2026-01-02T03:04:05.000Z");
  expect(read("20260102T0304Z", 60)).toBe("2026-01-02T03:04:00.000Z");
  expect(read("1767323045")).toBe("2026-01-02T03:04:05.000Z");
  expect(read("1767323045123")).toBe("2026-01-02T03:04:05.123Z");
  expect([read("2026-02-30"), read("2026-01-02T25:00")]).toEqual([undefined, undefined]);
});
