/** The JSON of behave, Cucumber for Python: like Cucumber's, but with results of its own. https://behave.readthedocs.io */

import { joinAttempts, toStepKind, toStepMessage } from "./cucumber_steps.ts";
import { asList, asText, type JsonObject, toCase, toFault, toFields, toTexts } from "./fields.ts";
import { type CaseStatus, type Report, type ReportedCase, ReportError } from "./report.ts";
import { createCutter, type Cutter, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

/** Its features have a result, and no address. */
export function isBehave(json: unknown): boolean {
  const feature = toFields(asList(json)[0]);
  const has = (key: string) => Object.hasOwn(feature, key);
  return ["keyword", "location", "status"].every(has) && !has("uri");
}

/** Throws a ReportError when it is no list, or there are too many scenarios. */
export function readBehave(json: unknown): Report {
  if (!Array.isArray(json)) throw new ReportError("it is not a list of features");
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const cases: ReportedCase[] = [];
  for (const feature of json.map(toFields)) {
    const own = readFeature(feature, cutter, unknown);
    for (const one of own) cases.push(one);
    if (cases.length > MAX_CASES) throw tooManyCases();
    const status = toStatus(feature.status);
    if (own.some((one) => one.status === "failed") || status === "passed" || status === "skipped") continue;
    const message = `The feature is ${JSON.stringify(asText(feature.status))}, but none of its scenarios failed`;
    cases.push(
      toFault(cutter, { ...toPlace(feature), name: "(feature failed)", message, suite: asText(feature.name) }),
    );
  }
  if (cases.length > MAX_CASES) throw tooManyCases();
  return {
    format: "behave",
    suite: null,
    cases,
    countsOnly: null,
    partial: false,
    durationMs: null,
    completedAt: null,
    context: {},
    warnings: [...unknown.warnings(), ...cutter.warnings()],
  };
}

function readFeature(feature: JsonObject, cutter: Cutter, unknown: UnknownResults): ReportedCase[] {
  const cases = new Map<string, ReportedCase>();
  // Rules hold scenarios as features do, and nest as deep as a client likes.
  const open = asList(feature.elements).map(toFields).reverse();
  for (let element = open.pop(); element; element = open.pop()) {
    if (Array.isArray(element.elements)) for (const one of element.elements.toReversed()) open.push(toFields(one));
    // Every scenario has the steps of the background among its own.
    if (element.type === "background" || element.type === "rule") continue;
    const result = readScenario(feature, element, cutter, unknown);
    const key = asText(element.location) ? `${asText(element.location)}\0${asText(element.name)}` : `${cases.size}`;
    const earlier = cases.get(key);
    cases.set(key, earlier ? joinAttempts(earlier, result) : result);
    if (cases.size > MAX_CASES) throw tooManyCases();
  }
  return [...cases.values()];
}

/** The results of steps, scenarios and features, since version 1.2. */
const STATUSES: Record<string, CaseStatus> = {
  ...{ passed: "passed", pending_warn: "passed", xfailed: "passed" },
  ...{ skipped: "skipped", untested: "skipped", untested_pending: "skipped", untested_undefined: "skipped" },
  ...{ failed: "failed", error: "failed", hook_error: "failed", cleanup_error: "failed", undefined: "failed" },
  ...{ pending: "failed", xpassed: "failed", executing: "failed" },
};

/** `null` for a word that behave does not have; without one, what did not run. */
function toStatus(word: unknown): CaseStatus | null {
  if (word === "passed") return word;
  const text = asText(word).toLowerCase();
  if (text === "") return "skipped";
  return Object.hasOwn(STATUSES, text) ? STATUSES[text]! : null;
}

const wordOf = (step: JsonObject): string => asText(toFields(step.result).status).toLowerCase();

function readScenario(feature: JsonObject, element: JsonObject, cutter: Cutter, unknown: UnknownResults): ReportedCase {
  const steps = asList(element.steps).map(toFields);
  const statuses = steps.map((step) => toStatus(wordOf(step)));
  const broken = steps.find((_, index) => statuses[index] !== "passed" && statuses[index] !== "skipped");
  const whole = toStatus(element.status);
  const odd =
    broken && toStatus(wordOf(broken)) === null ? wordOf(broken) : whole === null ? asText(element.status) : null;
  if (odd !== null) unknown.count(odd);
  const ran = steps.length > 0 && statuses.every((status) => status === "passed");
  const isFailed = broken !== undefined || whole === "failed" || whole === null;
  // Earlier versions write no result of a scenario.
  const isPassed = ran && (whole === "passed" || asText(element.status) === "");
  const stack = broken
    ? toTexts(toFields(broken.result).error_message).join("\n")
    : toTexts(element.error_message).join("\n");
  const text = broken && `${asText(broken.keyword).trim()} ${asText(broken.name)}`.trim();
  const { file, line } = toPlace(element);
  let seconds: number | null = null;
  for (const { result } of steps) {
    const { duration } = toFields(result);
    if (typeof duration === "number") seconds = (seconds ?? 0) + duration;
  }
  return toCase(cutter, {
    suite: asText(feature.name).trim(),
    name: asText(element.name),
    file,
    line,
    status: isFailed ? "failed" : isPassed ? "passed" : "skipped",
    kind: broken ? toKind(wordOf(broken), stack) : "error",
    durationMs: seconds === null ? null : toMs(seconds * 1000),
    message: broken
      ? toMessage(stack) || toStepMessage(false, wordOf(broken), text!)
      : isFailed
        ? toMessage(stack) || `The scenario is ${JSON.stringify(asText(element.status))}, but none of its steps failed`
        : null,
    stack,
    properties: [...toTexts(feature.tags), ...toTexts(element.tags)].map((tag): [string, string] => ["tag", `@${tag}`]),
  });
}

/** What a step raised is its error in Python's own words, and an assertion a failure. */
const toKind = (status: string, stack: string) =>
  status === "failed" && stack.startsWith("Traceback")
    ? toStepKind(true, status, stack)
    : toStepKind(false, status, stack);

/** The last line of a traceback says what was raised. */
function toMessage(stack: string): string {
  if (!stack.startsWith("Traceback")) return firstLine(stack);
  const last = stack.trimEnd();
  return last.slice(last.lastIndexOf("\n") + 1).trim();
}

/** "features/shop.feature:6" */
function toPlace({ location }: JsonObject): { file: string; line: string | null } {
  const text = asText(location);
  const at = text.lastIndexOf(":");
  return at === -1 ? { file: text, line: null } : { file: text.slice(0, at), line: text.slice(at + 1) };
}
