import { describe, expect, test } from "bun:test";
import { readDiff } from "../../src/rules/diff.ts";

/** "- a", "+ b", "  c" on lines; undefined where there is none. */
const diff = (message: string | null, stack: string | null = null) =>
  readDiff(message, stack)?.lines.map(({ sign, text }) => `${sign} ${text}`);
const sides = (message: string) => {
  const found = readDiff(message, null)!;
  return [found.minus, found.plus];
};

describe("blocks", () => {
  test("of Jest and Vitest, with colours, up to the stack", () => {
    const text = `Error: expect(received).toEqual(expected) // deep equality

\x1b[32m- Expected  - 1\x1b[39m
\x1b[31m+ Received  + 1\x1b[39m

  Object {
\x1b[32m-   "currency": "EUR",\x1b[39m
\x1b[31m+   "currency": undefined,\x1b[39m
    "lines": 3,
  }

    at Object.<anonymous> (src/cart.test.ts:12:3)`;
    expect(diff(text)).toEqual([
      "  Object {",
      '-   "currency": "EUR",',
      '+   "currency": undefined,',
      '    "lines": 3,',
      "  }",
    ]);
    expect(sides(text)).toEqual(["expected", "received"]);
  });

  test("of PHPUnit and testify", () => {
    const unified =
      "Failed asserting that two arrays are equal.\n--- Expected\n+++ Actual\n@@ @@\n Array (\n-    0 => 1\n+    0 => 2\n )\n";
    expect(diff(unified)).toEqual(["  Array (", "-     0 => 1", "+     0 => 2", "  )"]);
    const go =
      "\n\tError:      \tNot equal: \n\t            \texpected: 1\n\t            \tactual  : 2\n\tTest:       \tTestCart\n";
    expect(diff(go)).toEqual(["- 1", "+ 2"]);
  });

  test("of Mocha, where the plus is what was expected", () => {
    expect(
      diff(
        "AssertionError: expected 1 to equal 2\n      + expected - actual\n\n      -1\n      +2\n      \n    at x (a.js:1:1)",
      ),
    ).toEqual(["+ 1", "- 2"]);
  });

  test("of Node", () => {
    const text =
      "AssertionError [ERR_ASSERTION]: Expected values to be strictly deep-equal:\n+ actual - expected\n\n  {\n+   a: 1\n-   a: 2\n  }\n";
    expect(diff(text)).toEqual(["  {", "+   a: 1", "-   a: 2", "  }"]);
  });

  test("of pytest, from the report and from the stack", () => {
    expect(diff("AssertionError: assert 'foo' == 'bar'\n  \n  - bar\n  + foo")).toEqual(["- bar", "+ foo"]);
    const stack = `    def test_x():
>       assert cart() == {'a': 1, 'b': 3}
E       AssertionError: assert {'a': 1, 'b': 2} == {'a': 1, 'b': 3}
E         
E         Omitting 1 identical items, use -vv to show
E         Differing items:
E         {'b': 2} != {'b': 3}
E         
E         Full diff:
E           {
E               'a': 1,
E         -     'b': 3,
E         ?          ^
E         +     'b': 2,
E         ?          ^
E           }

tests/test_cart.py:12: AssertionError`;
    expect(diff(null, stack)).toEqual(["  {", "      'a': 1,", "-     'b': 3,", "+     'b': 2,", "  }"]);
  });

  test("of unittest, which does not say which side was expected", () => {
    expect(sides("AssertionError: 'foo' != 'bar'\n- foo\n+ bar\n")).toEqual(["first", "second"]);
    expect(diff("AssertionError: 'foo' != 'bar'\n- foo\n+ bar\n")).toEqual(["- foo", "+ bar"]);
  });
});

describe("pairs", () => {
  test.each([
    ["expect(received).toBe(expected)\n\nExpected: 3\nReceived: 4", ["- 3", "+ 4"]],
    ['Locator: h1\nExpected string: "Cart"\nReceived string: "Card"\nCall log:', ['- "Cart"', '+ "Card"']],
    ["  Expected: 1\n  But was:  2", ["- 1", "+  2"]],
    ["Assert.Equal() Failure: Values differ\nExpected: 1\nActual:   2", ["- 1", "+   2"]],
    ["\nexpected: 1\n     got: 2\n\n(compared using ==)", ["- 1", "+ 2"]],
    ["Expecting actual:\n  [1, 2]\nto be equal to:\n  [1, 3]\n", ["- [1, 3]", "+ [1, 2]"]],
    ["assertion `left == right` failed\n  left: 1\n right: 2", ["- 1", "+ 2"]],
    ["Expected: is <1>\n     but: was <2>", ["- is <1>", "+ was <2>"]],
  ])("%p", (text, lines) => {
    expect(diff(text)?.map((line) => line.replace(/\s+/g, " "))).toEqual(
      lines.map((line) => line.replace(/\s+/g, " ")),
    );
  });

  test("of several lines are compared line by line", () => {
    expect(diff("Expected:\n  a\n  b\n  c\nReceived:\n  a\n  x\n  c\n")).toEqual(["  a", "- b", "+ x", "  c"]);
  });
});

describe("sentences", () => {
  test.each([
    ["expected { a: 1 } to deeply equal { a: 2 }", ["- { a: 2 }", "+ { a: 1 }"]],
    ["AssertionError: expected 1 to be 2 // Object.is equality", ["- 2", "+ 1"]],
    ["AssertionError: expected 'a to b' to equal 'c'", ["- 'c'", "+ 'a to b'"]],
    ["org.opentest4j.AssertionFailedError: expected: <1> but was: <2>", ["- 1", "+ 2"]],
    ["expected:<[a]> but was:<[]>", ["- [a]", "+ []"]],
    ["assert 1 == 2", ["- 2", "+ 1"]],
    ["Expected values to be strictly equal:\n\n1 !== 2\n", ["- 2", "+ 1"]],
    ["Failed asserting that 1 matches expected 2.", ["- 2", "+ 1"]],
    ["AssertionError: 1 != 2 : the totals", ["- 1", "+ 2"]],
  ])("%p", (text, lines) => {
    expect(diff(text)).toEqual(lines);
  });
});

describe("nothing is made up", () => {
  test.each([
    "TypeError: Cannot read properties of undefined (reading 'currency')",
    "expected undefined to be defined",
    "expected 'a' to be a string",
    "Timed out: no answer within 2000 ms",
    "- not\n+ a diff, nobody says so",
    "Expected: something",
    "",
  ])("%p", (text) => {
    expect(diff(text)).toBeUndefined();
  });
});

test("hostile texts are read in a moment, or this would never end", () => {
  const texts = [
    "expected ".repeat(3_000),
    "a !== ".repeat(5_000),
    `Expected:\n${" x\n".repeat(9_000)}Received:\n`,
    "- Expected\n+ Received\n".repeat(2_000),
    "E   ".repeat(9_000),
    "\x1b[".repeat(9_000),
  ];
  for (const text of texts) expect(readDiff(text, text)?.lines.length ?? 0).toBeLessThan(200);
});
