import { describe, expect, test } from "bun:test";
import { GREEN_REPORTS } from "./green_reports.ts";
import { inShort, read } from "./reading.ts";

const green = GREEN_REPORTS.libtest!;
const begin = (count: number) => ({ type: "suite", event: "started", test_count: count });
const end = (more: object = {}) => ({
  type: "suite",
  event: "ok",
  passed: 1,
  failed: 0,
  ignored: 0,
  measured: 0,
  ...more,
});
const suite = (...events: (object | string)[]) =>
  [begin(1), ...events].map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
const one = (event: object, last: object = end()) =>
  read(suite({ type: "test", event: "started", name: "m::a" }, { type: "test", name: "m::a", ...event }, last));

describe("a test", () => {
  test.each([
    ["ok", "passed", null],
    ["failed", "failed failure", ""],
    ["ignored", "skipped", null],
    ["allowed_failure", "skipped", null],
  ])("with the event %s is %s", (event, expected) => {
    expect(inShort(one({ event }, end({ event: event === "failed" ? "failed" : "ok" })))[0]).toBe(`${expected}: m > a`);
  });

  test("without an end failed, as a timeout where libtest says that it runs for long", () => {
    expect(one({ event: "timeout" }).cases[0]).toMatchObject({ status: "failed", kind: "timeout" });
    expect(one({ event: "timeout", name: "other" }).cases[0]).toMatchObject({ status: "failed", kind: "error" });
  });

  test("that is measured passed", () => {
    const report = read(
      suite({ type: "bench", name: "m::b", median: 9, deviation: 1 }, end({ passed: 0, measured: 1 })),
    );
    expect(inShort(report)).toEqual(["passed: m > b"]);
    expect(report.warnings).toEqual([]);
  });

  test("has the message of its panic, as Rust before 1.73 writes it too", () => {
    const stdout = "thread 'm::a' panicked at 'no stock', src/lib.rs:3:5\nnote: run with RUST_BACKTRACE=1\n";
    expect(one({ event: "failed", stdout }).cases[0]!.message).toBe("no stock");
  });

  test("that prints no line end has its event on the same line", () => {
    const report = read(
      suite(
        '{ "type": "test", "event": "started", "name": "a" }',
        'hello{ "type": "test", "name": "a", "event": "ok" }',
        end(),
      ),
    );
    expect(inShort(report)).toEqual(["passed: a"]);
  });
});

test("the reports of nextest are read, with its retries and suites that are mixed", () => {
  const nextest = (test_binary: string) => ({ nextest: { crate: "shop", test_binary, kind: "test" } });
  const name = (binary: string, test: string) => `shop::${binary}$${test}`;
  const report = read(
    suite(
      { ...begin(2), ...nextest("cart") },
      { ...begin(1), ...nextest("bank") },
      { type: "test", event: "started", name: name("cart", "m::a") },
      { type: "test", event: "started", name: name("bank", "b") },
      { type: "test", event: "ok", name: name("bank", "b"), exec_time: 0.1 },
      { type: "test", event: "ok", name: name("cart", "m::a#2"), exec_time: 0.2 },
      { type: "test", event: "started", name: name("cart", "c") },
      { type: "test", event: "failed", name: name("cart", "c#3"), stdout: "no" },
      { ...end({ event: "ok" }), ...nextest("bank") },
      { ...end({ event: "failed", failed: 1 }), ...nextest("cart") },
    ).replace(/^.*\n/, ""),
  );
  expect(report).toMatchObject({ partial: false, warnings: [] });
  expect(inShort(report)).toEqual([
    "passed flaky, 2 attempts: shop::cart > m > a",
    "failed failure, 3 attempts: shop::cart > c",
    "passed: shop::bank > b",
  ]);
});

test("a test that runs again is one flaky test", () => {
  const event = (event: string) => ({ type: "test", event, name: "m::a" });
  const report = read(suite(event("started"), event("failed"), event("started"), event("ok"), end()));
  expect(inShort(report)).toEqual(["passed flaky, 2 attempts: m > a"]);
});

test("an end with a number of attempts joins the test that ended before", () => {
  const event = (event: string, name: string) => ({ type: "test", event, name });
  const report = read(suite(event("started", "b$a"), event("failed", "b$a"), event("ok", "b$a#2"), end()));
  expect(inShort(report)).toEqual(["passed flaky, 2 attempts: b$a"]);
});

test("a test that runs again is one flaky test, also where another test is lost", () => {
  const runs = ["started", "failed", "started", "ok"].map((event) => ({ type: "test", event, name: "m::a" }));
  const report = read([begin(2), ...runs, end({ passed: 2 })].map((one) => JSON.stringify(one)).join("\n"));
  expect(inShort(report)).toEqual(["passed flaky, 2 attempts: m > a"]);
  expect(report.warnings).toEqual([
    "The report declares 2 tests, 2 passed, 0 failed, 0 skipped, but its test cases are 1 test, 1 passed, 0 failed, 0 skipped",
  ]);
});

test("a binary that cargo starts and that writes nothing is a failure", () => {
  const running = "     Running tests/cart.rs (target/debug/deps/cart-0123456789abcdef)";
  const report = read(`${green}\n${running}\n`);
  expect(inShort(report).at(-1)).toBe("failed error: cart > (suite did not finish)");
});

test("a report that broke off is not green, wherever it did", () => {
  expect(read(`${green}\n{ "type": "suite", "ev`).partial).toBe(true);
});
