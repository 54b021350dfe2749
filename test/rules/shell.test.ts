import { describe, expect, test } from "bun:test";
import { quoted, scanShell } from "../../src/rules/shell.ts";

const textsOf = (text: string) => scanShell(text).commands.map((words) => words.map((word) => word.text));

test.each(["a b", "it's", "$(id) `id` $HOME", "a\nb", `"x"`, "\\"])(
  "quoted(%j) is one word with that text",
  (value) => {
    expect(textsOf(`echo ${quoted(value)}`)).toEqual([["echo", value]]);
    expect(Bun.spawnSync(["sh", "-c", `printf %s ${quoted(value)}`]).stdout.toString()).toBe(value);
  },
);

describe("scanShell", () => {
  test.each<[string, (string | null)[][]]>([
    ["npm test", [["npm", "test"]]],
    ["a && b; c | d", [["a"], ["b"], ["c"], ["d"]]],
    ["a # b", [["a"]]],
    ["a#b", [["a#b"]]],
    ["a \\\n b", [["a", "b"]]],
    [`a "b 'c'" 'd "e"' f\\ g`, [["a", "b 'c'", 'd "e"', "f g"]]],
    ['a $B "$C" $(d e) `f g` ${H:-i j}', [["a", null, null, null, null, null]]],
    ["a > out 2>&1 < in b", [["a", "b"]]],
    ["", []],
  ])("reads the words of %j", (text, words) => {
    const { problem } = scanShell(text);
    expect([textsOf(text), problem]).toEqual([words, null]);
  });

  test.each([
    ["'a", "opening quotation mark"],
    [`"a`, "opening quotation mark"],
    ["$(a", "opening quotation mark or bracket"],
    ["cat << END", "here-document"],
    ["echo $'a'", "not every shell"],
  ])("has a problem with %j", (text, problem) => {
    expect(scanShell(text).problem).toContain(problem);
  });

  test("a word's place is where it stands in the text, and only what is not quoted is plain", () => {
    const text = "a 'b' c";
    const { commands, isPlain } = scanShell(text);
    expect(commands[0]!.map(({ start, end }) => text.slice(start, end))).toEqual(["a", "'b'", "c"]);
    expect([...text].map((_, at) => isPlain(at))).toEqual([true, true, false, false, false, true, true]);
  });
});
