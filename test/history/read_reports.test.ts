/** Dates that names of builds begin with. */

import { expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listFiles } from "../../src/history/files.ts";
import { readNameDate } from "../../src/history/read_reports.ts";
import { createFolder } from "../commands.ts";

test("a folder that symbolic links lead to again is visited once", () => {
  const folder = createFolder();
  mkdirSync(join(folder, "a/b"), { recursive: true });
  writeFileSync(join(folder, "a/b/report.xml"), "<testsuite/>");
  for (const [to, link] of [
    ["..", "a/up"],
    [".", "self"],
    ["a", "z"],
    ["b", "a/c"],
  ])
    symlinkSync(to!, join(folder, link!));
  const { files, problems } = listFiles(folder);
  expect([files.map(({ path }) => path), problems]).toEqual([["a/b/report.xml"], []]);
});

test("a name begins with a day, with or without a time, or with no date", () => {
  const read = (name: string, offset = 0) => readNameDate(name, offset)?.toISOString();
  expect(read("2026-01-02")).toBe("2026-01-02T00:00:00.000Z");
  expect(read("20260102.xml", 60)).toBe("2026-01-01T23:00:00.000Z");
  expect(read("2026-01-02-1017")).toBe("2026-01-02T00:00:00.000Z");
  expect(read("2026-01-02_03-04-05 17")).toBe("2026-01-02T03:04:05.000Z");
  expect(read("20260102T0304Z-17", 60)).toBe("2026-01-02T03:04:00.000Z");
  expect(read("2026-01-02T03:04:05Z-99", 60)).toBe("2026-01-02T03:04:05.000Z");
  for (const name of ["202601021", "2026-02-30", "2026-13-01", "2026-01-02T25:00", "build-2026-01-02"])
    expect([name, read(name)]).toEqual([name, undefined]);
});
