import { describe, expect, test } from "bun:test";
import { cutPrelude } from "../../src/reports/read.ts";
import type { ReportedCase } from "../../src/reports/report.ts";
import { fixtureBytes, inShort, read as readText, refusalOf } from "./reading.ts";
import { isFull } from "../depth.ts";

const read = (...lines: string[]) => readText(lines.join("\n"));
const brief = ({ suite, name, status, kind }: ReportedCase) => [suite, name, status, kind];
const briefs = (...lines: string[]) => read(...lines).cases.map(brief);

describe("a test point", () => {
  test("has a name with or without number and dash, and no directive in it", () => {
    const names = read("1..5", "ok", "ok 2", "ok - a", "ok 4 - b \\# c", "ok 2 fast").cases.map(({ name }) => name);
    expect(names).toEqual(["(no name)", "(no name)", "a", "b # c", "fast"]);
  });

  test("is skipped by SKIP and TODO, whatever it is, and keeps the reason", () => {
    const { cases } = read(
      "1..4",
      "ok 1 a # SKIP why",
      "not ok 2 b # todo fix #7",
      "ok 3 # skipped: x",
      "ok 4 # SKIP -",
    );
    expect(cases.map(({ status, message }) => [status, message])).toEqual([
      ["skipped", "why"],
      ["skipped", "fix #7"],
      ["skipped", "x"],
      ["skipped", null],
    ]);
  });

  test("has its name behind SKIP where QUnit and Busted write it, and Perl its reason behind skip", () => {
    const points = ["ok 1 # SKIP cart > later", "ok 2 - # TODO this", "ok 3 # skip no net", "ok 4 # SKIP"];
    const { cases } = read("1..4", ...points);
    expect(cases.map(({ name, message }) => [name, message])).toEqual([
      ["cart > later", null],
      ["this", null],
      ["(no name)", "no net"],
      ["(no name)", null],
    ]);
  });

  test("tells its time on its line or in its block", () => {
    const block = ["  ---", "  duration_ms: 7", "  ..."];
    const { cases } = read("1..4", "ok 1 a # time=9.6ms", "ok 2 b # in 2 sec", "ok 3 c", ...block, "ok 4 d");
    expect(cases.map(({ durationMs }) => durationMs)).toEqual([10, 2000, 7, null]);
  });

  test("keeps what is written below a failure", () => {
    const [first, second] = [
      ["# first", "#   second"],
      ["  boom", "    at c"],
    ];
    const [a, b] = read("1..2", "not ok 1 a", ...first!, "not ok 2 b", ...second!, "ok 3").cases;
    expect(a).toMatchObject({ message: "first", stack: "first\n  second" });
    expect(b).toMatchObject({ message: "boom", stack: "boom\n  at c" });
  });

  test("keeps a block that is no YAML as text, with its error as the message", () => {
    const yaml = (...lines: string[]) => read("1..1", "not ok 1 a", "  ---", ...lines, "  ...").cases[0];
    expect(yaml("  error: 'it''s'")).toMatchObject({ message: "it's", stack: "error: 'it''s'" });
    expect(yaml("  error:", '    message: "a\\nb"')).toMatchObject({ message: "a" });
    expect(yaml("  message: |-", "    boom", "}", "ok but text")).toMatchObject({ message: "boom" });
    expect(briefs("1..2", "not ok 1 a", "  ---", "  x: 1", "ok 2 b")).toHaveLength(2);
  });
});

test("a block that is no whole JSON, and the end of a group of GLib, are no message", () => {
  expect(read("1..1", "not ok 1 a", "  ---", '  {"message":', "  ...").cases[0]).toMatchObject({ name: "a" });
  expect(read("1..1", "not ok 1 a", "# End of x tests").cases[0]).toMatchObject({ message: null, stack: null });
});

