/** Mocha's JSON reporter: https://mochajs.org/#json */

import { hiddenFailures, type JsonObject, toCase, toFields, asList, asText, asCount } from "./fields.ts";
import { isMochaTimeout } from "./js_tools.ts";
import { type ReportedCase, type CaseStatus, type Report } from "./report.ts";
import { createCutter, type Cutter, disagreement, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";

/** Throws a ReportError when there are too many cases. */
export function readMocha(json: unknown): Report {
  const { stats, tests, pending, failures } = toFields(json);
  const cutter = createCutter();
  const list = asList(tests).map(toFields);
  const listed = new Set(list.map(toKey));
  // A failed hook is no test, and is only listed among the failures.
  const hooks = asList(failures)
    .map(toFields)
    .filter((one) => !listed.has(toKey(one)));
  if (list.length + hooks.length > MAX_CASES) throw tooManyCases();
  const skipped = new Set(asList(pending).map(toFields).map(toKey));
  const failed = new Set(asList(failures).map(toFields).map(toKey));
  const silent = silentFailures(list, asList(failures).map(toFields));
  const cases = [
    ...list.map((one) => readTest(one, toStatus(one, { skipped, failed, silent }), cutter)),
    ...hooks.map((one) => readTest(one, "failed", cutter)),
  ];
  const { end, duration, passes, failures: broken, pending: left } = toFields(stats);
  const ended = Date.parse(asText(end));
  const declared = { passed: asCount(passes), failed: asCount(broken), skipped: asCount(left) };
  return {
    format: "mocha",
    suite: null,
    cases: [...cases, ...hiddenFailures(cutter, broken, cases)],
    countsOnly: null,
    partial: false,
    durationMs: toMs(duration),
    completedAt: ended > 0 ? new Date(ended) : null,
    context: {},
    warnings: [...disagreement(declared, cases), ...cutter.warnings()],
  };
}

const toKey = ({ file, fullTitle, title }: JsonObject): string =>
  `${asText(file)}\0${asText(fullTitle) || asText(title)}`;

const hasError = ({ err }: JsonObject): boolean => Object.keys(toFields(err)).length > 0;

/** Returns the names that have more failures listed than tests with an error: one of the tests without an error failed. */
function silentFailures(tests: readonly JsonObject[], failures: readonly JsonObject[]): Set<string> {
  const left = new Map<string, number>();
  for (const one of failures) left.set(toKey(one), (left.get(toKey(one)) ?? 0) + 1);
  for (const one of tests) if (hasError(one) && left.has(toKey(one))) left.set(toKey(one), left.get(toKey(one))! - 1);
  return new Set([...left].filter(([, count]) => count > 0).map(([key]) => key));
}

type Listed = Record<"skipped" | "failed" | "silent", Set<string>>;

/** A failed test has an error of its own, by which it differs from another one of its name; a skipped one is only listed. */
function toStatus(test: JsonObject, { skipped, failed, silent }: Listed): CaseStatus {
  const key = toKey(test);
  if (hasError(test) && failed.has(key)) return "failed";
  if (skipped.has(key)) return "skipped";
  return silent.has(key) ? "failed" : "passed";
}

function readTest(test: JsonObject, status: CaseStatus, cutter: Cutter): ReportedCase {
  const [title, fullTitle] = [asText(test.title), asText(test.fullTitle)];
  const { message, stack, code } = toFields(test.err);
  const retries = typeof test.currentRetry === "number" && test.currentRetry > 0 ? Math.trunc(test.currentRetry) : 0;
  const text = asText(stack) || asText(message);
  return toCase(cutter, {
    // The titles of the suites are joined with spaces, so they cannot be separated.
    suite: fullTitle.endsWith(title) ? fullTitle.slice(0, fullTitle.length - title.length).trim() : "",
    name: title || fullTitle,
    file: asText(test.file).replace(/^file:\/\//, ""),
    status,
    kind: code === "ERR_MOCHA_TIMEOUT" || isMochaTimeout(asText(message)) ? "timeout" : "failure",
    flaky: status === "passed" && retries > 0,
    attempts: 1 + Math.min(retries, 1_000),
    durationMs: toMs(test.duration),
    message: asText(message) || firstLine(text),
    stack: text,
  });
}
