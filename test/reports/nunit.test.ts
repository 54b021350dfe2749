import { expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const run = (inner: string) =>
  `<test-run id="2" end-time="2026-01-31 12:00:02Z" duration="2.5"><test-suite type="Assembly" name="a.dll" fullname="/a.dll">${inner}</test-suite></test-run>`;
const fixture = (inner: string, attributes = "") =>
  `<test-suite type="TestFixture" name="CartTests" classname="Acme.CartTests" ${attributes}>${inner}</test-suite>`;
const one = (attributes: string, inner = "") =>
  read(run(fixture(`<test-case name="Adds" classname="Acme.CartTests" ${attributes}>${inner}</test-case>`))).cases[0]!;

test("a case of version 3 is read with its class, texts and properties", () => {
  const found = one(
    `result="Failed" duration="0.0123"`,
    `<properties><property name="Category" value="slow"/><property name="_PID" value="1"/></properties>
    <failure><message>no</message><stack-trace>at Acme</stack-trace></failure><output>hello</output>`,
  );
  expect(found).toMatchObject({
    suite: "Acme.CartTests",
    name: "Adds",
    status: "failed",
    kind: "failure",
    durationMs: 12,
    message: "no",
    stack: "at Acme",
    output: "hello",
    properties: { Category: "slow" },
  });
  expect(read(run(""))).toMatchObject({ durationMs: 2500, completedAt: new Date("2026-01-31T12:00:02Z") });
});

test.each([
  [`result="Passed"`, "passed", null],
  [`result="Warning"`, "passed", null],
  [`result="Failed" label="Error"`, "failed", "error"],
  [`result="Skipped" label="Ignored"`, "skipped", null],
  [`result="Inconclusive"`, "skipped", null],
  [`result="Success"`, "passed", null],
  [`result="Failure"`, "failed", "failure"],
  [`result="Error"`, "failed", "error"],
  [`result="NotRunnable"`, "skipped", null],
  [`executed="True" success="True"`, "passed", null],
  [`executed="True" success="False"`, "failed", "failure"],
  [`executed="False"`, "skipped", null],
] as const)("%p is %p", (attributes, status, kind) => expect(one(attributes)).toMatchObject({ status, kind }));

test("version 2 tells the class by its place and the case by its whole path", () => {
  const found = read(`<test-results name="a.dll" total="1"><test-suite type="Assembly" name="a.dll"><results>
    <test-suite type="Namespace" name="Acme"><results><test-suite type="TestFixture" name="CartTests"><results>
    <test-case name="Acme.CartTests.Adds" executed="True" result="Ignored"><reason><message>later</message></reason></test-case>
    </results></test-suite></results></test-suite></results></test-suite></test-results>`);
  expect(inShort(found)).toEqual(["skipped: Acme.CartTests > Adds"]);
  expect(found.cases[0]!.message).toBe("later");
});

test("a set-up that failed without a failed test is not green", () => {
  const failure = `<failure><message>no database</message></failure>`;
  const passed = `<test-case name="Adds" result="Passed"/>`;
  expect(inShort(read(run(fixture(failure + passed, `result="Failed" site="SetUp"`))))).toEqual([
    "passed: Acme.CartTests > Adds",
    "failed error: Acme.CartTests > (suite failed)",
  ]);
});

test.each([
  ["", "failure", "failure"],
  ["", "error", "error"],
  [`executed="True"`, "failure", "failure"],
  [`executed="False"`, "failure", "failure"],
  [`result="Passed"`, "failure", "failure"],
  [`result="Ignored" executed="False"`, "error", "error"],
])("a case %p with <%s> has failed", (attributes, element, kind) => {
  const found = one(attributes, `<${element}><message>no</message></${element}>`);
  expect(found).toMatchObject({ status: "failed", kind, message: "no" });
});

test("a case that was executed and says no more has passed", () => {
  expect(one(`executed="True" time="0.1"`)).toMatchObject({ status: "passed" });
  expect(one("")).toMatchObject({ status: "skipped" });
});

test("several unknown results count as failed, with a warning for each word", () => {
  const cases = ["Odd", "Odd", "toString"].map((result) => `<test-case name="a" result="${result}"/>`).join("");
  const { warnings, ...found } = read(run(fixture(cases)));
  expect(found.cases.map(({ status }) => status)).toEqual(["failed", "failed", "failed"]);
  expect(warnings).toEqual([
    'The result "Odd" is unknown: 2 test cases counted as failed',
    'The result "toString" is unknown: 1 test case counted as failed',
  ]);
});

const version2 = (attributes: string, cases: string, suite = "") =>
  read(
    `<test-results ${attributes}><test-suite name="Acme" ${suite}><results>${cases}</results></test-suite></test-results>`,
  );
const PASSED = `<test-case name="a" executed="True" success="True"/>`;

test("the counters of version 2 count the tests that did not run, or do not", () => {
  const ignored = `<test-case name="b" executed="False"/>`;
  expect(version2(`total="1" failures="0" not-run="1"`, PASSED + ignored).warnings).toEqual([]);
  expect(version2(`total="2" failures="0" not-run="1"`, PASSED + ignored).warnings).toEqual([]);
});

test('an inconclusive suite of version 2 is green, though it has success="False"', () => {
  const inconclusive = `<test-case name="a" executed="True" result="Inconclusive" success="False"/>`;
  expect(inShort(version2("", inconclusive, `result="Inconclusive" success="False"`))).toEqual(["skipped: Acme > a"]);
});

test("Pester's files are no suites", () => {
  const suite = (name: string, inside: string, type = "TestFixture") =>
    `<test-suite type="${type}" name="${name}"><results>${inside}</results></test-suite>`;
  const passed = (name: string) => `<test-case name="${name}" executed="True" success="True" result="Success"/>`;
  const file = "D:\\a\\shop\\shop\\tests\\Cart.Tests.ps1";
  const blocks = suite("Cart", passed("Cart.adds") + suite("Cart.price", passed("Cart.price 1"), "ParameterizedTest"));
  const inner = suite("Cart", suite("Cart.discounts", passed("Cart.discounts.halves")));
  const { cases } = read(`<test-results>${suite("Pester", suite(file, blocks + inner))}</test-results>`);
  expect(cases.map(({ suite, name }) => [suite, name])).toEqual([
    ["Cart", "adds"],
    ["Cart", "price 1"],
    ["Cart.discounts", "halves"],
  ]);
  expect(cases[0]!.file).toBe("D:/a/shop/shop/tests/Cart.Tests.ps1");
});
