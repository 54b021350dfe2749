/** Attachments that reports name or hold: of reports that real tools wrote for one failed comparison of pictures, and hostile ones. */

import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { readReport } from "../../src/reports/read.ts";
import type { Report } from "../../src/reports/report.ts";
import { attachmentInLine, read } from "./reading.ts";

const FOLDER = `${import.meta.dir}/../fixtures/attachments/out`;

function readFiles(names: readonly string[]): Report {
  const files = names.map((name) => ({ name, bytes: new Uint8Array(readFileSync(`${FOLDER}/${name}`)) }));
  return readReport(files, { maxInflatedBytes: 2 ** 26 });
}

const attachmentsOf = ({ cases }: Report): Record<string, string[]> =>
  Object.fromEntries(cases.map(({ name, attachments = [] }) => [name, attachments.map(attachmentInLine)]));

test("CTRF names files of the test, of its earlier attempts, and may hold a screenshot", () => {
  const test = {
    ...{ name: "a", status: "failed", screenshot: `data:image/jpeg;base64,${btoa("picture")}` },
    attachments: [{ name: "log", contentType: "text/plain", path: "a.log" }],
    retryAttempts: [{ attempt: 1, status: "failed", attachments: [{ name: "first", path: "first.log" }] }],
  };
  const [one] = read({ results: { tool: { name: "t" }, summary: {}, tests: [test] } }).cases;
  expect(one!.attachments!.map(attachmentInLine)).toEqual([
    "first at first.log",
    "log (text/plain) at a.log",
    'screenshot (image/jpeg) "picture"',
  ]);
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
  expect(one!.attachments!.map(attachmentInLine)).toEqual([
    'first (text/plain) "first"',
    'second (text/plain) "second"',
  ]);
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
  expect(report.attachments!.map(attachmentInLine)).toEqual(["server.log at server.log"]);
  expect(report.cases[0]!.attachments!.map(attachmentInLine)).toEqual(["a.png at a.png"]);
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
