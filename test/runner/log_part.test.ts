/** A part of a log is cut by its size as JSON. */

import { expect, test } from "bun:test";
import { fitLogPart, jsonBytes, MAX_LOG_PART_BYTES } from "../../src/runner/log_part.ts";

const cutOf = (text: string) => (maxBytes: number) => ({ offset: 0, text: text.slice(0, maxBytes) });

test("characters that are escaped in JSON make the part shorter", () => {
  expect(fitLogPart(cutOf("a".repeat(1_000)), 500)!.text.length).toBe(250);
  const escaped = fitLogPart(cutOf("\u0001".repeat(1_000)), 500)!;
  expect(jsonBytes(escaped.text)).toBeLessThanOrEqual(500);
  expect(escaped.text.length).toBeGreaterThan(0);
});

test("a part has at most 256 KiB, however much room there is", () => {
  expect(fitLogPart(cutOf("a".repeat(1_000_000)), 10_000_000)!.text.length).toBe(MAX_LOG_PART_BYTES);
});

test("where nothing is left there is no part", () => {
  expect(fitLogPart(() => undefined, 500)).toBeUndefined();
});
