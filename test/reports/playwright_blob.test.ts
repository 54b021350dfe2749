/** Blob reports of Playwright: the events, and the zip archive around them. */

import { describe, expect, test } from "bun:test";
import { crc32, deflateRawSync } from "node:zlib";
import { readReportBody } from "../../src/runner/upload.ts";
import { createMask } from "../../src/secrets/mask.ts";
import { fixtureBytes, inShort, read, readWith, refusalOf } from "./reading.ts";

type Event = [method: string, params?: object];
const lines = (...events: Event[]) =>
  [["onBlobReportMetadata", { version: 2 }] as Event, ...events]
    .map(([method, params]) => JSON.stringify({ method, params }))
    .join("\n");

const entry = (testId: string, title = testId) => ({ testId, title, location: { file: "a.spec.ts", line: 3 } });
const project = (...entries: object[]): Event => [
  "onProject",
  { project: { name: "p", suites: [{ title: "a.spec.ts", location: { file: "a.spec.ts" }, entries }] } },
];
const attempt = (testId: string, result: object, expectedStatus = "passed", id = `${testId}1`): Event[] => [
  ["onTestBegin", { testId, result: { id } }],
  ["onTestEnd", { test: { testId, expectedStatus }, result: { id, errors: [], ...result } }],
];
const ended = (status: string): Event => ["onEnd", { result: { status, startTime: 1_700_000_000_000, duration: 5 } }];

test("the outcome of a test is that of all its attempts", () => {
  const report = read(
    lines(
      project(...["passes", "flaky", "fails", "known", "skipped", "stopped", "never"].map((id) => entry(id))),
      ...attempt("passes", { status: "passed" }),
      ...attempt("flaky", { status: "failed" }),
      ...attempt("flaky", { status: "passed" }, "passed", "flaky2"),
      ...attempt("fails", { status: "timedOut" }),
      ...attempt("known", { status: "failed" }, "failed"),
      ...attempt("skipped", { status: "skipped" }, "skipped"),
      ["onTestBegin", { testId: "stopped", result: { id: "s" } }],
      ended("failed"),
    ),
  );
  expect(inShort(report)).toEqual([
    "passed: p > passes",
    "passed flaky, 2 attempts: p > flaky",
    "failed timeout: p > fails",
    "passed: p > known",
    "skipped: p > skipped",
    "failed failure: p > stopped",
    "skipped: p > never",
  ]);
  expect(report).toMatchObject({ format: "playwright_blob", partial: false, durationMs: 5 });
});

test("annotations, attachments and output that a test adds while it runs belong to it", () => {
  const [one] = read(
    lines(
      project({ ...entry("a"), tags: ["@fast"], annotations: [{ type: "issue", description: "#1" }] }),
      ["onTestBegin", { testId: "a", result: { id: "r" } }],
      ["onStdIO", { testId: "a", resultId: "r", type: "stdout", data: "b3V0", isBase64: true }],
      ["onStdIO", { testId: "a", resultId: "r", type: "stderr", data: "err" }],
      ["onAttach", { resultId: "r", attachments: [{ name: "x", contentType: "text/plain", base64: "YWJj" }] }],
      [
        "onTestEnd",
        {
          test: { testId: "a", expectedStatus: "passed" },
          result: { id: "r", status: "passed", annotations: [{ type: "owner", description: "me" }] },
        },
      ],
      ended("passed"),
    ),
  ).cases;
  expect(one).toMatchObject({
    output: "outerr",
    properties: { project: "p", tag: "fast", issue: "#1", owner: "me" },
    attachments: [{ name: "x", path: null, body: new TextEncoder().encode("abc") }],
  });
});

