/** The JSON of Newman, which runs collections of Postman: https://github.com/postmanlabs/newman */

import {
  asList,
  asText,
  hiddenFailures,
  isObject,
  type JsonObject,
  toCase,
  toEpochMs,
  toFault,
  toFields,
  asCount,
} from "./fields.ts";
import type { Report, ReportedCase } from "./report.ts";
import { addTitle, createCutter, type Cutter, disagreement, firstLine, MAX_CASES, toMs, tooManyCases } from "./text.ts";

/** Throws a ReportError when there are too many cases. */
export function readNewman(json: unknown): Report {
  const { collection, run } = toFields(json);
  const { executions, failures, stats, timings, error } = toFields(run);
  const cutter = createCutter();
  const folders = toFolders(toFields(collection));
  const open = groupFailures(asList(failures).map(toFields));
  const [assertions, others]: [ReportedCase[], ReportedCase[]] = [[], []];
  for (const execution of asList(executions).map(toFields)) {
    const item = toFields(execution.item);
    const frame: Frame = {
      suite: [...(folders.get(asText(item.id)) ?? []), asText(item.name)].filter(Boolean).join(" > "),
      durationMs: toMs(toFields(execution.response).responseTime),
    };
    const mine = open.get(asText(toFields(execution.cursor).ref)) ?? [];
    for (const assertion of asList(execution.assertions))
      assertions.push(readAssertion(toFields(assertion), frame, cutter));
    others.push(...readErrors(execution, mine, frame, cutter));
    if (assertions.length + others.length > MAX_CASES) throw tooManyCases();
  }
  // Failures that no execution shows.
  const rest = [...open.values()].flat().filter((one) => !isAssertion(one));
  others.push(...rest.slice(0, MAX_CASES).map((one) => readFailure(one, toFrame(one, folders), cutter)));
  if (isObject(error)) others.push(readFailure({ at: "run", error }, { suite: "", durationMs: null }, cutter));
  if (assertions.length + others.length > MAX_CASES) throw tooManyCases();
  const { started, completed } = toFields(timings);
  const [began, ended] = [toEpochMs(started), toEpochMs(completed)];
  const { total, failed } = toFields(toFields(stats).assertions);
  const cases = [...assertions, ...others];
  const declared = Object.values(toFields(stats)).reduce<number>(
    (sum, one) => Math.max(sum, asCount(toFields(one).failed) ?? 0),
    0,
  );
  return {
    format: "newman",
    suite: cutter.cutOrNull("suite", asText(toFields(toFields(collection).info).name)),
    cases: [...cases, ...hiddenFailures(cutter, Math.max(declared, asList(failures).length), cases)],
    countsOnly: null,
    partial: false,
    durationMs: began !== null && ended !== null ? toMs(ended - began) : null,
    completedAt: ended === null ? null : new Date(ended),
    context: {},
    warnings: [...disagreement({ tests: asCount(total), failed: asCount(failed) }, assertions), ...cutter.warnings()],
  };
}

type Frame = { suite: string; durationMs: number | null };

const isAssertion = ({ at }: JsonObject): boolean => asText(at).startsWith("assertion:");

/** Names of the folders around each request, by its id. */
function toFolders({ item: items }: JsonObject): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const open = [{ items: asList(items), names: [] as string[] }];
  for (let folder = open.pop(); folder; folder = open.pop()) {
    for (const { id, name, item } of folder.items.map(toFields)) {
      if (Array.isArray(item)) open.push({ items: item, names: addTitle(folder.names, asText(name)) });
      else found.set(asText(id), folder.names);
    }
  }
  return found;
}

/** Groups failures by the execution that they belong to. */
function groupFailures(failures: JsonObject[]): Map<string, JsonObject[]> {
  const groups = new Map<string, JsonObject[]>();
  for (const failure of failures) {
    const ref = asText(toFields(failure.cursor).ref);
    const group = groups.get(ref);
    if (group) group.push(failure);
    else groups.set(ref, [failure]);
  }
  return groups;
}

function toFrame({ source }: JsonObject, folders: Map<string, string[]>): Frame {
  const { id, name } = toFields(source);
  return { suite: [...(folders.get(asText(id)) ?? []), asText(name)].filter(Boolean).join(" > "), durationMs: null };
}

function readAssertion({ assertion, skipped, error }: JsonObject, frame: Frame, cutter: Cutter): ReportedCase {
  const isFailed = error !== undefined && error !== null && error !== false;
  const { name, message, stack } = toFields(error);
  return toCase(cutter, {
    ...frame,
    name: asText(assertion),
    status: isFailed ? "failed" : skipped === true ? "skipped" : "passed",
    kind: asText(name) === "AssertionError" ? "failure" : "error",
    message: isFailed ? asText(message) || asText(error) || asText(name) : null,
    stack: asText(stack),
  });
}

const ERRORS: [field: string, at: string][] = [
  ["requestError", "request"],
  ["prerequestScript", "prerequest-script"],
  ["testScript", "test-script"],
];

/** Returns failures outside of assertions, and removes their duplicates from `failures`. */
function readErrors(execution: JsonObject, failures: JsonObject[], frame: Frame, cutter: Cutter): ReportedCase[] {
  const cases: ReportedCase[] = [];
  for (const [field, at] of ERRORS) {
    const written = Array.isArray(execution[field]) ? execution[field] : [{ error: execution[field] }];
    for (const { error } of written.map(toFields).filter((one) => isObject(one.error))) {
      const index = failures.findIndex((one) => one.at === at);
      // The failure has the message of an error of which the execution has only the code.
      const failure = index === -1 ? { at, error } : failures.splice(index, 1)[0]!;
      cases.push(readFailure(failure, frame, cutter));
    }
  }
  return cases;
}

function readFailure({ at, error }: JsonObject, frame: Frame, cutter: Cutter): ReportedCase {
  const { name, code, message, stack } = toFields(error);
  const reason = asText(message) || asText(error) || asText(code) || asText(name);
  const isTimeout = /TIMEDOUT$/.test(asText(code)) || /timed out|timeout/i.test(reason.slice(0, 300));
  return toFault(cutter, {
    ...frame,
    name: `(${asText(at).replace("-", " ") || "run"} failed)`,
    kind: isTimeout ? "timeout" : "error",
    message: firstLine([asText(name), reason].filter((text) => text && text !== "Error").join(": ")) || "It failed",
    stack: asText(stack),
  });
}
