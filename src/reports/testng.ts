/** The testng-results.xml of TestNG, versions 6 and 7: https://testng.org */

import { child, elementsOf, hiddenFailures, named, refuseForeign, textBelow, toCase, type RawCase } from "./fields.ts";
import type { CaseStatus, FailureKind, Report } from "./report.ts";
import { clean, createCutter, disagreement, localName, MAX_CASES, toMs, parseCount, tooManyCases } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

type Node = Bun.XML.Node;

/** One run of a test method. */
type Invocation = {
  /** Equal for runs with the same parameters on the same object: a retry repeats it. */
  key: string;
  isConfiguration: boolean;
  /** Whether the result failed and was retried: TestNG lists it as skipped. Before version 7, only its exception hints at this. */
  retry: "declared" | "assumed" | null;
  result: RawCase;
};

/** Throws a ReportError when there are too many cases. */
export function readTestng(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const invocations: Invocation[] = [];
  const suites = named(root, "suite");
  const declaresRetries = root.attributes["retried"] !== undefined;
  const tests = suites.flatMap((suite) => named(suite, "test"));
  for (const group of tests.flatMap((test) => named(test, "class"))) {
    for (const method of named(group, "test-method")) {
      if (invocations.length === MAX_CASES) throw tooManyCases();
      invocations.push(readMethod(method, group.attributes["name"] ?? "", declaresRetries, unknown));
    }
  }
  const results = mergeRetries(invocations.filter(({ isConfiguration }) => !isConfiguration));
  const cases = results.map((result) => toCase(cutter, result));
  const failed = parseCount(root.attributes["failed"]);
  const totals = disagreement({ passed: parseCount(root.attributes["passed"]), failed }, cases);
  // Configuration methods that passed are no tests, and TestNG does not count them.
  for (const { isConfiguration, result } of invocations)
    if (isConfiguration && result.status === "failed")
      cases.push(toCase(cutter, { ...result, kind: result.kind ?? "error" }));
  if (cases.length === 0) refuseForeign(root, SECTIONS);
  const durations = suites.map(({ attributes }) => toMsOf(attributes));
  const ends = suites.map(({ attributes }) => Date.parse(attributes["finished-at"] ?? ""));
  return {
    format: "testng",
    suite: suites.length === 1 ? cutter.cutOrNull("suite", suites[0]!.attributes["name"] ?? null) : null,
    cases: [...cases, ...hiddenFailures(cutter, failed, cases)],
    countsOnly: null,
    partial: false,
    durationMs: durations.includes(null) ? null : durations.reduce<number>((sum, ms) => sum + ms!, 0),
    completedAt:
      ends.length > 0 && ends.every((end) => end > 0) ? new Date(ends.reduce((a, b) => Math.max(a, b))) : null,
    context: {},
    warnings: [...totals, ...unknown.warnings(), ...cutter.warnings()],
  };
}

/** The elements of the root. */
const SECTIONS = new Set(["reporter-output", "suite"]);

const STATUSES: Record<string, CaseStatus> = {
  PASS: "passed",
  FAIL: "failed",
  SKIP: "skipped",
  // The method declares which percentage of its runs has to pass, and this failure is within it.
  SUCCESS_PERCENTAGE_FAILURE: "passed",
};

const toMsOf = ({ "duration-ms": ms }: Record<string, string>): number | null =>
  toMs(ms && /^\d{1,12}$/.test(ms) ? Number(ms) : undefined);

function readMethod(method: Node, suite: string, declaresRetries: boolean, unknown: UnknownResults): Invocation {
  const { name = "", status: word = "", signature = "", description } = method.attributes;
  const isConfiguration = method.attributes["is-config"] === "true";
  const isKnown = Object.hasOwn(STATUSES, word);
  if (!isKnown) unknown.count(word);
  const status = isKnown ? STATUSES[word]! : "failed";
  const elements = elementsOf(method);
  const exception = elements.find((node) => localName(node.name) === "exception");
  const type = exception?.attributes["class"] ?? "";
  const message = textBelow(child(exception, "message"));
  const trace = textBelow(child(exception, "full-stacktrace") ?? child(exception, "short-stacktrace"));
  const stack = trace || [type, message].filter(Boolean).join(": ");
  const parameters = readParameters(elements);
  const called = parameters.length > 0 ? `${name}(${parameters.join(", ")})` : name;
  return {
    key: `${suite}\n${signature}\n${called}`,
    isConfiguration,
    retry: status === "skipped" ? toRetry(method.attributes, type, declaresRetries) : null,
    result: {
      suite,
      name: isConfiguration ? `(configuration method ${name} failed)` : called,
      status,
      kind: toKind(type),
      durationMs: toMsOf(method.attributes),
      message: status === "passed" ? null : message || type,
      stack: status === "passed" ? null : stack,
      output: [readOutput(elements), status === "passed" ? stack : ""].filter(Boolean).join("\n"),
      properties: description ? [["description", description]] : [],
    },
  };
}

function toRetry({ retried }: Node["attributes"], exception: string, declaresRetries: boolean): Invocation["retry"] {
  if (retried === "true") return "declared";
  return !declaresRetries && exception !== "" && !SKIPS.has(exception) ? "assumed" : null;
}

/** Exceptions of tests that were skipped, by themselves or because of their dependencies. */
const SKIPS = new Set(["org.testng.SkipException", "java.lang.Throwable"]);

function toKind(type: string): FailureKind {
  if (/Time(?:d)?Out/i.test(type)) return "timeout";
  return type === "" || /Assert|ComparisonFailure|MultipleFailures/.test(type) ? "failure" : "error";
}

const ADDRESS = /@[\da-f]{1,8}\b/g;
const CLASS_NAME = /^(?:[a-z]\w*\.)+[\w$]+$/;
const MAX_CLASS_NAME = 200;

/** The text that Java makes of an object ends with its address, which is another in each run. */
const dropAddresses = (text: string): string =>
  text.replace(ADDRESS, (address, at: number) => {
    let from = at;
    while (from > at - MAX_CLASS_NAME && /[\w$.]/.test(text[from - 1] ?? "")) from--;
    return CLASS_NAME.test(text.slice(from, at)) ? "" : address;
  });

const readParameters = (elements: Node[]): string[] =>
  elements
    .filter(({ name }) => localName(name) === "params")
    .flatMap((list) => named(list, "param"))
    .map((param) => {
      const value = child(param, "value");
      return value?.attributes["is-null"] === "true" ? "null" : dropAddresses(clean(textBelow(value)));
    });

const readOutput = (elements: Node[]): string =>
  elements
    .filter(({ name }) => localName(name) === "reporter-output")
    .flatMap((output) => named(output, "line"))
    .map(textBelow)
    .join("\n");

/** A run that was retried is an attempt of the first other run with its key; without one, the test has failed. */
function mergeRetries(invocations: Invocation[]): RawCase[] {
  if (!invocations.some(({ retry }) => retry !== null)) return invocations.map(({ result }) => result);
  const finals = new Map<string, RawCase>();
  for (const { key, retry, result } of invocations) if (retry === null && !finals.has(key)) finals.set(key, result);
  const results: RawCase[] = [];
  for (const { key, retry, result } of invocations) {
    const final = retry === null ? undefined : finals.get(key);
    if (final) Object.assign(final, { attempts: (final.attempts ?? 1) + 1, flaky: final.status === "passed" });
    else if (retry === "declared") {
      finals.set(key, result);
      results.push(Object.assign(result, { status: "failed" }));
    } else results.push(result);
  }
  return results;
}
