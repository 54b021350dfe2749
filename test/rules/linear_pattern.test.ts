import { describe, expect, test } from "bun:test";
import { createRuleSearch, MATCH_STEPS } from "../../src/rules/infrastructure.ts";
import { compileLinearPattern, PatternError } from "../../src/rules/linear_pattern.ts";
import { isFull } from "../depth.ts";
import { createRandom } from "../random.ts";

const isMatch = (pattern: string, text: string) =>
  compileLinearPattern(pattern)(text.toLowerCase(), { steps: MATCH_STEPS });

describe("a linear pattern", () => {
  test("matches exactly what the regular expressions of JavaScript match, line by line and in any letter case", () => {
    const { integer, pick, chance, text } = createRandom(7);
    const atoms = ["a", "b", "A", "[ab]", "[^a]", "\\d", "\\w", "\\W", "\\s", "\\S", "\\D", ".", "(a|b)", "(?:ab|c)"];
    atoms.push("[A-B]", "é", "[^\\d]", "\\.", "(^a|b$)", "^", "$", "1", "_", "{", "[]a]".replace("]a", "\\]a"));
    const counts = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?"];
    const rounds = isFull ? 30_000 : 3_000;
    let compared = 0;
    for (let round = 0; round < rounds; round++) {
      let pattern = "";
      for (let length = integer(1, 4); length > 0; length--) {
        const atom = pick(atoms);
        pattern += atom + ("^${".includes(atom) ? "" : pick(counts)) + (chance(1 / 6) ? "|" : "");
      }
      const given = text(integer(0, 7), "abAB1_ .é\nÉ{]");
      let found: boolean;
      try {
        found = isMatch(pattern, given);
      } catch (error) {
        if (error instanceof PatternError) continue;
        throw error;
      }
      const expected = given.split("\n").some((line) => new RegExp(pattern, "i").test(line));
      if (found !== expected) expect([pattern, given, found]).toEqual([pattern, given, expected]);
      compared++;
    }
    expect(compared).toBeGreaterThan(rounds / 3);
  });

  test.each([
    ["(a", 'expected a closing ")"'],
    ["a)", 'expected a "(" before the ")" at character 2'],
    ["[a", 'expected a closing "]" for the "[" at character 1'],
    ["[b-a]", "expected a range with its smaller end first at character 4"],
    ["*a", 'expected something to repeat before the "*" at character 1'],
    ["a**", "expected something to repeat at character 3"],
    ["a{2,1}", "expected the smaller count first in {2,1}"],
    ["a{101}", "expected a count of at most 100 in {101}"],
    ["(a{50}){50}", "expected a pattern of at most 500 states after its counts are written out"],
    ["a*", "expected a pattern that does not match an empty text"],
    ["^$", "expected a pattern that does not match an empty text"],
    ["a\\", 'expected a character after the "\\" at the end'],
    ["(?<=a)b", "expected a pattern without the lookbehind (?<=…)"],
    ["(?<name>b)", "expected a pattern without the named group (?<…>…)"],
    ["\\p{L}", "expected a pattern without the Unicode property \\p"],
    ["a\\nb", "expected a pattern without the line break \\n: a pattern matches within a line"],
    ["\\x41", "expected a pattern without the escape \\x"],
  ])("%s is refused with its reason", (pattern, message) => {
    expect(() => compileLinearPattern(pattern)).toThrow(new PatternError(message));
  });
});

test("a search that has used up its steps finds nothing more, and the next search begins anew", () => {
  const rules = [{ kind: "regex" as const, pattern: "(a|b)*a(a|b){40}c" }];
  const random = createRandom(3);
  const noise = () => random.text(1_900, "ab");
  const failure = (message: string) => ({ message, stack: null, output: null });
  const match = failure(`${"a".repeat(50)}c`);
  const find = createRuleSearch(rules);
  expect(find(match)).toBe(rules[0]);
  for (let index = 0; index < 20; index++) find(failure(`c ${noise()}`));
  expect(find(match)).toBeUndefined();
  expect(createRuleSearch(rules)(match)).toBe(rules[0]);
});
