/** What is too large is cut from the end, and said. */

import { describe, expect, test } from "bun:test";
import { fit, MAX_RESULT_BYTES } from "../../src/mcp/fit.ts";
import { createCleaner } from "../../src/mcp/untrusted.ts";

const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const dataOf = (data: Parameters<typeof fit>[0], leftOut: readonly string[] = []) => {
  const result = fit(data, leftOut);
  expect(sizeOf(result)).toBeLessThanOrEqual(MAX_RESULT_BYTES);
  expect(result.content).toEqual([{ type: "text", text: JSON.stringify(result.structuredContent) }]);
  return result.structuredContent as any;
};

describe("fit", () => {
  test("leaves what fits as it is", () => {
    const data = { a: 1, list: ["x"], nextCursor: "c", inner: { text: "y" } };
    expect(dataOf(data, ["older ones"])).toEqual({ ...data, leftOut: ["older ones"] });
  });

  test("drops the ends of lists, and a cursor that would skip them", () => {
    const list = Array.from({ length: 100 }, (_, index) => ({ index, text: "a".repeat(300) }));
    const { list: kept, leftOut, ...rest } = dataOf({ nextCursor: "c", list, few: [1, 2] });
    expect(kept).toEqual(list.slice(0, kept.length));
    expect(kept.length).toBeGreaterThan(20);
    expect(leftOut).toEqual([`list: ${kept.length} of 100 fit; ask for fewer at a time`]);
    expect(rest).toEqual({ few: [1, 2] });
  });

  test("cuts texts where lists have nothing more to drop", () => {
    const { untrusted, leftOut } = dataOf({ untrusted: { log: '"\\'.repeat(20_000), list: ["b".repeat(30_000)] } });
    expect(untrusted.log.endsWith("…")).toBe(true);
    expect(untrusted.list[0].endsWith("…")).toBe(true);
    expect(leftOut.join()).toMatch(/texts were shortened/);
  });

  test("keeps the statements within their size", () => {
    const statements = Array.from({ length: 50 }, (_, index) => `list ${index}: ${"c".repeat(100)}`);
    const { leftOut } = dataOf({ text: "d".repeat(30_000) }, statements);
    expect(leftOut.at(-1)).toMatch(/^and \d+ more$/);
  });

  test("takes characters of several bytes and broken ones", () => {
    dataOf({ list: Array(200).fill({ text: "😀é\ud800".repeat(100) }) });
  });
});

describe("a cleaner", () => {
  test("takes what cannot be seen out of a text, and keeps line breaks", () => {
    const { text, cut } = createCleaner();
    expect(text("a\u202eb\x1b[31mred\x1b[0m\n\tc\u0000\u{e0041}\u200bd")).toBe("abred\n\tcd");
    expect(cut()).toBeUndefined();
  });

  test("cuts long texts, not within a character, and says by how much", () => {
    const { text, cut } = createCleaner();
    expect(text(`${"a".repeat(9)}😀b`, 10)).toBe(`${"a".repeat(9)}\ufffd… [2 more characters]`);
    expect(text("c".repeat(1_000_000), 10)).toBe(`${"c".repeat(10)}… [999,990 more characters]`);
    expect(cut()).toBe("2 texts were shortened by 999,992 characters in all");
  });

  test("splits a record, and leaves out what is not known", () => {
    const { split } = createCleaner();
    const record = { id: 1, state: null, name: "x\x07", none: null, deep: { list: ["y\u202e"] } };
    expect(split({ id: 1 }, ["id"])).toEqual({ id: 1 });
    expect(split(record, ["id", "state"])).toEqual({ id: 1, untrusted: { name: "x", deep: { list: ["y"] } } });
  });
});