describe("subtests", () => {
  test("count instead of their parents, which are the suites", () => {
    const inner = ["    1..2", "        ok 1 - x", "        1..1", "    ok 1 - in", "    ok 2 - b"];
    expect(briefs("1..2", ...inner, "ok 1 - out", "ok 2 - c")).toEqual([
      ["out > in", "x", "passed", null],
      ["out", "b", "passed", null],
      ["", "c", "passed", null],
    ]);
  });

  test("may follow their parent in braces, as Vitest writes them, in files", () => {
    const lines = ["TAP version 13", "1..2", "not ok 1 - t/a.test.ts # time=2.00ms {", "    1..1"];
    const inner = ["    not ok 1 - s {", "        1..1", "        not ok 1 - x", "    }", "}"];
    const { cases } = read(...lines, ...inner, "ok 2 - t/b.test.ts > s > y");
    expect(cases.map(({ file, ...one }) => [file, ...brief({ file, ...one })])).toEqual([
      ["t/a.test.ts", "s", "x", "failed", "failure"],
      ["t/b.test.ts", "s", "y", "passed", null],
    ]);
  });

  test("of a parent that is todo are skipped; a parent that fails alone is a failure", () => {
    const [x, y] = [
      ["    not ok 1 - x", "    1..1"],
      ["    ok 1 - y", "    1..1"],
    ];
    expect(briefs("1..2", ...x!, "not ok 1 - a # TODO", ...y!, "not ok 2 - b")).toEqual([
      ["a", "x", "skipped", null],
      ["", "b", "failed", "failure"],
      ["b", "y", "passed", null],
    ]);
  });

  test("whose parent never came are kept under the announced name", () => {
    expect(briefs("# Subtest: out", "    # Subtest: in", "    not ok 1 - in")).toEqual([
      ["out", "in", "failed", "failure"],
      ["", "(plan mismatch)", "failed", "error"],
    ]);
  });
});

describe("a subtest whose end contradicts it", () => {
  const faults = (...lines: string[]) =>
    read(...lines).cases.flatMap(({ suite, name, status, kind, message }) =>
      name === "(plan mismatch)" ? [[suite, status, kind, message].join("; ")] : [],
    );

  test("has failed when the text ends inside it", () => {
    const open = ["1..2", "ok 1", "# Subtest: deep", "    1..3", "    ok 1 - x"];
    const broke = "; failed; error; The run broke off inside the subtest ";
    expect(faults(...open)).toEqual([`${broke}"deep": the plan is of 3 tests, but there is 1`]);
    const whole = "; failed; error; The plan is of 2 tests, but there is 1";
    expect(faults(...open, "    ok 2 - y", "    ok 3 - z")).toEqual([whole]);
    expect(faults("1..1", "ok 1", "# Subtest: deep", "    ok 1 - x")).toEqual([`${broke}"deep"`]);
    const none = `${broke}"deep": the plan is of 2 tests, but there are 0`;
    expect(faults("1..1", "ok 1", "# Subtest: deep", "    1..2")).toEqual([none]);
    const braces = ["TAP version 14", "1..2", "ok 1 - a {", "    1..1", "    ok 1 - x", "}", "ok 2 - b {"];
    expect(faults(...braces, "    1..1", "    ok 1 - y", "}")).toEqual([]);
    expect(faults(...braces, "    1..1", "    ok 1 - y")).toEqual([`${broke}"b"`]);
    expect(faults(...braces)).toEqual([`${broke}"b"`]);
  });

  test("has failed when its own plan is not kept, though its parent passed", () => {
    const short = ["1..1", "    1..3", "    ok 1 - x"];
    const mismatch = "sub; failed; error; The plan is of 3 tests, but there is 1";
    expect(faults(...short, "ok 1 - sub")).toEqual([mismatch]);
    expect(faults("1..1", "ok 1 - sub {", ...short.slice(1), "}")).toEqual([mismatch]);
    const deep = ["        1..3", "        ok 1 - x", "    ok 1 - sub", "    1..1"];
    expect(faults("1..1", ...deep, "ok 1 - out")).toEqual([`out > ${mismatch}`]);
    // Perl says so by itself.
    expect(briefs(...short, "    # Looks like you planned 3 tests but ran 1.", "not ok 1 - sub")).toEqual([
      ["", "sub", "failed", "failure"],
      ["sub", "x", "passed", null],
    ]);
  });

  test("is sound when it adds up: without a plan, skipped as a whole, or below its parent", () => {
    expect(faults("1..1", "    ok 1 - x", "ok 1 - sub")).toEqual([]);
    expect(faults("    1..0 # SKIP none", "ok 1 - sub # SKIP none", "1..1")).toEqual([]);
    expect(faults("ok 1 - parent", "    ok 1 - child", "    1..1", "1..1")).toEqual([]);
  });
});