test("a run that did not end is partial, and one that failed without a failed test is red", () => {
  const passed = [project(entry("a")), ...attempt("a", { status: "passed" })];
  expect(read(lines(...passed))).toMatchObject({ partial: true });
  expect(inShort(read(lines(...passed, ended("interrupted"))))).toEqual([
    "passed: p > a",
    "failed error: (test run failed)",
  ]);
  const error = { message: "no server", location: { file: "setup.ts", line: 1 } };
  expect(read(lines(["onError", { error }], ended("failed"))).cases).toMatchObject([{ message: "no server" }]);
});

describe("the zip archive", () => {
  const EVENTS = Buffer.from(lines(project(entry("a")), ...attempt("a", { status: "passed" }), ended("passed")));

  function zip(name: string, content: Buffer, size = content.length, checksum = crc32(content)): Buffer {
    const packed = deflateRawSync(content);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(8, 4);
    fields.writeUInt32LE(checksum, 10);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(size, 18);
    fields.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), fields, Buffer.from(name), packed]);
    const central = [Buffer.from("PK\x01\x02\0\0"), fields, Buffer.alloc(14), Buffer.from(name)];
    const end = Buffer.alloc(22);
    end.write("PK\x05\x06");
    end.writeUInt16LE(1, 10);
    end.writeUInt32LE(local.length, 16);
    return Buffer.concat([local, ...central, end]);
  }

  test("is read, and one without a report is named", () => {
    expect(inShort(read(zip("report.jsonl", EVENTS)))).toEqual(["passed: p > a"]);
    expect(refusalOf(zip("report.xml", EVENTS))).toBe("it is a zip archive, not a test report");
  });

  test("is refused wherever it is cut, and where its content is not what it declares", () => {
    const whole = fixtureBytes("playwright_blob.zip");
    for (let end = 30; end < whole.length; end += 7)
      expect(refusalOf(whole.subarray(0, end))).toBe("its zip archive breaks off");
    const broken = "its zip archive is broken: report.jsonl";
    expect(refusalOf(zip("report.jsonl", EVENTS, EVENTS.length - 1))).toBe(broken);
    expect(refusalOf(zip("report.jsonl", EVENTS, EVENTS.length, 1))).toBe(broken);
    const misplaced = zip("report.jsonl", EVENTS);
    misplaced.writeUInt32LE(0xffffffff, misplaced.length - 6);
    expect(refusalOf(misplaced)).toBe("its zip archive is broken: its directory");
  });

  test("is sent by a runner as its events, so that secrets in it are hidden", async () => {
    const folder = `${import.meta.dir}/../fixtures`;
    const { body } = await readReportBody([`${folder}/playwright_blob.zip`], folder, createMask(["firefox"]));
    const { format, cases } = read(Buffer.from(body));
    expect([format, cases.length, cases[0]!.suite]).toEqual(["playwright_blob", 8, "***"]);
  });

  test("may not unpack to more than is accepted", () => {
    const bomb = zip("report.jsonl", Buffer.concat([EVENTS, Buffer.alloc(5_000_000, "\n")]));
    expect(bomb.length).toBeLessThan(10_000);
    expect(() => readWith({ maxInflatedBytes: 1_048_576 }, bomb)).toThrow("it is larger than 1 MiB");
    expect(() => readWith({ maxInflatedBytes: 1_048_576 }, zip("report.jsonl", bomb, 0xfffffff))).toThrow("1 MiB");
  });
});

test("a test that ends many times, each time with an annotation more, is read in linear time", () => {
  const annotation = (n: number) => ({ type: "issue", description: `#${n}` });
  const [begin, end] = attempt("a", { status: "passed" });
  const ends = Array.from({ length: 13_000 }, (_, n): Event => {
    const { test, result } = end![1] as { test: object; result: object };
    return ["onTestEnd", { test: { ...test, annotations: [annotation(n)] }, result: { ...result, attachments: [] } }];
  });
  const text = lines(project(entry("a")), begin!, ...ends, ended("passed"));
  const began = performance.now();
  expect(inShort(read(text))).toEqual(["passed: p > a"]);
  // Joined again at each event, they took 62 s.
  expect(performance.now() - began).toBeLessThan(3_000);
});
