/** The report of pytest-json-report: https://github.com/numirias/pytest-json-report */

import { asList, asText, isObject, type JsonObject, toCase, toEpochMs, toFault, toFields } from "./fields.ts";
import { FAILED_TO_LOAD } from "./js_tools.ts";
import { createPytestNames, exitFaults, toLoadMessage, toPytestKind } from "./pytest.ts";
import type { CaseStatus, Report, ReportedCase } from "./report.ts";
import {
  createCutter,
  type Cutter,
  disagreement,
  firstLine,
  MAX_CASES,
  msFromSeconds,
  toMs,
  tooManyCases,
} from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

/** Throws a ReportError when there are too many cases. */
export function readPytestJson(json: unknown): Report {
  const { tests, collectors, summary, exitcode, created, duration } = toFields(json);
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const declared = toDeclared(toFields(summary));
  const isSummary = tests === undefined && (declared.tests ?? 0) > 0;
  const list = asList(tests).map(toFields);
  const loads = asList(collectors)
    .map(toFields)
    .filter(({ outcome }) => outcome !== "passed");
  if (list.length + loads.length >= MAX_CASES) throw tooManyCases();
  const reading = { toNames: createPytestNames(), cutter, unknown };
  const cases = list.map((test) => readTest(test, reading));
  const all = [...cases, ...loads.map((one) => readCollector(one, cutter))];
  const ended = toEpochMs(created);
  return {
    format: "pytest_json",
    suite: null,
    cases: isSummary ? [] : [...all, ...exitFaults(cutter, exitcode, all)],
    countsOnly: isSummary ? toCounts(declared, exitcode) : null,
    partial: false,
    durationMs: msFromSeconds(duration),
    completedAt: ended === null ? null : new Date(ended),
    context: {},
    warnings: [
      ...(isSummary || declared.tests === null ? [] : disagreement(declared, cases)),
      ...unknown.warnings(),
      ...cutter.warnings(),
    ],
  };
}

type Declared = { tests: number | null; failed: number; skipped: number };

function toDeclared({ total, failed, error, skipped, xfailed }: JsonObject): Declared {
  const number = (count: unknown) => (typeof count === "number" && count >= 0 && count < 1e9 ? Math.trunc(count) : 0);
  return {
    tests: typeof total === "number" ? number(total) : null,
    failed: number(failed) + number(error),
    skipped: number(skipped) + number(xfailed),
  };
}

/** Returns the totals of a report made with --json-report-summary, which lists no tests. */
function toCounts({ tests, failed, skipped }: Declared, exitcode: unknown): NonNullable<Report["countsOnly"]> {
  const passed = Math.max(0, (tests ?? 0) - failed - skipped);
  return { passed, failed: exitcode === 0 ? failed : Math.max(1, failed), skipped };
}

const STATUSES: Record<string, CaseStatus> = {
  ...{ passed: "passed", xpassed: "passed", rerun: "passed", skipped: "skipped", xfailed: "skipped" },
  ...{ failed: "failed", error: "failed" },
};

type Reading = { toNames: ReturnType<typeof createPytestNames>; cutter: Cutter; unknown: UnknownResults };

function readTest(test: JsonObject, { toNames, cutter, unknown }: Reading): ReportedCase {
  const stages = [toFields(test.setup), toFields(test.call), toFields(test.teardown)];
  const outcome = asText(test.outcome);
  let failed = NONE;
  let odd = isKnown(outcome) ? undefined : outcome;
  let seconds: number | null = null;
  let output = "";
  for (const stage of stages) {
    if (stage.outcome === "failed") failed = [...failed, stage];
    else if (!isKnown(stage.outcome ?? "passed")) odd ??= asText(stage.outcome);
    if (typeof stage.duration === "number") seconds = (seconds ?? 0) + stage.duration;
    output += toOutput(stage);
  }
  if (odd !== undefined) unknown.count(odd);
  const status = failed.length > 0 || odd !== undefined ? "failed" : STATUSES[outcome]!;
  const shown = status === "skipped" ? stages.filter((stage) => stage.outcome === "skipped") : failed;
  const text = shown.length === 0 ? "" : shown.map((stage) => asText(stage.longrepr)).join("\n\n");
  const message = asText(toFields(shown[0]?.crash).message);
  const isRerun = outcome === "rerun" && status === "passed";
  const { suite, name, file } = toNames(asText(test.nodeid));
  return toCase(cutter, {
    suite,
    name,
    file,
    // pytest counts lines from 0.
    line: typeof test.lineno === "number" ? test.lineno + 1 : null,
    status,
    kind: status === "failed" ? toPytestKind(stages[1]!.outcome === "failed", message || text) : null,
    // The report does not contain the number of reruns.
    flaky: isRerun,
    attempts: isRerun ? 2 : 1,
    durationMs: seconds === null ? null : toMs(seconds * 1000),
    message: message || (status === "skipped" ? toReason(text) : firstLine(text)),
    stack: status === "failed" ? text : null,
    output,
    properties: toProperties(test),
  });
}

const NONE: readonly JsonObject[] = [];
const isKnown = (outcome: unknown): boolean => typeof outcome === "string" && Object.hasOwn(STATUSES, outcome);

/** "('/home/dev/test_cart.py', 18, 'Skipped: not yet')" */
const toReason = (text: string): string => {
  const reason = text.slice(text.indexOf("Skipped: ") + "Skipped: ".length);
  return text.includes("Skipped: ") ? reason.replace(/['"]\)\s*$/, "") : firstLine(text);
};

function toOutput({ stdout, stderr, log }: JsonObject): string {
  if (stdout === undefined && stderr === undefined && log === undefined) return "";
  let output = asText(stdout) + asText(stderr);
  if (log === undefined) return output;
  for (const { levelname, msg } of asList(log).map(toFields)) output += `${asText(levelname)} ${asText(msg)}\n`;
  return output;
}

function toProperties({ user_properties, metadata }: JsonObject): [string, string][] | undefined {
  if (user_properties === undefined && metadata === undefined) return undefined;
  const pairs = [...asList(user_properties), metadata].filter(isObject).flatMap((one) => Object.entries(one));
  return pairs
    .map(([key, value]): [string, string] => [asText(key), asText(value)])
    .filter(([, value]) => value !== "");
}

/** A module that does not load, or that skips itself as a whole. */
function readCollector({ nodeid, outcome, longrepr }: JsonObject, cutter: Cutter): ReportedCase {
  const [file, text] = [asText(nodeid).split("::")[0]!, asText(longrepr)];
  const message = outcome === "skipped" ? toReason(text) : toLoadMessage(text);
  if (outcome === "skipped") return toCase(cutter, { name: "(file skipped)", file, status: "skipped", message });
  return toFault(cutter, { name: FAILED_TO_LOAD, file, message, stack: text });
}
