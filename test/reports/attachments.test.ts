/** Attachments that reports name or hold: of reports that real tools wrote for one failed comparison of pictures, and hostile ones. */

import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { readReport } from "../../src/reports/read.ts";
import type { Report, ReportAttachment } from "../../src/reports/report.ts";
import { read } from "./reading.ts";

const FOLDER = `${import.meta.dir}/../fixtures/attachments/out`;

function readFiles(names: readonly string[]): Report {
  const files = names.map((name) => ({ name, bytes: new Uint8Array(readFileSync(`${FOLDER}/${name}`)) }));
  return readReport(files, { maxInflatedBytes: 2 ** 26 });
}

/** One text for each attachment: "cart-diff.png (image/png) at /home/…", or with the text that the report holds. */
function inWords({ name, path, contentType, body }: ReportAttachment): string {
  const held =
    body && (contentType === "image/png" ? `${body.length} bytes` : JSON.stringify(Buffer.from(body).toString()));
  return [name, contentType && `(${contentType})`, path && `at ${path}`, held].filter(Boolean).join(" ");
}

const attachmentsOf = ({ cases }: Report): Record<string, string[]> =>
  Object.fromEntries(cases.map(({ name, attachments = [] }) => [name, attachments.map(inWords)]));

test("Playwright's JSON names files by absolute path, of all attempts, and holds others", () => {
  const results = "/home/dev/shop/test-results";
  const cart = (folder: string) => [
    `cart-actual.png (image/png) at ${results}/${folder}/cart-actual.png`,
    `cart-diff.png (image/png) at ${results}/${folder}/cart-diff.png`,
    `screenshot (image/png) at ${results}/${folder}/test-failed-1.png`,
    `error-context (text/markdown) at ${results}/${folder}/error-context.md`,
    `trace (application/zip) at ${results}/${folder}/trace.zip`,
  ];
  const article = `${results}/cart-adds-an-article`;
  const report = readFiles(["playwright.json"]);
  expect(attachmentsOf(report)).toEqual({
    "shows the cart": [
      "cart-expected.png (image/png) at /home/dev/shop/tests/cart.spec.ts-snapshots/cart-linux.png",
      ...cart("cart-shows-the-cart"),
      ...cart("cart-shows-the-cart-retry1"),
    ],
    "adds an article": [
      'request.json (application/json) "{\\"article\\":1}"',
      `server log (text/plain) at ${article}/attachments/server-log-75758932e806d6c360b5609f49179a525e98043d.log`,
      `screenshot (image/png) at ${article}/test-failed-1.png`,
      `error-context (text/markdown) at ${article}/error-context.md`,
      `trace (application/zip) at ${article}/trace.zip`,
      'request.json (application/json) "{\\"article\\":1}"',
    ],
    "empties the cart": ['note (text/plain) "all is well"'],
  });
  expect(report.cases.flatMap(({ properties }) => Object.keys(properties ?? {}))).not.toContain("attachment");
});

test("Playwright's JUnit XML names files relative to the report", () => {
  const { "shows the cart": paths = [] } = attachmentsOf(readFiles(["junit.xml"]));
  expect(paths.slice(0, 3)).toEqual([
    "cart-linux.png at ../tests/cart.spec.ts-snapshots/cart-linux.png",
    "cart-actual.png at ../test-results/cart-shows-the-cart/cart-actual.png",
    "cart-diff.png at ../test-results/cart-shows-the-cart/cart-diff.png",
  ]);
  expect(paths).toHaveLength(11);
});

test("CTRF names files of the test, of its earlier attempts, and may hold a screenshot", () => {
  expect(attachmentsOf(readFiles(["ctrf.json"]))["shows the cart"]).toContain(
    "cart-diff.png (image/png) at /home/dev/shop/test-results/cart-shows-the-cart-retry1/cart-diff.png",
  );
  const test = {
    ...{ name: "a", status: "failed", screenshot: `data:image/jpeg;base64,${btoa("picture")}` },
    attachments: [{ name: "log", contentType: "text/plain", path: "a.log" }],
    retryAttempts: [{ attempt: 1, status: "failed", attachments: [{ name: "first", path: "first.log" }] }],
  };
  const [one] = read({ results: { tool: { name: "t" }, summary: {}, tests: [test] } }).cases;
  expect(one!.attachments!.map(inWords)).toEqual([
    "first at first.log",
    "log (text/plain) at a.log",
    'screenshot (image/jpeg) "picture"',
  ]);
});

test("Cucumber's JSON holds files, and its logs are output", () => {
  const [one] = readFiles(["cucumber.json"]).cases;
  expect(one!.attachments!.map(inWords)).toEqual([
    "attachment (image/png) 200 bytes",
    'attachment (application/json) "{\\"items\\":0}"',
    'attachment (text/plain) "teardown"',
  ]);
  expect(one!.output).toBe("the cart is empty");
});

