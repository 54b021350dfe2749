import { describe, expect, test } from "bun:test";
import { readReport } from "../../src/reports/read.ts";
import type { ReportedCase } from "../../src/reports/report.ts";

const readBytes = (bytes: Uint8Array, format?: string) =>
  readReport([{ name: "a.tap", bytes }], { maxInflatedBytes: 2 ** 27, ...(format ? { format } : {}) });
const read = (...lines: string[]) => readBytes(new TextEncoder().encode(lines.join("\n")));
const brief = ({ suite, name, status, kind }: ReportedCase) => [suite, name, status, kind];
const briefs = (...lines: string[]) => read(...lines).cases.map(brief);

const HOSTILE = 'a "quote" & <script> ]]>';
const FIXTURES: [string, (string | null)[][]][] = [
  [
    "node_tap13",
    [
      ["", `${HOSTILE} 😀`, "passed", null],
      ["", "hash # in # name \\ back", "passed", null],
      ["outer > inner", "passes", "passed", null],
      ["outer > inner", "red", "failed", "failure"],
      ["outer > inner", "times out", "failed", "timeout"],
      ["outer", "skips", "skipped", null],
      ["outer", "todo", "skipped", null],
      ["", "own error", "failed", "failure"],
      ["own error", "child", "passed", null],
      ["", "(file failed to load)", "failed", "error"],
    ],
  ],
  [
    "node-tap_tap14",
    [
      [`${HOSTILE} # hash`, "fine", "passed", null],
      [`${HOSTILE} # hash > inner`, "one is two", "failed", "failure"],
      ["", "skips", "skipped", null],
      ["", "todo", "skipped", null],
      ["hangs", "timeout!", "failed", "timeout"],
      ["", "hangs", "failed", "failure"],
      ["", "(file failed to load)", "failed", "error"],
    ],
  ],
  ...["bats_tap", "bats_tap13"].map((name): [string, (string | null)[][]] => [
    name,
    [
      ["", "passes", "passed", null],
      ["", `${HOSTILE} 😀`, "passed", null],
      ["", "fails # hash", "failed", "failure"],
      ["", "skips", "skipped", null],
      ["", "flaky", "passed", null],
      ["", "hangs", "failed", "timeout"],
    ],
  ]),
  [
    "tape_tap13",
    [
      ["adds", "should be strictly equal", "passed", null],
      ["adds", "one is two", "failed", "failure"],
      ["adds again", "should be strictly equal", "passed", null],
      ["todo", "not yet", "skipped", null],
    ],
  ],
  [
    "perl_tap",
    [
      ["", "passes", "passed", null],
      ["", "fails", "failed", "failure"],
      ["", "(no name)", "skipped", null],
      ["", "todo", "skipped", null],
      ["group", "in", "passed", null],
      ["group", "in too", "failed", "failure"],
    ],
  ],
  [
    "mocha_tap",
    [
      ["", "outer passes", "passed", null],
      ["", `outer ${HOSTILE} 😀  hash`, "passed", null],
      ["", "outer fails", "failed", "failure"],
      ["", "outer skips", "skipped", null],
      ["", "outer pending", "skipped", null],
      ["", "outer hangs", "failed", "timeout"],
      ["", "outer flaky", "passed", null],
    ],
  ],
];