describe("a repeated number that hides a missing one", () => {
  const last = (...lines: string[]) => read(...lines).cases.at(-1)!;

  test("has failed, at every level", () => {
    const message = "The number 2 is there 2 times, and 3 is missing";
    const inner = ["    ok 1 - x", "    ok 2 - y", "    ok 2 - z", "    1..3"];
    expect(last("1..3", "ok 1", "ok 2", "ok 2")).toMatchObject({ name: "(plan mismatch)", status: "failed", message });
    expect(last("1..1", ...inner, "ok 1 - sub")).toMatchObject({ suite: "sub", name: "(plan mismatch)", message });
  });

  test("is none where the totals of mocha count its test, whose number the failure of a hook has too", () => {
    const points = ["ok 1 a", 'not ok 1 after "after each" hook', "not ok 3 b"];
    const totals = (passed: number) => ["1..3", ...points, `# tests 3`, `# pass ${passed}`, "# fail 2"];
    expect(read(...totals(1)).cases).toHaveLength(3);
    expect(last(...totals(2))).toMatchObject({ name: "(plan mismatch)" });
  });

  test("is none where files are joined, points have no number, or node numbers files", () => {
    const green = (...lines: string[]) =>
      expect(read(...lines).cases.every(({ status }) => status === "passed")).toBe(true);
    green("1..2", "ok 1", "ok 2", "1..1", "ok 1");
    green("1..2", "ok 1", "ok 2", "1..3", "ok 3", "ok 4", "ok 5");
    green("1..3", "ok 1", "ok", "ok 1");
    green("ok 1", "ok 2", "ok 2 - /p/empty.mjs", "1..3", "# cancelled 0", "# duration_ms 1");
  });
});

describe("the plan", () => {
  test("may come last, and the plans of joined files add up", () => {
    expect(read("ok 1", "1..1").cases).toHaveLength(1);
    expect(read("1..1", "ok 1", "TAP version 13", "1..1", "ok 1").cases).toHaveLength(2);
  });

  test("that is missing or of another number is a failed case", () => {
    const message = "The plan is of 3 tests, but there is 1";
    expect(read("1..3", "ok 1 a").cases[1]).toMatchObject({ name: "(plan mismatch)", kind: "error", message });
    expect(read("TAP version 13", "ok 1 a")).toMatchObject({ partial: true, cases: [{}, { name: "(plan mismatch)" }] });
  });

  test("of nothing with a reason is a skipped case", () => {
    const skipped = { name: "(all tests skipped)", status: "skipped", message: "no database" };
    expect(read("1..0 # SKIP no database").cases).toMatchObject([skipped]);
    expect(read("1..0").cases).toEqual([]);
  });

  test("does not matter after a bail out, which is a failed case", () => {
    const { cases } = read("1..9", "ok 1 a", "    Bail out! disk full", "Bail out! disk full");
    const fault = { name: "(bail out)", status: "failed", kind: "error", message: "disk full" };
    expect(cases.slice(1)).toMatchObject([fault]);
  });
});

