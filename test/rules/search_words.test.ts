import { describe, expect, test } from "bun:test";
import { readBugSearch } from "../../src/rules/bug_search.ts";
import { addSearchWords, quoteSearchText, readSearch, toSearchWord } from "../../src/rules/search_words.ts";
import { TEST_KEYS, readTestSearch } from "../../src/rules/test_search.ts";

const textOf = (q: string) => {
  const read = readSearch(q, TEST_KEYS);
  return "problem" in read ? read.problem : [read.words.map(({ condition }) => condition), read.text];
};

describe("a search", () => {
  test("without words and quotation marks is the text as it is", () => {
    for (const q of [
      "cart",
      "adds  an   item ",
      "std::vector",
      "Cart::adds",
      "https://a.example",
      "a.test.ts:12",
      "C:\\x",
    ])
      expect(textOf(q)).toEqual([[], q]);
    for (const q of ["error: refused", 'says "no', 'a"b"', "c:\\x", "name::x", "", " "])
      expect(textOf(q)).toEqual([[], q === "" ? undefined : q]);
  });

  test("is words in any place, and text between them", () => {
    expect(textOf('  adds is:flaky  an owner:"web \\"a\\" \\\\ team" "is:new item"')).toEqual([
      [
        { field: "health", is: ["flaky"] },
        { field: "owner", is: 'web "a" \\ team' },
      ],
      "adds an is:new item",
    ]);
    expect(readTestSearch("tag:os:linux file:/src/x suite:a::b is:unowned")).toEqual({
      conditions: [
        { field: "tag", is: "os:linux" },
        { field: "file", is: "/src/x" },
        { field: "suite", is: "a::b" },
        { field: "owned", is: false },
      ],
    });
  });

  test("compares numbers, shares, durations and days", () => {
    const test = (q: string) => {
      const read = readTestSearch(q);
      return "problem" in read ? read.problem : read.conditions[0];
    };
    expect(test("failed:3")).toEqual({ field: "failures", sign: "=", number: 3 });
    expect(test("failed:>=2")).toEqual({ field: "failures", sign: ">=", number: 2 });
    expect(test("flaky:>12.5%")).toEqual({ field: "flakeRate", sign: ">", number: 0.125 });
    expect(test("slow:>1.5s")).toEqual({ field: "p95Ms", sign: ">", number: 1_500 });
    expect(test("slow:<999999999m")).toEqual({ field: "p95Ms", sign: "<", number: 2_147_483_647 });
    const bug = (q: string) => {
      const read = readBugSearch(q);
      return "problem" in read ? read.problem : read.conditions[0];
    };
    expect(bug("first:>2028-02-28")).toEqual({ field: "firstSeen", from: "2028-02-29", until: undefined });
    expect(bug("last:<=2026-12-31")).toEqual({ field: "lastSeen", from: undefined, until: "2027-01-01" });
    expect(bug("last:2026-01-01")).toEqual({ field: "lastSeen", from: "2026-01-01", until: "2026-01-02" });
  });

  test("names the word that it cannot read, and what it expects", () => {
    for (const [q, problem] of [
      ["colour:red", 'before the colon of "colour:red", or quotation marks around a text'],
      ["a is:ill", 'in "is:ill"'],
      ["is:flaky,owned", 'in "is:flaky,owned"'],
      ["owner: ann", 'expected an owner in "owner:"'],
      ['owner:""', 'expected an owner in "owner:\\"\\""'],
      ['owner:"a b', 'expected a quotation mark at the end of "owner:\\"a"'],
      ["failed:-1", "expected a number of failures such as >2"],
      ["flaky:>5", "expected a percentage such as >5%"],
      ["slow:>2", "expected a duration such as >2s"],
      [`is:${"x".repeat(400)}`, `in "is:${"x".repeat(57)}…"`],
    ])
      expect([q, textOf(q!)]).toEqual([q, expect.stringContaining(problem!)]);
    for (const q of ["first:2026-02-30", "last:2026-1-1", "first:>today"])
      expect(readBugSearch(q)).toEqual({ problem: `expected a date such as >2026-01-31 in "${q}"` });
    expect(readTestSearch("constructor:x")).toHaveProperty("problem");
    expect(readTestSearch("is:constructor")).toHaveProperty("problem");
  });

  test("is read as what it was made of, whatever that contains", () => {
    for (const value of ["plain", "a b", '"', '"a"', "\\", 'a\\"b ', "::x", "/x", "is:flaky", "\\\\", 'x:"y z"']) {
      const word = toSearchWord("owner", value);
      expect(readTestSearch(`a ${word} b`)).toEqual({
        conditions: [
          { field: "owner", is: value },
          { field: "text", is: "a b" },
        ],
      });
      expect(readTestSearch(quoteSearchText(value))).toEqual({ conditions: [{ field: "text", is: value }] });
    }
  });

  test("gets words in place of those about the same field", () => {
    const add = (q: string, ...words: string[]) => addSearchWords(q, TEST_KEYS, words);
    expect(add("", "is:new")).toBe("is:new");
    expect(add('is:flaky "a  b" is:owned c', "is:broken")).toBe('is:owned is:broken "a  b" c');
    expect(add("tag:a:b tag:c:d", "tag:a:b", "tag:e:f")).toBe("tag:c:d tag:a:b tag:e:f");
    expect(add("is:ill", "is:new")).toBe("is:ill is:new");
  });
});
