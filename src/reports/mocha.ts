/** Mocha's JSON reporter: https://mochajs.org/#json */

import { hiddenFailures, type JsonObject, toCase, toFields, asList, asText } from "./fields.ts";
import { isMochaTimeout } from "./js_tools.ts";
import { type ReportedCase, type CaseStatus, type Report } from "./report.ts";
import { createCutter, type Cutter, disagreement, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";

/** Throws a ReportError when there are too many cases. */
export function readMocha(json: unknown): Report {
  const { stats, tests, pending, failures } = toFields(json);
  const cutter = createCutter();
  const list = asList(tests).map(toFields);
  const listed = new Set(list.map(toKey));
  // A hook that fails is no test, and stands among the failures alone.
  const hooks = asList(failures)
    .map(toFields)
    .filter((one) => !listed.has(toKey(one)));
  if (list.length + hooks.length > MAX_CASES) throw tooManyCases();
  const skipped = new Set(asList(pending).map(toFields).map(toKey));
  const failed = new Set(asList(failures).map(toFields).map(toKey));
  const cases = [
    ...list.map((one) => readTest(one, toStatus(one, skipped, failed), cutter)),
    ...hooks.map((one) => readTest(one, "failed", cutter)),
  ];
  const { end, duration, passes, failures: broken, pending: left } = toFields(stats);
  const ended = Date.parse(asText(end));
  const number = (count: unknown) => (typeof count === "number" && count >= 0 && count < 1e9 ? count : null);
  const declared = { passed: number(passes), failed: number(broken), skipped: number(left) };
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

/** What failed says so itself; what did not is skipped only when it is listed as that. */
function toStatus(test: JsonObject, skipped: Set<string>, failed: Set<string>): CaseStatus {
  if (Object.keys(toFields(test.err)).length > 0 && failed.has(toKey(test))) return "failed";
  if (skipped.has(toKey(test))) return "skipped";
  return failed.has(toKey(test)) ? "failed" : "passed";
}

function readTest(test: JsonObject, status: CaseStatus, cutter: Cutter): ReportedCase {
  const [title, fullTitle] = [asText(test.title), asText(test.fullTitle)];
  const { message, stack, code } = toFields(test.err);
  const retries = typeof test.currentRetry === "number" && test.currentRetry > 0 ? Math.trunc(test.currentRetry) : 0;
  const text = asText(stack) || asText(message);
  return toCase(cutter, {
    // The titles of the suites are joined with spaces, so that they cannot be told apart.
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
