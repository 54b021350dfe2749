import { expect, test } from "bun:test";
import { parseDotenv } from "../../src/rules/dotenv.ts";

const read = (text: string) => Object.fromEntries(parseDotenv(text).variables.map(({ name, value }) => [name, value]));

test.each([
  ["A=1\nB=two words  ", { A: "1", B: "two words" }],
  ["\ufeffexport A = 1\r\n\r\n  # c\r\nB=2#3", { A: "1", B: "2#3" }],
  ["A=1 # comment", { A: "1" }],
  [`A="1 # no comment" # one`, { A: "1 # no comment" }],
  [`A="a\\nb\\t\\"c\\" \\$d \\x"`, { A: 'a\nb\t"c" $d \\x' }],
  ["A='a\\nb'\nB=`c`", { A: "a\\nb", B: "c" }],
  [`A="-----BEGIN\nabc\n-----END"\nB=1`, { A: "-----BEGIN\nabc\n-----END", B: "1" }],
  ["A=\nB=''", { A: "", B: "" }],
  ["A=1\nA=2", { A: "2" }],
])("%p", (text, expected) => expect(read(text)).toEqual(expected as never));

test.each([
  ["a quote that is not closed", `A="${"x\n".repeat(200_000)}`, 1],
  ["blanks in a value", `A=x${" ".repeat(200_000)}y`, 0],
  ["blanks before a line separator", `A=${" ".repeat(200_000)}x\u2028y`, 0],
])("%s: the text is gone through once", (_, text, problems) => {
  expect(parseDotenv(text).problems).toHaveLength(problems);
});

test("after twenty problems no more is read", () => {
  expect(parseDotenv("?\n".repeat(1_000)).problems).toHaveLength(20);
});

test.each([
  ["A", ["line 1: expected NAME=value"]],
  ["\n=1", ["line 2: expected NAME=value"]],
  ['A="1\nB=2', ["line 1: the quotation mark is not closed"]],
  ["A='1' 2", ["line 1: there is more after the closing quote"]],
])("%p is refused with its line", (text, problems) => expect(parseDotenv(text).problems).toEqual(problems));
