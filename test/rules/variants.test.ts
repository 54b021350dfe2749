import { describe, expect, test } from "bun:test";
import {
  isTaskAmong,
  nameVariant,
  onlyWithTags,
  readVariant,
  resultsByTag,
  type VariantOutcome,
} from "../../src/rules/variants.ts";

describe("the name of a variant", () => {
  test("has its tags in alphabetical order, and is read back", () => {
    const name = nameVariant("e2e", ["os:linux", "browser:webkit"]);
    expect(name).toBe("e2e [browser:webkit, os:linux]");
    expect(readVariant(name)).toEqual({ task: "e2e", tags: ["browser:webkit", "os:linux"] });
    expect(nameVariant("e2e", [])).toBe("e2e");
    expect(readVariant("e2e")).toEqual({ task: "e2e", tags: [] });
    expect(readVariant("a [b] [image:postgres:16]")).toEqual({ task: "a [b]", tags: ["image:postgres:16"] });
  });

  test.each([
    ["not in order", "e2e [os:linux, browser:webkit]"],
    ["two values of a key", "e2e [os:linux, os:windows]"],
    ["no tags", "e2e: [webkit, linux]"],
    ["an empty value", "e2e [os:]"],
    ["no task", " [os:linux]"],
    ["no space before them", "e2e[os:linux]"],
    ["something behind them", "e2e [os:linux] again"],
    ["more than eight", `e2e [${Array.from("abcdefghi", (key) => `${key}:1`).join(", ")}]`],
  ])("is only a similar name with %s", (_, name) => {
    expect(readVariant(name)).toEqual({ task: name, tags: [] });
  });

  test("belongs to its task, and not to another variant", () => {
    expect(isTaskAmong("e2e [os:linux]", ["unit", "e2e"])).toBe(true);
    expect(isTaskAmong("e2e [os:linux]", ["e2e [os:linux]"])).toBe(true);
    expect(isTaskAmong("e2e [os:linux]", ["e2e [os:windows]"])).toBe(false);
    expect(isTaskAmong("e2e", ["e2e [os:linux]"])).toBe(false);
  });
});

/** "+" passed, "-" failed, "?" has no result. */
const outcomes = (results: Record<string, string>): VariantOutcome[] =>
  Object.entries(results).map(([tags, sign]) => ({
    tags: tags === "" ? [] : tags.split(" "),
    outcome: sign === "+" ? "passed" : sign === "-" ? "failed" : "unknown",
  }));

describe("a test that fails in some variants only", () => {
  test.each([
    ["one of three", { "b:webkit": "-", "b:chromium": "+", "b:firefox": "+" }, ["b:webkit"]],
    ["one against the task without tags", { "b:webkit": "-", "": "+" }, ["b:webkit"]],
    ["two with the same tag", { "b:w os:l": "-", "b:w os:m": "-", "b:c os:l": "+", "b:c os:m": "+" }, ["b:w"]],
    ["a combination", { "b:w os:l": "-", "b:w os:m": "+", "b:c os:l": "+", "b:c os:m": "+" }, ["b:w", "os:l"]],
    ["tags that occur together", { "b:w os:m": "-", "b:c os:l": "+" }, ["b:w", "os:m"]],
    ["a tag that all have explains nothing", { "b:w n:22": "-", "b:c n:22": "+" }, ["b:w"]],
  ])("is explained: %s", (_, results, tags) => {
    expect(onlyWithTags(outcomes(results))).toEqual(tags);
    expect(onlyWithTags(outcomes(results).reverse())).toEqual(tags);
  });

  test.each([
    ["there is no other variant", { "b:w": "-" }],
    ["it failed in all", { "b:w": "-", "b:c": "-" }],
    ["it failed in none", { "b:w": "+", "b:c": "+" }],
    ["it has no result in one", { "b:w": "-", "b:c": "+", "b:f": "?" }],
    ["it failed without the tag as well", { "b:w": "-", "b:c": "+", "": "-" }],
    ["only the task without tags failed", { "b:w": "+", "": "-" }],
    ["they have nothing in common", { "n:18": "-", "n:20": "-", "n:22": "+" }],
    ["a diagonal", { "b:w os:l": "-", "b:w os:m": "+", "b:c os:l": "+", "b:c os:m": "-" }],
  ])("is not explained if %s", (_, results) => {
    expect(onlyWithTags(outcomes(results))).toEqual([]);
  });
});

test("results by tag are those of all variants with the tag", () => {
  const variants = [
    { tags: ["b:w", "os:l"], passed: 3, failed: 2 },
    { tags: ["b:c", "os:l"], passed: 5, failed: 0 },
    { tags: [], passed: 1, failed: 1 },
  ];
  expect(resultsByTag(variants)).toEqual([
    { tag: "b:c", passed: 5, failed: 0 },
    { tag: "b:w", passed: 3, failed: 2 },
    { tag: "os:l", passed: 8, failed: 2 },
  ]);
});
