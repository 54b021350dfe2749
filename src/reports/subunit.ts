/** The packets of subunit, version 2: https://github.com/testing-cabal/subunit */

import { toCase, toFault } from "./fields.ts";
import { type ReportedCase, type CaseStatus, type Report, ReportError } from "./report.ts";
import { type Packet, readPackets } from "./subunit_packets.ts";
import { clean, createCutter, type Cutter, decode, firstLine, MAX_CASES, plural, toMs, tooManyCases } from "./text.ts";

type Test = {
  name: string;
  status: CaseStatus | null;
  isListed: boolean;
  isUnexpected: boolean;
  attempts: number;
  hasFailed: boolean;
  began: number | null;
  ended: number | null;
  tags: Set<string>;
  /** Texts by their names, in their order; their bytes together. */
  files: Map<string, Buffer[]>;
  kept: number;
};

/** Status numbers: 0 says nothing. */
const [EXISTS, IN_PROGRESS, UNEXPECTED_SUCCESS] = [1, 2, 4];
const STATUSES: Record<number, CaseStatus> = { 3: "passed", 4: "failed", 5: "skipped", 6: "failed", 7: "passed" };
/** Maximum bytes of output that are kept from the files of a test. */
const MAX_FILES_BYTES = 2 ** 20;

/** Throws a ReportError when the bytes are none, list tests without their results, or hold too many. */
export function readSubunit(bytes: Uint8Array | null): Report {
  if (bytes === null) throw new ReportError("it holds no packet of subunit version 2");
  const tests = new Map<string, Test>();
  let [began, ended] = [Number.POSITIVE_INFINITY, 0];
  const { fault, foreign } = readPackets(bytes, (packet) => {
    const { test, timeMs } = packet;
    if (timeMs !== null) [began, ended] = [Math.min(began, timeMs), Math.max(ended, timeMs)];
    if (test !== null) apply(packet, enter(tests, test));
    if (tests.size > MAX_CASES) throw tooManyCases();
  });
  return toReport([...tests.values()], { fault, foreign, began, ended });
}

type Stream = { fault: string | null; foreign: number; began: number; ended: number };

function toReport(tests: Test[], { fault, foreign, began, ended }: Stream): Report {
  if (tests.length > 0 && fault === null && tests.every(({ isListed, attempts }) => isListed && attempts === 0))
    throw new ReportError("it lists test cases without their results");
  const cutter = createCutter();
  // These fixtures have results, and the tests that they keep from running have none.
  const closed = new Set(
    tests
      .filter(({ status, name }) => status !== null && status !== "passed" && /^setUp(?:Class|Module) \(/.test(name))
      .map(({ name }) => name.slice(name.indexOf("(") + 1, -1)),
  );
  const cases = tests.map((test) => toResult(test, closed, cutter));
  if (fault !== null)
    cases.push(toFault(cutter, { name: "(stream is broken)", message: `The stream breaks at ${fault}` }));
  return {
    format: "subunit",
    suite: null,
    cases,
    countsOnly: null,
    partial: fault !== null,
    durationMs: ended > 0 ? toMs(ended - began) : null,
    completedAt: ended > 0 ? new Date(ended) : null,
    context: {},
    warnings: [
      ...(foreign > 0 ? [`Left out ${plural(foreign, "byte")} outside of packets`] : []),
      ...cutter.warnings(),
    ],
  };
}

function enter(tests: Map<string, Test>, name: string): Test {
  const known = tests.get(name);
  if (known) return known;
  const test: Test = {
    ...{
      name,
      status: null,
      isListed: false,
      isUnexpected: false,
      attempts: 0,
      hasFailed: false,
      began: null,
      ended: null,
    },
    ...{ tags: new Set<string>(), files: new Map<string, Buffer[]>(), kept: 0 },
  };
  tests.set(name, test);
  return test;
}

function apply({ status, timeMs, tags, mime, file }: Packet, test: Test): void {
  if (status === EXISTS) test.isListed = true;
  // A test that had a result runs once more.
  if (status === IN_PROGRESS) {
    test.attempts++;
    [test.status, test.began, test.kept] = [null, timeMs, 0];
    test.files.clear();
  }
  for (const tag of tags) if (test.tags.size < 100) test.tags.add(tag);
  if (file?.bytes.length && /^text\/|^$/.test(mime) && test.kept + file.bytes.length <= MAX_FILES_BYTES) {
    test.kept += file.bytes.length;
    const parts = test.files.get(file.name);
    if (parts) parts.push(file.bytes);
    else test.files.set(file.name, [file.bytes]);
  }
  const result = STATUSES[status];
  if (result === undefined) return;
  test.attempts = Math.max(1, test.attempts);
  Object.assign(test, { status: result, ended: timeMs, isUnexpected: status === UNEXPECTED_SUCCESS });
  test.hasFailed ||= result === "failed";
}

const MAX_DOTS = 100;

/** Whether a module or class around a test is among those. */
function isInside(name: string, prefixes: Set<string>): boolean {
  let dot = name.indexOf(".");
  for (let count = 0; dot !== -1 && count < MAX_DOTS; count++, dot = name.indexOf(".", dot + 1))
    if (prefixes.has(name.slice(0, dot))) return true;
  return false;
}

function toResult(test: Test, closed: Set<string>, cutter: Cutter): ReportedCase {
  const { name, attempts, began, ended, isUnexpected } = test;
  const isClosed = attempts === 0 && isInside(name, closed);
  const status = test.status ?? (isClosed ? "skipped" : "failed");
  const missing = attempts === 0 ? "It was listed, but has no result" : "It did not finish";
  const texts = new Map([...test.files].map(([file, parts]) => [file, clean(decode(Buffer.concat(parts))).trim()]));
  const traces = [...texts].filter(([file]) => file.startsWith("traceback")).map(([, text]) => text);
  const output = [...texts].filter(([file]) => !file.startsWith("traceback") && file !== "reason");
  const stack = traces.join("\n\n");
  const unexpected = isUnexpected ? "It passed, although it is expected to fail" : "";
  // The last line of a traceback names the exception.
  const last = firstLine(/[^\n]*$/.exec(stack)?.[0] ?? "");
  const dot = name.lastIndexOf(".", /[([{]/.exec(name)?.index);
  return toCase(cutter, {
    suite: dot > 0 ? clean(name.slice(0, dot)) : "",
    name: clean(name.slice(dot > 0 ? dot + 1 : 0)),
    status,
    kind:
      test.status === null || (last !== "" && !/Mismatch|Assert|^(?:\w+\.)*failureException/.test(last))
        ? "error"
        : "failure",
    flaky: status === "passed" && test.hasFailed,
    attempts: Math.max(1, attempts),
    durationMs: began !== null && ended !== null ? toMs(ended - began) : null,
    message: test.status === null ? missing : status === "passed" ? null : texts.get("reason") || last || unexpected,
    stack: status === "failed" ? stack : null,
    output: [...(status === "failed" ? [] : traces), ...output.map(([, text]) => text)].filter(Boolean).join("\n"),
    properties: [...test.tags].map((tag) => ["tag", tag]),
  });
}
