import { expect, test } from "bun:test";
import { formatCsv } from "../../src/http/csv.ts";

test("the first line has the names, every line ends with CR LF, and a missing value is an empty cell", () => {
  expect(formatCsv(["a", "b"], [{ a: 1 }, { b: null, a: true }, { a: -5.5, b: "" }])).toBe(
    'a,b\r\n1,\r\ntrue,\r\n-5.5,""\r\n',
  );
  expect(formatCsv(["a"], [])).toBe("a\r\n");
});

test.each([
  ["plain", "plain"],
  ["a,b", '"a,b"'],
  ["a;b", '"a;b"'],
  ['say "hi"', '"say ""hi"""'],
  ["two\nlines", '"two\nlines"'],
  [" blank", '" blank"'],
  ["=1+1", "'=1+1"],
  ["+1", "'+1"],
  ["-1", "'-1"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["\t=1", "\"'\t'=1\""],
  ["a;=1", '"a;\'=1"'],
  ['a; "@x";-2', '"a; ""\'@x"";\'-2"'],
  ["a\t+1", '"a\t\'+1"'],
  ["a; b=1", '"a; b=1"'],
  ["\r=1", '"\'\r=1"'],
  ["\n=1", '"\'\n=1"'],
  ['=HYPERLINK("https://x.example","x")', '"\'=HYPERLINK(""https://x.example"",""x"")"'],
  ["＝1+1", "'＝1+1"],
  ["a=1", "a=1"],
])("the text %j is the cell %j", (text, cell) => {
  expect(formatCsv(["a"], [{ a: text }])).toBe(`a\r\n${cell}\r\n`);
});

test("objects and lists are JSON", () => {
  expect(formatCsv(["a", "b"], [{ a: ["x", "=1"], b: { c: 'say "hi"' } }])).toBe(
    'a,b\r\n"[""x"",""=1""]","{""c"":""say \\""hi\\""""}"\r\n',
  );
});