test.skipIf(!isFull)("hostile lines neither crash nor hang", () => {
  const [[, name]] = briefs("1..1", "not ok 1 \0\u001b[31m\ud800__proto__", "    {", "}", "...") as [unknown[]];
  expect(name).toBe("\ufffd\ufffd__proto__");
  const deep = Array.from({ length: 2000 }, (_, n) => `${" ".repeat(4 * n)}ok 1 - d${n} {`);
  expect(read(...deep).cases[0]!.suite).toHaveLength(1000);
  read("1..1", ...deep.toReversed());
  const long = ["#", " #", "# SKIP ", " # time=1ms", "\\", " {", "ok ", "error: "].map((part) => part.repeat(100_000));
  read("1..1", ...long.flatMap((text) => [`not ok 1 ${text}`, "  ---", `  message: ${text}`, text, "  ..."]));
  const closed = Array.from({ length: 50_000 }, () => "not ok 1\n}\n    # Subtest: a\n}");
  read("TAP version 13", "\n".repeat(300_000), ...closed);
  read("1..1\n".repeat(20_000), ...Array.from({ length: 20_000 }, (_, n) => `ok ${n + 1}`));
  read(...deep, ...Array.from({ length: 100_000 }, () => "1..1"));
});

describe("what a terminal shows", () => {
  const prove = new TextDecoder().decode(fixtureBytes("prove_tap.txt"));

  test("the output of prove is red wherever it breaks off", () => {
    const lines = prove.split("\n").slice(0, 10);
    for (let count = 3; count <= lines.length; count++) {
      const { cases } = read(...lines.slice(0, count));
      expect([count, cases.some(({ status }) => status === "failed")]).toEqual([count, true]);
    }
  });

  test.each([
    "> shop@1.0.0 test\n> node --test\n\nTAP version 13\n1..1\nok 1 - a\n",
    "TAP Version 13\n1..1\nok 1 - a\n",
    "Building shop\n1..1\nok 1 - a\n",
    "KTAP version 1\n1..1\nok 1 a\n",
  ])("%j is TAP", (text) => expect(briefs(text)).toEqual([["", "a", "passed", null]]));

  test("the subtests of KTAP are indented by two spaces", () => {
    const subtest = ["  KTAP version 1", "  # Subtest: s", "  1..2", "  ok 1 a", "  not ok 2 b"];
    expect(briefs("KTAP version 1", "1..1", ...subtest, "not ok 1 s")).toEqual([
      ["s", "a", "passed", null],
      ["s", "b", "failed", "failure"],
    ]);
  });
});

test.each([
  ["ok-# skip", "skipped", "(no name)"],
  ["not ok-text", "failed", "-text"],
  ["not ok 1-# TODO later", "skipped", "later"],
  ["ok#skip", "skipped", "(no name)"],
])("%j is read as Test::Harness reads it", (line, status, name) => {
  expect(read("1..1", line).cases).toMatchObject([{ status, name }]);
});

describe("lines of other programs come before it", () => {
  test.each([
    ["connecting\nBail out! db\nok 1 - x\n1..1\n", ["passed: x", "failed error: (bail out)"]],
    [
      "log\n# Subtest: p\n    ok 1 - a\n    not ok 2 - b\n    1..2\nok 1 - p\nok 2 - q\n1..2\n",
      ["passed: p > a", "failed failure: p > b", "passed: q"],
    ],
    ["connecting to db\nok 1 a\nok 2 b\n1..2\n", ["passed: a", "passed: b"]],
    ["up\nok\nok 1 - a\n1..1\n", ["passed: a"]],
    [`${"log\n".repeat(5_000)}not ok 1 - a\n1..1\n`, ["failed failure: a"]],
  ])("%#", (text, expected) => {
    expect(inShort(readText(text))).toEqual(expected);
    expect(inShort(readText(text.replaceAll("\n", "\r\n")))).toEqual(expected);
    // So no program has to cut them off, and could cut off more.
    expect(cutPrelude(new TextEncoder().encode(text))).toBeNull();
  });

  test("but an ok with a number alone is no TAP", () => {
    expect(refusalOf("PASS\nok 1 is fine\n")).toBe("it is plain text, not a test report");
  });
});

test("a number that the plan does not have is a warning", () => {
  const { cases, warnings } = read("1..2", "ok 2 - a", "ok 3 - b");
  expect([cases.length, warnings]).toEqual([2, ["The plan is of 2 tests, but one has the number 3"]]);
});
