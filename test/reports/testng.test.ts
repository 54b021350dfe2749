import { describe, expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const run = (methods: string, attributes = "") =>
  `<testng-results ${attributes}><reporter-output></reporter-output><suite name="shop" duration-ms="12" finished-at="2026-01-31T12:00:00Z">` +
  `<test name="unit"><class name="shop.CartTest">${methods}</class></test></suite></testng-results>`;
const method = (name: string, status: string, inner = "", attributes = "") =>
  `<test-method name="${name}" status="${status}" signature="${name}()" duration-ms="3" ${attributes}>${inner}</test-method>`;
const exception = (type: string) => `<exception class="${type}"><message><![CDATA[no]]></message></exception>`;

test.each([
  ["PASS", "", "passed"],
  ["FAIL", exception("java.lang.AssertionError"), "failed failure"],
  ["FAIL", exception("org.opentest4j.MultipleFailuresError"), "failed failure"],
  ["FAIL", exception("java.io.IOException"), "failed error"],
  ["FAIL", exception("java.util.concurrent.TimeoutException"), "failed timeout"],
  ["SKIP", exception("org.testng.SkipException"), "skipped"],
  ["SKIP", exception("shop.NotToday"), "skipped"],
  ["SUCCESS_PERCENTAGE_FAILURE", exception("java.lang.AssertionError"), "passed"],
  ["constructor", "", "failed failure"],
  ["", "", "failed failure"],
] as const)("%s with %p is %s", (status, inner, outcome) =>
  expect(inShort(read(run(method("adds", status, inner))))).toEqual([`${outcome}: shop.CartTest > adds`]),
);

describe("retries", () => {
  const retried = method("adds", "SKIP", exception("java.lang.AssertionError"), `retried="true"`);

  test("of version 7 say so, wherever they stand", () => {
    const passed = run(retried + method("adds", "PASS") + retried, `retried="2"`);
    expect(inShort(read(passed))).toEqual(["passed flaky, 3 attempts: shop.CartTest > adds"]);
    const failed = run(retried + method("adds", "FAIL"), `retried="1" failed="1"`);
    expect(inShort(read(failed))).toEqual(["failed failure, 2 attempts: shop.CartTest > adds"]);
  });

  test("without a last attempt have failed", () => {
    const report = read(run(retried + retried, `retried="2"`));
    expect(inShort(report)).toEqual(["failed failure, 2 attempts: shop.CartTest > adds"]);
  });

  test("are told apart from a test that runs several times, and from other parameters", () => {
    const params = (n: number) => `<params><param index="0"><value>${n}</value></param></params>`;
    const twice = run(method("a", "PASS") + method("a", "PASS") + method("b", "PASS", params(1)));
    expect(inShort(read(twice))).toHaveLength(3);
    const skip = method("b", "SKIP", params(1) + exception("x.E"), `retried="true"`);
    const other = run(skip + method("b", "PASS", params(2)), `retried="1"`);
    expect(inShort(read(other))).toEqual([
      "failed failure: shop.CartTest > b(1)".replace("failure", "error"),
      "passed: shop.CartTest > b(2)",
    ]);
  });
});

test("the addresses of objects are not in names", () => {
  const value = "<params><param><value><![CDATA[com.acme.Cart@1f2e3d, ada@example.com]]></value></param></params>";
  expect(read(run(method("adds", "PASS", value))).cases[0]!.name).toBe("adds(com.acme.Cart, ada@example.com)");
});

test("a configuration method that passed or was skipped is no test", () => {
  const config = `is-config="true"`;
  const report = read(
    run(method("adds", "PASS") + method("open", "PASS", "", config) + method("close", "SKIP", "", config)),
  );
  expect(inShort(report)).toEqual(["passed: shop.CartTest > adds"]);
});
