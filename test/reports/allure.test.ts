import { expect, test } from "bun:test";
import { read } from "./reading.ts";

const result = (fields: object) => ({ uuid: "1", name: "adds", status: "passed", stage: "finished", ...fields });

test("results of one history are attempts in the order of their start, and the last one counts", () => {
  const failed = result({
    historyId: "h",
    status: "failed",
    start: 1_700_000_001_000,
    statusDetails: { message: "no" },
  });
  const passed = result({ historyId: "h", start: 1_700_000_002_000, stop: 1_700_000_002_500 });
  for (const files of [
    [failed, passed],
    [passed, failed],
  ])
    expect(read(...files).cases).toMatchObject([{ status: "passed", flaky: true, attempts: 2, message: "no" }]);
  expect(read({ ...failed, start: 1_700_000_003_000 }, passed).cases).toMatchObject([
    { status: "failed", flaky: false },
  ]);
});

test("without a history each result is a case of its own", () => {
  expect(read(result({}), result({})).cases).toHaveLength(2);
});

test.each([
  ["passed", "passed", null],
  ["failed", "failed", "failure"],
  ["broken", "failed", "error"],
  ["skipped", "skipped", null],
  ["unknown", "skipped", null],
] as const)("%s is %s", (status, expected, kind) => {
  expect(read(result({ status })).cases).toMatchObject([{ status: expected, kind }]);
});

test("labels make the suite, parameters tell runs of one test apart", () => {
  const labels = [
    { name: "parentSuite", value: "shop" },
    { name: "suite", value: "cart" },
    { name: "severity", value: "critical" },
    { name: "host", value: "builder" },
  ];
  const parameters = [
    { name: "n", value: "1" },
    { name: "seed", value: "99", excluded: true },
  ];
  expect(read(result({ labels, parameters })).cases).toMatchObject([
    { suite: "shop > cart", name: "adds [n=1]", properties: { severity: "critical", n: "1" } },
  ]);
});

test("beside results of Allure there may be reports of other formats", () => {
  expect(read(result({}), `<testsuite><testcase name="a"/></testsuite>`)).toMatchObject({ format: "mixed" });
});
