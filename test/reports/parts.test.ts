/** A text that holds several reports: none of them is left out silently. */

import { describe, expect, test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { fixtureBytes, inShort, read, readFixture, refusalOf } from "./reading.ts";

const short = (...lines: string[]) => inShort(read(lines.join("\n")));
const TAP = "1..2\nok 1 - a\nnot ok 2 - b\n";
const PROVE =
  "t/c.t .. \n1..1\nok 1 - c\nok\nAll tests successful.\nFiles=1, Tests=1,  1 wallclock secs\nResult: PASS\n";
const JUNIT = `${GREEN_REPORTS.junit}\n`;
const SORTED = (texts: string[]) => texts.toSorted();

describe("two reports in one text are both read", () => {
  const tap = ["passed: a", "failed failure: b"];
  test.each([
    ["TAP, then prove", TAP + PROVE, [...tap, "passed: c"]],
    ["prove, then TAP", PROVE + TAP, ["passed: c", ...tap]],
    ["prove twice", PROVE + PROVE.replace(/c(?=\.t|\nok)/g, "d"), ["passed: c", "passed: d"]],
    ["TAP, then JUnit", TAP + JUNIT, [...tap, "passed: s > a", "passed: t > b"]],
    [
      "JUnit, then TAP, then JUnit",
      JUNIT + TAP + JUNIT,
      ["passed: s > a", "passed: t > b", ...tap, "passed: s > a", "passed: t > b"],
    ],
    [
      "TAP, then Go, with lines between",
      `${TAP}$ go test\n${GREEN_REPORTS.go_json}`,
      [...tap, "passed: p > TestA", "passed: p > TestB"],
    ],
    ["Jest, then TAP", `${GREEN_REPORTS.jest}\nDone.\n${TAP}`, ["passed: a", "passed: b", ...tap]],
    [
      "Jest twice",
      `${GREEN_REPORTS.jest}\n${GREEN_REPORTS.jest}`,
      ["passed: a", "passed: b", "passed: a", "passed: b"],
    ],
  ])("%s", (_, text, expected) => {
    expect(inShort(read(text))).toEqual(expected);
    expect(inShort(read(text.replaceAll("\n", "\r\n")))).toEqual(expected);
  });

  test("two documents of JSON on one line are, too", () => {
    const second = GREEN_REPORTS.jest!.replaceAll('"a"', '"c"');
    expect(inShort(read(GREEN_REPORTS.jest!.trimEnd() + second))).toEqual([
      "passed: a",
      "passed: b",
      "passed: c",
      "passed: b",
    ]);
  });

  test.each([
    ["go_test2json.ndjson", "libtest.ndjson"],
    ["libtest.ndjson", "go_test2json.ndjson"],
    ["swift_testing.ndjson", "go_text.txt"],
    ["go_text.txt", "go_test2json.ndjson"],
    ["mocha_teamcity.txt", "node_tap13.tap"],
    ["cucumber_messages.ndjson", "trx"],
  ])("%s, then %s", (first, second) => {
    const one = (name: string) => (name in GREEN_REPORTS ? Buffer.from(GREEN_REPORTS[name]!) : fixtureBytes(name));
    const both = read(Buffer.concat([one(first), Buffer.from("\n"), one(second)]));
    const apart = [first, second].flatMap((name) => inShort(read(one(name))));
    expect(SORTED(inShort(both))).toEqual(SORTED(apart));
  });
});

test("more reports than can be told apart in good time are refused", () => {
  expect(refusalOf(`1..1\nok 1 - a\n${JUNIT}`.repeat(2_000))).toStartWith("it holds too many reports one after");
});

describe("what a test prints is no report", () => {
  test("of Go, in the middle of a package", () => {
    const printed = ["TAP version 13", "1..1", "not ok 1 - x", "<testsuites>", '{"testResults":[],"numTotalTests":0}'];
    const lines = ["=== RUN   TestA", ...printed, "--- PASS: TestA (0.00s)", "PASS", "ok  \tp\t0.01s", ""];
    expect(short(...lines)).toEqual(["passed: p > TestA"]);
    expect(short(...lines, ...lines)).toEqual(["passed, 2 attempts: p > TestA"]);
  });

  test("of TAP and TeamCity, on one line that any program prints", () => {
    expect(short("1..2", "ok 1 - a", "<testsuites>", "Connecting ...", "ok 2 - b")).toEqual(["passed: a", "passed: b"]);
    expect(read(`${GREEN_REPORTS.teamcity}ok 1 - a\n`).format).toBe("teamcity");
  });
});

test("what follows a document of JSON is named, and refused where it may be a broken report", () => {
  expect(read(`${GREEN_REPORTS.jest}\nDone in 2 s\n`).warnings).toEqual([
    'Left out the text after the end of the report: "Done in 2 s"',
  ]);
  expect(refusalOf(`${GREEN_REPORTS.jest}\n{"testResults":[`)).toStartWith("malformed JSON at line 2");
  expect(refusalOf('{"uuid":"1","status":"passed","start":1}\n{"uuid":"2","status":"failed","start":1}')).not.toBe(
    "accepted",
  );
});

describe("a document that begins like a report and cannot be read to its end is red, and says so", () => {
  const lost = (text: string) => {
    const { cases, partial } = read(text);
    return cases.filter(({ name }) => name === "(broken report)").map(({ message }) => [partial, message]);
  };
  const whole = "TAP version 13\nok 1 - x\n1..1\n";
  const mocha = JSON.stringify(JSON.parse(GREEN_REPORTS.mocha!), null, 2);

  test.each([
    ["it breaks off", mocha.slice(0, -1)],
    ["it breaks off", mocha.slice(0, mocha.length / 2)],
    ["it breaks off", "{"],
    ["malformed XML at line 1: it breaks off inside <testsuites>", "<testsuites>\n"],
    ["it breaks off", '<?xml version="1.0"?>\n'],
    ['expected a key, found "Server is up"', mocha.replace('"failures": 0,', "$&\nServer is up")],
  ])("%#: %s", (reason, text) => {
    const message = `The report that begins at line 4 cannot be read: ${reason}`;
    expect(lost(whole + text)).toEqual([[true, message]]);
  });

  test("before a whole report, and below JUnit, too", () => {
    const half = mocha.slice(0, mocha.length / 2);
    expect(lost(`starting\n${half}\n${whole}`)).toHaveLength(1);
    expect(lost(`${half}\n${whole}`)).toHaveLength(1);
    expect(lost(JUNIT + half)).toHaveLength(1);
  });

  test("whole values, and lines that are no JSON, are what programs print", () => {
    const lines = [
      '{"level":"info"}',
      "[object Object]",
      "[INFO] up",
      "{ a: 1 }",
      "[ { a: 1 } ]",
      "[]",
      "[12:01] GET /",
    ];
    const printed = [
      ...lines,
      '{\n  "tests": [\n1]\n}',
      '{"level":"info","tests":5}',
      "<- done",
      "{ stats: { tests: 1 } }",
    ];
    for (const text of [...printed, printed.join("\n")])
      expect(inShort(read(`${whole}${text}\n`))).toEqual(["passed: x"]);
    expect(short("1..2", "ok 1 - a", '{"stats": {', "ok 2 - b")).toEqual(["passed: a", "passed: b"]);
  });
});

test("TAP that was cut off below or above its plan is red below another report", () => {
  for (const first of [JUNIT, GREEN_REPORTS.trx, GREEN_REPORTS.go])
    for (const begun of ["ok\n1..29\n", "TAP version 13\n# Subtest: a\n", "ok 1 a\nup\nok 2 b\n"])
      expect(inShort(read(`${first}\n${begun}`)).at(-1)).toBe("failed error: (plan mismatch)");
});

test("joined files have a byte-order mark each", () => {
  expect(short("\ufeff1..1", "ok 1 - x", `\ufeff${GREEN_REPORTS.junit}`)).toEqual([
    "passed: x",
    "passed: s > a",
    "passed: t > b",
  ]);
  expect(short("1..1", "ok 1 - x", '\ufeff<?xml version="1.0" enc')).toEqual([
    "passed: x",
    "failed error: (broken report)",
  ]);
});

test("TAP that a test printed into a document is no report, behind lines of other programs", () => {
  const xml = (printed: string) =>
    `up\n<testsuites><testsuite name="s"><testcase name="a"><failure/><system-out>\n${printed}</system-out></testcase></testsuite></testsuites>`;
  expect(inShort(read(xml("TAP version 13\n1..1\nok 1 - x\n")))).toEqual(["failed failure: s > a"]);
  expect(inShort(read(xml("ok 1 - x\n1..1\n")))).toEqual(["failed failure: s > a"]);
  expect(short("up", "ok 1 x", "1..1", GREEN_REPORTS.junit!)).toEqual(["passed: x", "passed: s > a", "passed: t > b"]);
});

describe("prove", () => {
  const run = (...lines: string[]) => short(...lines, "Files=1, Tests=2,  1 wallclock secs", "Result: PASS");

  test("announces a file by a path: lines of programs are none", () => {
    const dots = ["# ....", "Connecting ...", "https://a.test/ ...", "a/b and c ..."];
    expect(run("t/a.t .. ", "1..2", "ok 1 - a", ...dots, "ok 2 - b", "ok")).toEqual(["passed: a", "passed: b"]);
    expect(short("# ..", "not ok 1 - x", "1..1", "Result: PASS")).toEqual(["failed failure: x"]);
  });

  test("is red where points are outside of its files, and where it counts other files", () => {
    const file = ["t/a.t .. ", "1..2", "ok 1 - a", "ok 2 - b", "ok"];
    expect(run("not ok 1 - lost", ...file).at(-1)).toBe("failed error: (plan mismatch)");
    expect(run(...file, "t/b.t .. skipped: no net").at(-1)).toBe("failed error: (plan mismatch)");
  });
});

test.each(["go_test2json.ndjson", "go_text.txt", "libtest.ndjson", "prove_tap.txt", "swift_testing.ndjson"])(
  "%s is the same below lines of a program that ends them as Windows does",
  (name) => {
    const text = `one\ntwo\n${fixtureBytes(name)}`.replaceAll("\n", "\r\n");
    expect(inShort(read(text))).toEqual(inShort(readFixture(name)));
  },
);
