/** The JSON of behave, Cucumber for Python: like Cucumber's, but with results of its own. https://behave.readthedocs.io */

import { joinAttempts, toStepKind, toStepMessage } from "./cucumber_steps.ts";
import { asList, asText, type JsonObject, toCase, toFault, toFields, toTexts } from "./fields.ts";
import { type CaseStatus, type Report, type ReportedCase, ReportError } from "./report.ts";
import { createCutter, type Cutter, firstLine, MAX_CASES, parseCount, toMs, tooManyCases } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

/** Recognises behave's JSON: its features have a result, and no address. */
export function isBehave(json: unknown): boolean {
  const feature = toFields(asList(json)[0]);
  const has = (key: string) => Object.hasOwn(feature, key);
  return ["keyword", "location", "status"].every(has) && !has("uri");
}

/** Throws a ReportError when it is no list, or there are too many scenarios. */
export function readBehave(json: unknown): Report {
  if (!Array.isArray(json)) throw new ReportError("it is not a list of features");
  const reading: Reading = { cutter: createCutter(), unknown: createUnknownResults() };
  const { cutter, unknown } = reading;
  const cases: ReportedCase[] = [];
  for (const feature of json.map(toFields)) {
    const own = readFeature(feature, reading);
    for (const one of own) cases.push(one);
    if (cases.length > MAX_CASES) throw tooManyCases();
    const status = toStatus(feature.status);
    if (own.some((one) => one.status === "failed") || status === "passed" || status === "skipped") continue;
    const message = `The feature is ${JSON.stringify(asText(feature.status))}, but none of its scenarios failed`;
    cases.push(
      toFault(cutter, { ...toLocation(feature, ""), name: "(feature failed)", message, suite: asText(feature.name) }),
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

type Reading = { cutter: Cutter; unknown: UnknownResults };
type Feature = { name: string; file: string; tags: string[] };

function readFeature(fields: JsonObject, reading: Reading): ReportedCase[] {
  const feature = { name: asText(fields.name).trim(), file: toLocation(fields, "").file, tags: toTexts(fields.tags) };
  const cases = new Map<string, ReportedCase>();
  // Rules hold scenarios as features do.
  const open = asList(fields.elements).map(toFields).reverse();
  for (let element = open.pop(); element; element = open.pop()) {
    if (Array.isArray(element.elements)) for (const one of element.elements.toReversed()) open.push(toFields(one));
    // Every scenario has the steps of the background among its own.
    if (element.type === "background" || element.type === "rule") continue;
    const result = readScenario(feature, element, reading);
    let key = asText(element.location) || `\0${cases.size}`;
    let earlier = cases.get(key);
    // The scenarios of an outline may share a location. A key with the name for every scenario took a sixth of the time.
    if (earlier && earlier.name !== result.name) earlier = cases.get((key += `\0${result.name}`));
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

/** Returns `null` for an unknown word; a missing word means that the step did not run. */
function toStatus(word: unknown): CaseStatus | null {
  if (word === "passed") return word;
  const text = asText(word).toLowerCase();
  if (text === "") return "skipped";
  return Object.hasOwn(STATUSES, text) ? STATUSES[text]! : null;
}

const wordOf = (step: JsonObject): string => asText(toFields(step.result).status).toLowerCase();

type Steps = { broken: JsonObject | null; allPassed: boolean; durationMs: number | null };

/** `broken` is the first step that failed or has an unknown result. One loop without lists: scenarios have many steps. */
function readSteps(steps: readonly unknown[]): Steps {
  let broken: JsonObject | null = null;
  let passed = 0;
  let seconds: number | null = null;
  for (const one of steps) {
    const step = toFields(one);
    const { status, duration } = toFields(step.result);
    const own = toStatus(status);
    if (own === "passed") passed++;
    else if (own !== "skipped") broken ??= step;
    if (typeof duration === "number") seconds = (seconds ?? 0) + duration;
  }
  const allPassed = passed > 0 && passed === steps.length;
  return { broken, allPassed, durationMs: seconds === null ? null : toMs(seconds * 1000) };
}

function readScenario(feature: Feature, element: JsonObject, { cutter, unknown }: Reading): ReportedCase {
  const { broken, allPassed, durationMs } = readSteps(asList(element.steps));
  const whole = toStatus(element.status);
  const odd =
    broken && toStatus(wordOf(broken)) === null ? wordOf(broken) : whole === null ? asText(element.status) : null;
  if (odd !== null) unknown.count(odd);
  const isFailed = broken !== null || whole === "failed" || whole === null;
  // Earlier versions write no result of a scenario.
  const isPassed = allPassed && (whole === "passed" || asText(element.status) === "");
  const stack = toTexts(broken ? toFields(broken.result).error_message : element.error_message).join("\n");
  const text = broken && `${asText(broken.keyword).trim()} ${asText(broken.name)}`.trim();
  const { file, line } = toLocation(element, feature.file);
  return toCase(cutter, {
    suite: feature.name,
    name: asText(element.name),
    file,
    line,
    status: isFailed ? "failed" : isPassed ? "passed" : "skipped",
    kind: broken ? toKind(wordOf(broken), stack) : "error",
    durationMs,
    message: broken
      ? toMessage(stack) || toStepMessage(false, wordOf(broken), text!)
      : isFailed
        ? toMessage(stack) || `The scenario is ${JSON.stringify(asText(element.status))}, but none of its steps failed`
        : null,
    stack,
    properties: toProperties(feature.tags, toTexts(element.tags)),
  });
}

function toProperties(...lists: string[][]): [string, string][] {
  const pairs: [string, string][] = [];
  for (const tags of lists) for (const tag of tags) pairs.push(["tag", `@${tag}`]);
  return pairs;
}

/** An error that Python raised has a traceback as its text; an assertion is a failure. */
const toKind = (status: string, stack: string) =>
  status === "failed" && stack.startsWith("Traceback")
    ? toStepKind(true, status, stack)
    : toStepKind(false, status, stack);

/** Returns the exception in the last line of a traceback. */
function toMessage(stack: string): string {
  if (!stack.startsWith("Traceback")) return firstLine(stack);
  const last = stack.trimEnd();
  return last.slice(last.lastIndexOf("\n") + 1).trim();
}

/** "features/shop.feature:6"; a file that is `known` is not copied out of each location. */
function toLocation({ location }: JsonObject, known: string): { file: string; line: number | null } {
  const text = asText(location);
  const at = text.lastIndexOf(":");
  if (at === -1) return { file: text, line: null };
  const file = at === known.length && text.startsWith(known) ? known : text.slice(0, at);
  return { file, line: parseCount(text.slice(at + 1)) };
}
