import { expect, test } from "bun:test";
import { firstLineOf, messageLineOf } from "../../src/wording/first_line.ts";

test.each<[string | null, string]>([
  [null, ""],
  ["", ""],
  [" \n\t\r\n ", ""],
  ["expected 1, got 2", "expected 1, got 2"],
  ["\n\n  expected 1, got 2  \nat cart.ts:3", "expected 1, got 2"],
  ["expected 1, got 2\r\nat cart.ts:3", "expected 1, got 2"],
])("the first line of %j is %j", (text, line) => {
  expect(firstLineOf(text)).toBe(line);
});

test("only a line that is longer than the maximum is cut", () => {
  expect(firstLineOf("abcde\nfgh", 5)).toBe("abcde");
  expect(firstLineOf("abcdef\nfgh", 5)).toBe("abcde…");
});

test.each([
  ["AssertionError\n\nexpected 2, got 1", "expected 2, got 1"],
  ["java.lang.AssertionError:\nprices differ", "prices differ"],
  ["Error\n    at cart.ts:3:1", "Error"],
  ["AssertionError: expected 2\nmore", "AssertionError: expected 2"],
  ["Error", "Error"],
])("of %j the line that says what went wrong is %j", (text, line) => expect(messageLineOf(text)).toBe(line));
