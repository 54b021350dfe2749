import { describe, expect, test } from "bun:test";
import { createRuleSearch, MATCHED } from "../../src/rules/infrastructure.ts";
import { createRandom } from "../random.ts";

const failure = (message: string | null, stack: string | null = null, output: string | null = null) => {
  return { message, stack, output };
};
const isMatch = (pattern: string, message: string) => createRuleSearch([{ pattern }])(failure(message)) !== undefined;

describe("a rule", () => {
  test.each([
    ["ECONNREFUSED", "connect econnrefused 10.0.0.7", true],
    ["econnrefused*registry", "connect ECONNREFUSED 10.0.0.7:4873 registry.acme.example", true],
    ["registry*econnrefused", "connect ECONNREFUSED 10.0.0.7:4873 registry.acme.example", false],
    ["a*a", "a", false],
    ["ab*bc", "abc", false],
    ["ab*bc", "abbc", true],
    ["*a**b*", "ab", true],
    ["refused*retry", "refused\nat once\nno retry", true],
    ["a.b", "axb", false],
    ["(a|b)+ \\d $", "the text (A|B)+ \\D $ itself", true],
    ["größe", "GRÖSSE", false],
    ["größe", "GRÖßE", true],
  ])("%p in %p: %p", (pattern, message, expected) => expect(isMatch(pattern, message)).toBe(expected));

  test("matches what a regular expression with .* in place of * matches", () => {
    const { integer, text } = createRandom(7);
    let matched = 0;
    for (let round = 0; round < 5_000; round++) {
      const [pattern, message] = [text(integer(1, 6), "ab.*"), text(integer(0, 12), "abAB.\n")];
      const parts = pattern.split("*").map((part) => part.replaceAll(".", "\\."));
      const expected = new RegExp(parts.join(".*"), "is").test(message);
      if (isMatch(pattern, message) !== expected) expect([pattern, message]).toEqual([pattern, `${expected}`]);
      if (expected) matched++;
    }
    expect(matched).toBeGreaterThan(1_000);
    expect(matched).toBeLessThan(4_500);
  });

  test("matches within the message, the stack or the end of the output, and not across them", () => {
    const find = createRuleSearch([{ pattern: "one*two" }]);
    expect(find(failure("one two"))).toBeDefined();
    expect(find(failure(null, "one two"))).toBeDefined();
    expect(find(failure(null, null, `${"x".repeat(50_000)} one two`))).toBeDefined();
    expect(find(failure("one", "two", "two"))).toBeUndefined();
    expect(find(failure(`${"x".repeat(MATCHED.message)} one two`))).toBeUndefined();
    expect(find(failure(null, null, `one two ${"x".repeat(MATCHED.output)}`))).toBeUndefined();
  });

  test("that is the first to match explains the failure", () => {
    const rules = [{ pattern: "c" }, { pattern: "b" }, { pattern: "*b*" }];
    expect(createRuleSearch(rules)(failure("a b"))).toBe(rules[1]);
  });
});