test("a retried scenario has the files of all attempts", () => {
  const scenario = (status: string, data: string) => ({
    id: "a",
    name: "a",
    line: 1,
    type: "scenario",
    steps: [{ result: { status }, embeddings: [{ data: btoa(data), media: { type: "text/plain" }, name: data }] }],
  });
  const [one] = read([
    { uri: "a.feature", elements: [scenario("failed", "first"), scenario("passed", "second")] },
  ]).cases;
  expect(one!.flaky).toBe(true);
  expect(one!.attachments!.map(inWords)).toEqual(['first (text/plain) "first"', 'second (text/plain) "second"']);
});

test("Allure's results name files beside them, also in steps, of all attempts", () => {
  const results = readdirSync(`${FOLDER}/allure-results`).filter((name) => name.endsWith(".json"));
  const of = attachmentsOf(readFiles(results.map((name) => `allure-results/${name}`)));
  expect(of["shows the cart"]).toContain(
    "cart-expected.png (image/png) at 89a6adc1-a351-43e3-b23a-3ea0aa993224-attachment.png",
  );
  expect(of["adds an article"]!.filter((one) => one.startsWith("request.json"))).toEqual([
    "request.json (application/json) at 602c9a57-58b6-4eda-9c05-5e37da1ee419-attachment.json",
    "request.json (application/json) at 7e1378cf-a4e3-4234-8f5a-4185542cd97c-attachment.json",
  ]);
});

test("the output of a JUnit suite names files of the report as a whole", () => {
  const report = read(
    `<testsuites><testsuite name="s"><testcase name="a"><system-err>[[ATTACHMENT|a.png]]</system-err></testcase>
     <system-out>[[ATTACHMENT|server.log]]</system-out></testsuite></testsuites>`,
  );
  expect(report.attachments!.map(inWords)).toEqual(["server.log at server.log"]);
  expect(report.cases[0]!.attachments!.map(inWords)).toEqual(["a.png at a.png"]);
  expect(read(`<testsuite name="s"><testcase name="a"/></testsuite>`).attachments).toBeUndefined();
});

const playwright = (attachments: unknown) => {
  const tests = [{ status: "unexpected", results: [{ status: "failed", attachments }] }];
  const suites = [{ title: "a", file: "a", specs: [{ title: "t", tests }] }];
  return { config: {}, suites, stats: {}, errors: [] };
};

test("what names nothing, or names it twice, is left out without a word", () => {
  const twice = [
    { name: "a", path: "a" },
    { name: "again", path: "a" },
  ];
  const { cases, warnings } = read(playwright([null, 5, {}, { name: "empty" }, ...twice, { path: {}, body: 5 }]));
  expect(cases[0]!.attachments).toEqual([{ name: "a", path: "a", contentType: null, body: null }]);
  expect(warnings).toEqual([]);
  expect(read(playwright([{ name: "empty" }])).cases[0]!.attachments).toBeUndefined();
});

test("their number, their paths and what a report holds of them are bounded, with one warning", () => {
  const many = Array.from({ length: 150 }, (_, index) => ({ name: `${index}`, path: `${index}.png` }));
  const left = (count: number) => [
    `Left out ${count === 1 ? "1 attachment" : `${count} attachments`}: at most 100 of a test case, paths of 1,000 characters, and 50 MiB within the report are kept`,
  ];
  const crowded = read(playwright(many));
  expect(crowded.cases[0]!.attachments).toHaveLength(100);
  expect(crowded.warnings).toEqual(left(50));
  const long = read(playwright([{ name: "n".repeat(5_000), path: "p".repeat(1_001) }]));
  expect([long.cases[0]!.attachments, long.warnings]).toEqual([undefined, left(1)]);
  const junit = read(
    `<testsuite><testcase name="a"><system-out>${"[[ATTACHMENT|".repeat(100_000)}</system-out></testcase></testsuite>`,
  );
  expect(junit.cases[0]!.attachments).toBeUndefined();
});

test("what a report holds beyond 50 MiB is left out", () => {
  const body = Buffer.alloc(20 * 2 ** 20).toString("base64");
  const files = ["a", "b", "c"].map((name) => ({ name, body }));
  const { cases, warnings } = read(playwright(files));
  expect(cases[0]!.attachments!.map(({ name, body }) => [name, body?.length])).toEqual([
    ["a", 20 * 2 ** 20],
    ["b", 20 * 2 ** 20],
  ]);
  expect(warnings[0]).toStartWith("Left out 1 attachment: ");
});
