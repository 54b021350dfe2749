/** The matcher against a naive reference: the same matches, however the text is cut and whatever the patterns are. */

import { describe, expect, test } from "bun:test";
import { Trie } from "../../src/runner/automaton.ts";
import { createMaskStream, createMatcher } from "../../src/runner/mask_stream.ts";
import { isFull } from "../depth.ts";
import { createRandom } from "../random.ts";

const trieOf = (patterns: readonly string[]) => {
  const trie = new Trie();
  for (const pattern of patterns) trie.add(Buffer.from(pattern, "latin1"));
  return trie;
};

function replaced(
  patterns: { plain?: string[]; base64?: string[]; hex?: string[] },
  pieces: readonly string[],
): string {
  const { plain = [], base64 = [], hex = [] } = patterns;
  const stream = createMaskStream(createMatcher({ plain: trieOf(plain), base64: trieOf(base64), hex: trieOf(hex) }));
  const parts = pieces.map((piece) => Buffer.from(stream.push(Buffer.from(piece, "latin1"))));
  return Buffer.concat([...parts, stream.end()]).toString("latin1");
}

/** Marks each byte of each occurrence, and each pair of bytes that one occurrence covers both of. */
function naively(patterns: readonly string[], text: string): string {
  const isHidden = Array.from(text, () => false);
  const isJoined = Array.from(text, () => false);
  for (const pattern of patterns)
    for (let at = text.indexOf(pattern); at >= 0; at = text.indexOf(pattern, at + 1))
      for (let place = at; place < at + pattern.length; place++) {
        isHidden[place] = true;
        if (place > at) isJoined[place] = true;
      }
  return [...text].map((char, at) => (!isHidden[at] ? char : isJoined[at] ? "" : "***")).join("");
}

const { chance, integer, pick } = createRandom(11);
const word = (letters: readonly string[], length: number) => Array.from({ length }, () => pick(letters)).join("");
const cut = (text: string) => {
  const places = Array.from({ length: integer(0, 6) }, () => integer(0, text.length)).sort((a, b) => a - b);
  return [0, ...places].map((from, at) => text.slice(from, places[at]));
};

describe("patterns are found as by a naive search", () => {
  test.each([
    ["of two letters", ["a", "b"]],
    ["of any bytes", ["\0", "a", "\n", " ", "\xff", "\\"]],
  ])("%s", (_, letters) => {
    for (let round = 0; round < (isFull ? 1_500 : 200); round++) {
      const plain = Array.from({ length: integer(1, 8) }, () => word(letters, integer(4, chance(0.2) ? 40 : 7)));
      // Patterns that are prefixes, suffixes and parts of one another.
      for (const pattern of [...plain])
        if (pattern.length > 8)
          plain.push(pattern.slice(0, 5), pattern.slice(-4), pattern.slice(2, 7), pattern + pattern);
      const text = Array.from({ length: 12 }, () => (chance(0.5) ? word(letters, integer(0, 9)) : pick(plain))).join(
        "",
      );
      const expected = naively(plain, text);
      expect(replaced({ plain }, [text])).toBe(expected);
      expect(replaced({ plain }, cut(text))).toBe(expected);
      expect(replaced({ plain }, [...text])).toBe(expected);
    }
  });
});

test("encoded patterns are found however they are wrapped and spelled, and wherever the text is cut", () => {
  // Lines are long enough to be wrapped ones.
  const before = "9".repeat(16);
  for (let round = 0; round < (isFull ? 1_500 : 200); round++) {
    const isHex = chance(0.5);
    const letters = isHex ? ["0", "1", "a", "f"] : ["A", "b", "1", "+", "/"];
    const patterns = Array.from({ length: 3 }, () => word(letters, 2 * integer(3, 20)));
    const spell = (pattern: string) =>
      isHex
        ? pick([pattern, pattern.toUpperCase(), pattern.match(/../g)!.join(pick([" ", ":"]))])
        : pick([pattern, pattern.replaceAll("+", "-").replaceAll("/", "_")]);
    const pattern = pick(patterns);
    const at = integer(1, pattern.length - 1);
    const wrapped = pattern.slice(0, at) + pick(["\n", "\r\n", "\\n", "\n    "]) + pattern.slice(at);
    const text = `.${before}${chance(0.5) ? spell(pattern) : wrapped}.`;
    const lookups = isHex ? { hex: patterns } : { base64: patterns };
    const whole = replaced(lookups, [text]);
    expect(whole).toBe(`.${before}***.`);
    expect(replaced(lookups, cut(text))).toBe(whole);
    expect(replaced(lookups, [...text])).toBe(whole);
  }
});

test("a match that lasts longer than what is kept of the text is hidden once", () => {
  const pattern = "ab".repeat(50_000);
  const pieces = [`x${pattern.slice(0, 70_000)}`, `${pattern.slice(70_000)}aby`, "z"];
  expect(replaced({ plain: [pattern] }, pieces)).toBe("x***yz");
});

test.each([
  ["blanks", "12345678", "12 ", " "],
  ["blanks after a line break", "3" + "7".repeat(20), "3" + "7".repeat(16) + "\n", " "],
  ["line breaks", "3" + "7".repeat(20), "3" + "7".repeat(16) + "\n", "\n"],
  ["backslashes", "3" + "7".repeat(20), "3" + "7".repeat(16), "\\"],
])("%s behind what begins like an encoded pattern are not kept for ever", (_, pattern, text, filler) => {
  const stream = createMaskStream(
    createMatcher({ plain: trieOf([]), base64: trieOf([pattern]), hex: trieOf([pattern]) }),
  );
  const pieces = [text, filler.repeat(100)].map((piece) => Buffer.from(stream.push(Buffer.from(piece))).toString());
  expect(pieces.join("")).toBe(text + filler.repeat(100));
});
