/** The JSON of the reporter mochawesome, also merged by mochawesome-merge: https://github.com/adamgruber/mochawesome */

import { asList, asText, hiddenFailures, isObject, type JsonObject, toCase, toFields, asCount } from "./fields.ts";
import { parseLine } from "./json.ts";
import { isMochaTimeout } from "./js_tools.ts";
import type { CaseStatus, Report, ReportedCase } from "./report.ts";
import { createCutter, type Cutter, disagreement, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";
import type { WrittenAttachment } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

/** A suite and the fields inherited from the suites around it. */
type Frame = { suite: JsonObject; titles: string; file: string };

/** Throws a ReportError when there are too many cases. */
export function readMochawesome(json: unknown): Report {
  const { stats, results, suites } = toFields(json);
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const [tests, hooks]: [ReportedCase[], ReportedCase[]] = [[], []];
  // Before version 4 there is one root suite, whose fields have other names.
  const open = (Array.isArray(results) ? asList(results) : [suites])
    .map((suite): Frame => ({ suite: toFields(suite), titles: "", file: "" }))
    .reverse();
  for (let frame = open.pop(); frame; frame = open.pop()) {
    const { suite } = frame;
    const file = asText(suite.fullFile) || asText(suite.file) || frame.file;
    // Titles are joined like in Mocha's own JSON, so that a test has the same name in both formats.
    const titles = [frame.titles, asText(suite.title)].filter(Boolean).join(" ").slice(0, MAX_TITLES);
    for (const test of asList(suite.tests)) tests.push(readTest(toFields(test), titles, file, cutter, unknown));
    for (const hook of [...asList(suite.beforeHooks), ...asList(suite.afterHooks)].map(toFields))
      if (toStatus(hook) !== "passed" && toStatus(hook) !== "skipped")
        hooks.push(readTest(hook, titles, file, cutter, unknown));
    if (tests.length + hooks.length > MAX_CASES) throw tooManyCases();
    for (const inner of asList(suite.suites).toReversed()) open.push({ suite: toFields(inner), titles, file });
  }
  const { passes, failures, pending, skipped, other, end, duration } = toFields(stats);
  const cases = [...tests, ...hooks];
  const ended = Date.parse(asText(end));
  const left = asCount(pending) === null ? null : asCount(pending)! + (asCount(skipped) ?? 0);
  return {
    format: "mochawesome",
    suite: null,
    cases: [...cases, ...hiddenFailures(cutter, (asCount(failures) ?? 0) + (asCount(other) ?? 0), cases)],
    countsOnly: null,
    partial: false,
    durationMs: toMs(duration),
    completedAt: ended > 0 ? new Date(ended) : null,
    context: {},
    warnings: [
      ...disagreement({ passed: asCount(passes), failed: asCount(failures), skipped: left }, tests),
      ...unknown.warnings(),
      ...cutter.warnings(),
    ],
  };
}

/** Characters of joined titles, of which fewer are kept. */
const MAX_TITLES = 2_000;

/** `null` for a word that mochawesome does not have. */
function toStatus({ state, fail, pass, pending, err }: JsonObject): CaseStatus | null {
  if (state === "failed" || fail === true) return "failed";
  if (state === "pending" || pending === true) return "skipped";
  if (state === "passed" || pass === true) return Object.keys(toFields(err)).length > 0 ? "failed" : "passed";
  // Tests that did not run after a failed hook or after --bail.
  return state === undefined || state === null || state === "" || state === "skipped" ? "skipped" : null;
}

function readTest(
  test: JsonObject,
  titles: string,
  file: string,
  cutter: Cutter,
  unknown: UnknownResults,
): ReportedCase {
  const { message, estack, diff } = toFields(test.err);
  const status = toStatus(test);
  if (status === null) unknown.count(asText(test.state));
  const { texts, attachments } = readContext(test.context);
  const [text, stack] = [asText(message), asText(estack)];
  return toCase(cutter, {
    suite: titles,
    name: asText(test.title),
    file,
    status: status ?? "failed",
    kind: test.timedOut === true || isMochaTimeout(text) ? "timeout" : "failure",
    durationMs: toMs(test.duration),
    message: firstLine(text) || firstLine(stack),
    stack: [stack || text, asText(diff)].filter(Boolean).join("\n\n"),
    output: texts.join("\n"),
    attachments,
  });
}

const FILE = /\.(?:png|jpe?g|gif|webp|mp4|webm|zip|log|txt|json|html)$/i;

/** Reads what a test added with addContext: JSON of a text, of a title with a value, or of a list of these. */
function readContext(context: unknown): { texts: string[]; attachments: WrittenAttachment[] } {
  // A value that is not JSON is a text.
  const added = typeof context === "string" ? (parseLine(context) ?? context) : context;
  const all = Array.isArray(added) ? added : [added];
  const pairs = all.map((one): [string, string] =>
    isObject(one) ? [asText(one.title), asText(one.value)] : ["", asText(one)],
  );
  const isFile = (value: string) => FILE.test(value) && !value.includes("\n") && !/^https?:/.test(value);
  return {
    texts: pairs.filter(([, value]) => value && !isFile(value)).map((pair) => pair.filter(Boolean).join(": ")),
    attachments: pairs.filter(([, value]) => isFile(value)).map(([name, path]) => ({ name, path })),
  };
}
