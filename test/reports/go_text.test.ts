import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const passed = (name: string) => `=== RUN   ${name}\n--- PASS: ${name} (0.00s)\n`;
const failed = (name: string) => `=== RUN   ${name}\n    a_test.go:3: no\n--- FAIL: ${name} (0.00s)\n`;
const ok = (path: string) => `PASS\nok  \t${path}\t0.010s\n`;
const fail = (path: string) => `FAIL\nFAIL\t${path}\t0.010s\n`;

test("a test is the same one in the text and in the JSON of go", () => {
  const event = (fields: object) => JSON.stringify({ Package: "example.com/a", ...fields });
  const json = [
    event({ Action: "run", Test: "TestA/b" }),
    event({ Action: "output", Test: "TestA/b", Output: "    a_test.go:3: no\n" }),
    event({ Action: "fail", Test: "TestA/b", Elapsed: 0 }),
    event({ Action: "fail" }),
  ];
  expect(read(failed("TestA/b") + fail("example.com/a")).cases).toEqual(read(json.join("\n")).cases);
});

test.each([
  ["ok  \ta\t0.010s", "ok"],
  ["ok  \ta\t(cached)", "ok"],
  ["ok  \ta\t0.010s\tcoverage: 50.0% of statements", "ok"],
  ["ok  \ta\t(cached)\tcoverage: [no statements]", "ok"],
  ["ok  \ta\t0.010s [no tests to run]", "ok"],
  ["ok  \ta\t0.0", "broken off"],
  ["ok  \ta", "broken off"],
  ["", "broken off"],
])("a package that ends with %p is %s", (line, outcome) => {
  for (const end of ["\n", "\r\n"]) {
    const report = read(`${passed("TestA")}PASS\n${line}`.replaceAll("\n", end));
    expect(report.partial).toBe(outcome !== "ok");
    expect(inShort(report)).toEqual(
      outcome === "ok" ? ["passed: a > TestA"] : ["passed: TestA", "failed error: (package did not finish)"],
    );
  }
});

test("a package that failed without a failed test is a failure", () => {
  expect(inShort(read(passed("TestA") + "exit status 1\nFAIL\ta\t0.010s\n"))).toEqual([
    "passed: a > TestA",
    "failed error: a > (package failed)",
  ]);
});

test("the last word is believed, where no test has failed", () => {
  expect(inShort(read(`${passed("TestA")}${ok("a")}FAIL\n`))).toEqual([
    "passed: a > TestA",
    "failed error: (failure without a test case)",
  ]);
});

test("a test that runs again is one with two attempts", () => {
  expect(inShort(read(failed("TestA") + passed("TestA") + fail("a")))).toEqual(["passed flaky, 2 attempts: a > TestA"]);
});

test("a package that did not build, beside one that passed, is a failure", () => {
  const build = "# b\nb/b.go:1:2: undefined: x\n";
  for (const text of [
    `${build}${passed("TestA")}${ok("a")}FAIL\tb [build failed]\nFAIL\n`,
    `${build}FAIL\tb [build failed]\nFAIL\n`,
  ])
    expect(inShort(read(text))).toContain("failed error: b > (build failed)");
});

describe("recognition", () => {
  test("lines of other programs may come first", () => {
    expect(inShort(read(`go: downloading x v1.0.0\n$ go test -v ./...\n${passed("TestA")}${ok("a")}`))).toEqual([
      "passed: a > TestA",
    ]);
  });

  test("a test that prints events of test2json is output", () => {
    const event = '{"Action":"pass","Package":"b","Test":"TestB"}\n';
    const text = `=== RUN   TestA\n${event}--- FAIL: TestA (0.00s)\n${fail("a")}`;
    expect(inShort(read(text))).toEqual(["failed failure: a > TestA"]);
  });

  test("a test that prints TAP is output, and TAP that quotes go is TAP", () => {
    expect(read(`=== RUN   TestA\nok 1 - x\n1..1\n--- PASS: TestA (0.00s)\n${ok("a")}`).format).toBe("go");
    expect(read(`TAP version 13\n# === RUN   TestA\nok 1 - a\n1..1\n`).format).toBe("tap");
  });

  test("a failed build before events belongs to them", () => {
    const text = `FAIL\tb [build failed]\n{"Action":"pass","Package":"a","Test":"TestA"}\n{"Action":"pass","Package":"a"}\n`;
    expect(inShort(read(text))).toEqual(["failed error: b > (build failed)", "passed: a > TestA"]);
  });

  test("output without -v is refused with the reason", () => {
    expect(() => read("ok  \ta\t0.010s\n")).toThrow("it is the output of go test without -v");
    expect(() => read("FAIL\ta\t0.010s\nFAIL\n")).toThrow("it is the output of go test without -v");
  });

  test("a log is not confused with it", () => {
    expect(() => read("2026-01-31 === RUN   TestA\nok\n")).toThrow("it is plain text");
  });
});
