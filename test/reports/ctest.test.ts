import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const run = (tests: string, list = "", generator = "ctest-3.25.1") =>
  `<Site Name="build-1" Generator="${generator}"><Testing><StartTestTime>1769811141</StartTestTime><TestList>${list}</TestList>` +
  `${tests}<EndTestTime>1769811143</EndTestTime></Testing></Site>`;
const measured = (name: string, value: string) =>
  `<NamedMeasurement type="text/string" name="${name}"><Value>${value}</Value></NamedMeasurement>`;
const one = (status: string, measurements: string, output = "<Value>out</Value>") =>
  `<Test Status="${status}"><Name>adds</Name><Path>./src/cart</Path><FullName>./src/cart/adds</FullName>` +
  `<Results>${measurements}<Measurement>${output}</Measurement></Results></Test>`;

test.each([
  ["passed", "", "passed", null],
  ["failed", measured("Exit Code", "Failed") + measured("Exit Value", "3"), "failed failure", "Exit value 3"],
  ["failed", measured("Exit Code", "SEGFAULT"), "failed error", "SEGFAULT"],
  ["failed", measured("Exit Code", "Timeout"), "failed timeout", "Timeout"],
  ["failed", "", "failed failure", "It failed"],
  ["notrun", measured("Completion Status", "Disabled"), "skipped", "Disabled"],
  [
    "notrun",
    measured("Completion Status", "SKIP_REGULAR_EXPRESSION_MATCHED"),
    "skipped",
    "SKIP_REGULAR_EXPRESSION_MATCHED",
  ],
  ["notrun", measured("Completion Status", "Unable to find executable"), "failed error", "out"],
  ["notrun", "", "failed error", "out"],
] as const)("%s with %p is %s", (status, measurements, outcome, message) => {
  const report = read(run(one(status, measurements)));
  expect(inShort(report)).toEqual([`${outcome}: src/cart > adds`]);
  expect(report.cases[0]!.message).toBe(message);
  expect(report.warnings).toEqual([]);
});

describe("compressed outputs", () => {
  const packed = (bytes: Uint8Array) =>
    one("failed", "", `<Value encoding="base64" compression="gzip">${Buffer.from(bytes).toString("base64")}</Value>`);

  test("may be of zlib or gzip", () => {
    for (const bytes of [deflateSync("größer"), gzipSync("größer")])
      expect(read(run(packed(bytes))).cases[0]!.stack).toBe("größer");
  });

  test("that are broken or unpack to more than is kept are left out, with a warning", () => {
    const bomb = deflateSync(Buffer.alloc(9 * 2 ** 20, 65));
    for (const bytes of [Buffer.from("no zlib"), deflateSync("größer").subarray(0, 8), bomb]) {
      const report = read(run(packed(bytes)));
      expect(report.cases[0]).toMatchObject({ status: "failed", stack: null });
      expect(report.warnings).toEqual(["Left out 1 compressed output: broken, or larger than is kept"]);
    }
  });

  test("of all tests are bounded together", () => {
    const large = packed(deflateSync(Buffer.alloc(7 * 2 ** 20, 65)));
    expect(read(run(large.repeat(12))).warnings).toContain(
      "Left out 3 compressed outputs: broken, or larger than is kept",
    );
  });
});

describe("no silent green", () => {
  const list = "<Test>./src/cart/adds</Test><Test>./src/cart/pays</Test>";

  test("a test that is listed and has no result is a failure, or a warning beside one", () => {
    const message = '1 listed test without a result, the first "./src/cart/pays"';
    const green = read(run(one("passed", ""), list));
    expect(inShort(green)).toEqual(["passed: src/cart > adds", "failed error: (test run did not finish)"]);
    expect(green.cases[1]!.message).toBe(message);
    const red = read(run(one("failed", ""), list));
    expect(inShort(red)).toEqual(["failed failure: src/cart > adds"]);
    expect(red.warnings).toEqual([message]);
  });
});
