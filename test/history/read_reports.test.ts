/** Dates that names of builds begin with. */

import { expect, test } from "bun:test";
import { readNameDate } from "../../src/history/read_reports.ts";

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
