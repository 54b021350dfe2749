import { expect, test } from "bun:test";
import { inShort, read } from "./reading.ts";

const assembly = (tests: string, more = "", attributes = "") =>
  `<assemblies><assembly name="a.dll" time="1.5" ${attributes}>${more}<collection name="c">${tests}</collection></assembly></assemblies>`;
const one = (attributes: string, inner = "") =>
  read(assembly(`<test name="Acme.CartTests.Adds(n: 1)" type="Acme.CartTests" ${attributes}>${inner}</test>`))
    .cases[0]!;

test("a test is read with its class, place, texts and traits", () => {
  const found = one(
    `result="Fail" time="0.25" source-file="/src/CartTests.cs" source-line="12"`,
    `<failure exception-type="Acme.SoldOut"><message>sold out</message><stack-trace>at Acme.Cart.Add()</stack-trace></failure>
    <output>hello</output><traits><trait name="Category" value="slow"/></traits>`,
  );
  expect(found).toMatchObject({
    ...{ suite: "Acme.CartTests", name: "Adds(n: 1)", file: "/src/CartTests.cs", line: 12 },
    ...{ status: "failed", kind: "failure", durationMs: 250, message: "sold out" },
    ...{ stack: "Acme.SoldOut: sold out\nat Acme.Cart.Add()", output: "hello", properties: { Category: "slow" } },
  });
});

test.each([
  ["Pass", "passed"],
  ["Fail", "failed"],
  ["Skip", "skipped"],
  ["NotRun", "skipped"],
] as const)("%s is %s", (result, status) => expect(one(`result="${result}"`).status).toBe(status));

test("a reason is the message of what was skipped", () => {
  expect(one(`result="Skip"`, `<reason>later</reason>`).message).toBe("later");
});

test("errors of fixtures and of the assembly are failed cases", () => {
  const errors = `<errors><error type="class-cleanup-failure" name="Acme.CartTests"><failure><message>no</message></failure></error></errors>`;
  expect(inShort(read(assembly(`<test name="a" type="" result="Pass"/>`, errors)))).toEqual([
    "passed: a",
    "failed error: Acme.CartTests > (class-cleanup-failure failed)",
  ]);
});

test("one assembly may be the root", () => {
  const found = read(`<assembly time="1"><class><test name="a" result="Pass"/></class></assembly>`);
  expect(found).toMatchObject({ durationMs: 1000, format: "xunit", cases: [{ name: "a" }], warnings: [] });
});

test("a test that holds a failure has failed", () => {
  expect(one(`result="Pass"`, `<failure><message>no</message></failure>`)).toMatchObject({ status: "failed" });
});
