import { expect, test } from "bun:test";
import { statusContext } from "../../src/rules/status_context.ts";

test("a status is named after its task", () => {
  expect(statusContext("assay", undefined)).toBe("assay");
  expect(statusContext("assay/gate", "unit")).toBe("assay/gate/unit");
  expect(statusContext("assay", "x".repeat(94))).toBe(`assay/${"x".repeat(94)}`);
});

test("two variants with long names never share a status", () => {
  const long = ["a", "b"].map((end) => statusContext("assay", `${"v".repeat(150)}${end}`));
  expect(new Set(long).size).toBe(2);
  expect(long.map(({ length }) => length)).toEqual([100, 100]);
  expect(long[0]).toStartWith("assay/vvv");
});