test.each(FIXTURES)("what %s holds is read whole", async (name, expected) => {
  const report = readBytes(await Bun.file(`${import.meta.dir}/../fixtures/${name}.tap`).bytes());
  expect(report).toMatchObject({ format: "tap", suite: null, partial: false, warnings: [] });
  expect(report.cases.map(brief)).toEqual(expected);
});

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

  test("tells its time on its line or in its block", () => {
    const { cases } = read(
      "1..4",
      "ok 1 a # time=9.6ms",
      "ok 2 b # in 2 sec",
      "ok 3 c",
      "  ---",
      "  duration_ms: 7",
      "  ...",
      "ok 4 d",
    );
    expect(cases.map(({ durationMs }) => durationMs)).toEqual([10, 2000, 7, null]);
  });

  test("keeps what is written below a failure", () => {
    const [a, b] = read(
      "1..2",
      "not ok 1 a",
      "# first",
      "#   second",
      "not ok 2 b",
      "  boom",
      "    at c",
      "ok 3",
    ).cases;
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

describe("subtests", () => {
  test("count instead of their parents, which are the suites", () => {
    const lines = [
      "1..2",
      "    1..2",
      "        ok 1 - x",
      "        1..1",
      "    ok 1 - in",
      "    ok 2 - b",
      "ok 1 - out",
      "ok 2 - c",
    ];
    expect(briefs(...lines)).toEqual([
      ["out > in", "x", "passed", null],
      ["out", "b", "passed", null],
      ["", "c", "passed", null],
    ]);
  });

  test("may follow their parent in braces, as Vitest writes them, in files", () => {
    const lines = ["TAP version 13", "1..2", "not ok 1 - t/a.test.ts # time=2.00ms {", "    1..1"];
    const inner = [
      "    not ok 1 - s {",
      "        1..1",
      "        not ok 1 - x",
      "    }",
      "}",
      "ok 2 - t/b.test.ts > s > y",
    ];
    const { cases } = read(...lines, ...inner);
    expect(cases.map(({ file, ...one }) => [file, ...brief({ file, ...one })])).toEqual([
      ["t/a.test.ts", "s", "x", "failed", "failure"],
      ["t/b.test.ts", "s", "y", "passed", null],
    ]);
  });

  test("of a parent that is todo are skipped; a parent that fails alone is a failure", () => {
    const lines = [
      "1..2",
      "    not ok 1 - x",
      "    1..1",
      "not ok 1 - a # TODO",
      "    ok 1 - y",
      "    1..1",
      "not ok 2 - b",
    ];
    expect(briefs(...lines)).toEqual([
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

describe("the plan", () => {
  test("may come last, and the plans of joined files add up", () => {
    expect(read("ok 1", "1..1").cases).toHaveLength(1);
    expect(read("1..1", "ok 1", "TAP version 13", "1..1", "ok 1").cases).toHaveLength(2);
  });

  test("that is missing or of another number is a failed case", () => {
    expect(read("1..3", "ok 1 a").cases[1]).toMatchObject({
      name: "(plan mismatch)",
      kind: "error",
      message: "The plan is of 3 tests, but there is 1",
    });
    expect(read("TAP version 13", "ok 1 a")).toMatchObject({ partial: true, cases: [{}, { name: "(plan mismatch)" }] });
  });

  test("of nothing with a reason is a skipped case", () => {
    expect(read("1..0 # SKIP no database").cases).toMatchObject([
      { name: "(all tests skipped)", status: "skipped", message: "no database" },
    ]);
    expect(read("1..0").cases).toEqual([]);
  });

  test("does not matter after a bail out, which is a failed case", () => {
    expect(read("1..9", "ok 1 a", "    Bail out! disk full", "Bail out! disk full").cases.slice(1)).toMatchObject([
      { name: "(bail out)", status: "failed", kind: "error", message: "disk full" },
    ]);
  });
});

test("hostile lines neither crash nor hang", () => {
  expect(briefs("1..1", "not ok 1 \0\u001b[31m\ud800__proto__", "    {", "}", "...")[0]![1]).toBe(
    "\ufffd\ufffd__proto__",
  );
  const start = performance.now();
  const deep = Array.from({ length: 2000 }, (_, n) => `${" ".repeat(4 * n)}ok 1 - d${n} {`);
  expect(read(...deep).cases[0]!.suite).toHaveLength(1000);
  read("1..1", ...deep.toReversed());
  const long = ["#", " #", "# SKIP ", " # time=1ms", "\\", " {", "ok ", "error: "].map((part) => part.repeat(100_000));
  read("1..1", ...long.flatMap((text) => [`not ok 1 ${text}`, "  ---", `  message: ${text}`, text, "  ..."]));
  read(
    "TAP version 13",
    "\n".repeat(300_000),
    ...Array.from({ length: 50_000 }, () => "not ok 1\n}\n    # Subtest: a\n}"),
  );
  expect(performance.now() - start).toBeLessThan(4000);
});

test("a text without a line of TAP is refused", () => {
  expect(() => readBytes(new TextEncoder().encode("okay"), "tap")).toThrow("none of its lines is TAP");
});
