/** Messages of failures whose reports only say that a test failed, and the lines that stacks tell. */

import { expect, test } from "bun:test";
import { read } from "./reading.ts";

const escape = (text: string) => Bun.escapeHTML(text);
const inJunit = (message: string, text: string, attributes = "") =>
  read(
    `<testsuites><testsuite name="s"><testcase name="a" ${attributes}><failure message="${escape(message)}">${escape(text)}</failure></testcase></testsuite></testsuites>`,
  ).cases[0]!;
const inTap = (...lines: string[]) => read(["1..1", ...lines].join("\n")).cases[0]!;

test.each([
  [
    "Failed",
    "=== RUN   TestA\n    a_test.go:5: tax: got 3, want 4\n--- FAIL: TestA (0.00s)\n",
    "a_test.go:5: tax: got 3, want 4",
  ],
  [
    "Failed",
    "    a_test.go:9: \n\tError Trace:\ta_test.go:9\n\tError:      \tNot equal: 1\n\tTest: TestA",
    "Not equal: 1",
  ],
  ["Failed", "panic: no cart\n\ngoroutine 7", "panic: no cart"],
  ["Failed", "cart.cpp:14: Assertion `total == 3' failed.", "cart.cpp:14: Assertion `total == 3' failed."],
  [
    "failed",
    'Traceback (most recent call last):\n  File "a.py", line 3, in a\n    b()\nshop.Sold: none left',
    "shop.Sold: none left",
  ],
  [
    "p.spec.ts:2:60 adds",
    "  p.spec.ts:2:60 › adds ───\n\n    Error: expect(received).toBe(2)\n",
    "Error: expect(received).toBe(2)",
  ],
  ["", "\ufffd[31mError: \ufffd[1mred\ufffd[0m", "Error: red"],
  ["AssertionError: [31mred[39m in rate(x[5m])", "", "AssertionError: red in rate(x[5m])"],
  ["Failed", "no more than that", "Failed"],
  ["total is wrong", "Error: other", "total is wrong"],
])("the message %j with the text %j becomes %j", (message, text, expected) => {
  expect(inJunit(message, text).message).toBe(expected);
});

test.each([
  ["unit/price.test.mjs", " ❯ node_modules/x.mjs:1:1\n ❯ unit/price.test.mjs:6:75\n ❯ unit/price.test.mjs:9:1", 6],
  ["/home/a/src/b.test.js", "    at Object.<anonymous> (src/b.test.js:5:10)", 5],
  ["src\\b.test.js", "    at fails (C:\\a\\src\\b.test.js:7:1)", 7],
  ["src/b.test.js", "    at file:///home/a/src/b.test.js:8:2", 8],
  ["e2e/test_shop.py", "e2e/test_shop.py:10: \n_ _ _\n\ne2e/test_shop.py:16: AssertionError", 16],
  ["test_shop.py", '  File "/a/test_shop.py", line 4, in a', 4],
  ["b.test.js", "    at other/ab.test.js:5:10", null],
  ["src/b.test.js", "    at lib/b.test.js:5:10", null],
])("in %s the stack %j tells the line %p", (file, stack, line) => {
  expect(inJunit("m", stack, `file="${file}"`).line).toBe(line);
});

test("a line that the report tells is kept", () => {
  expect(inJunit("m", "a.test.js:6:1", 'file="a.test.js" line="3"').line).toBe(3);
});

test("the kernel's tests tell how they ended behind the name, and why above it", () => {
  const above = ["# selftests: net: b", "# expected 3, got 4"];
  expect(inTap(...above, "not ok 1 selftests: net: b # exit=1")).toMatchObject({
    ...{ name: "selftests: net: b", status: "failed", message: "expected 3, got 4" },
  });
  expect(inTap("not ok 1 b # TIMEOUT 45 seconds")).toMatchObject({
    name: "b",
    kind: "timeout",
    message: "TIMEOUT 45 seconds",
  });
  expect(inTap("not ok 1 b # XFAIL known")).toMatchObject({ name: "b", status: "skipped", message: "known" });
});

test("a run of TRX that failed without a failed test says what the runner said", () => {
  const info =
    '<RunInfos><RunInfo outcome="Warning"><Text>No test is available in shop.dll.</Text></RunInfo></RunInfos>';
  const trx = `<TestRun><Results/><ResultSummary outcome="Failed">${info}</ResultSummary></TestRun>`;
  expect(read(trx).cases[0]!.message).toBe("The outcome of the run is Failed: No test is available in shop.dll.");
});
