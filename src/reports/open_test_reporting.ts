/** Open Test Reporting, as events and as a hierarchy, by JUnit 5.9 and PHPUnit 12 and later: https://github.com/ota4j-team/open-test-reporting */

import { child, elementsOf, named, textBelow, toCase, toFault } from "./fields.ts";
import { type CaseStatus, MAX_LEVELS, nestedTooDeeply, type Report, type ReportedCase } from "./report.ts";
import { createCutter, type Cutter, firstLine, localName, MAX_CASES, toMs, tooManyCases } from "./text.ts";
import { createUnknownResults, type UnknownResults } from "./unknown_results.ts";

type Node = Bun.XML.Node;

export const isOpenTestReporting = (root: string, head: string): boolean =>
  (root === "events" || root === "execution") && head.includes("https://schemas.opentest4j.org/reporting/");

/** A test or a container of tests. */
type Item = {
  parent: Item | undefined;
  name: string;
  hasChildren: boolean;
  /** The class or file that the item itself names. */
  className: string;
  file: string;
  isContainer: boolean;
  isMethod: boolean;
  startedAt: number;
  durationMs: number | null;
  /** The result; undefined if the item did not finish. */
  result: Node | undefined;
  hasFinished: boolean;
  output: string[];
};

/** Throws a ReportError if there are too many cases. */
export function readOpenTestReporting(root: Node): Report {
  const cutter = createCutter();
  const unknown = createUnknownResults();
  const { items, endedAt } = localName(root.name) === "events" ? readEvents(root) : readHierarchy(root);
  const failed = new Set<Item>();
  const cases: ReportedCase[] = [];
  // Children follow their parent, so they are read first.
  for (const item of items.toReversed()) {
    const status = statusOf(item, unknown);
    const isTest = !item.hasChildren && !(item.isContainer && status !== "skipped");
    // A container fails by itself in a method that runs before or after all of its tests.
    const isFault = !isTest && status === "failed" && !failed.has(item);
    if (isTest || isFault) cases.push(toTestCase(item, isFault ? null : status, cutter));
    if (cases.length > MAX_CASES) throw tooManyCases();
    if (item.parent && (failed.has(item) || status === "failed")) failed.add(item.parent);
  }
  const isCut = items.some(({ hasFinished }) => !hasFinished);
  return {
    format: "open_test_reporting",
    suite: null,
    cases: cases.reverse(),
    countsOnly: null,
    partial: isCut,
    durationMs: null,
    completedAt: endedAt > 0 ? new Date(endedAt) : null,
    context: {},
    warnings: [...unknown.warnings(), ...cutter.warnings()],
  };
}

function toItem(node: Node, parent: Item | undefined): Item {
  const sources = child(node, "sources");
  const attribute = (name: string) =>
    sources && elementsOf(sources).reduce((found, { attributes }) => found || (attributes[name] ?? ""), "");
  const type = textBelow(elementsOf(child(node, "metadata") ?? node).find(({ name }) => localName(name) === "type"));
  if (parent) parent.hasChildren = true;
  return {
    ...{ parent, name: node.attributes["name"] ?? "", hasChildren: false, isContainer: type === "CONTAINER" },
    className: attribute("className") ?? "",
    isMethod: Boolean(attribute("methodName")),
    file: attribute("path") ?? "",
    startedAt: Date.parse(node.attributes["time"] ?? node.attributes["start"] ?? ""),
    ...{ durationMs: null, result: undefined, hasFinished: false, output: [] },
  };
}

function readEvents(root: Node) {
  const items = new Map<string, Item>();
  let endedAt = 0;
  for (const event of elementsOf(root)) {
    const { id = "", parentId = "", time = "" } = event.attributes;
    const at = Date.parse(time);
    if (at > 0) endedAt = at;
    if (localName(event.name) === "started") items.set(id, toItem(event, items.get(parentId)));
    const item = items.get(id);
    if (!item) continue;
    item.output.push(...outputOf(event));
    if (localName(event.name) !== "finished") continue;
    Object.assign(item, {
      ...{ result: child(event, "result"), hasFinished: true, durationMs: toMs(at - item.startedAt) },
    });
  }
  return { items: [...items.values()], endedAt };
}

function readHierarchy(root: Node) {
  const items: Item[] = [];
  let endedAt = 0;
  const open = named(root, "root")
    .map((node) => ({ node, parent: undefined as Item | undefined, level: 1 }))
    .reverse();
  for (let one = open.pop(); one; one = open.pop()) {
    const { node, parent, level } = one;
    if (level > MAX_LEVELS) throw nestedTooDeeply("elements");
    const durationMs = toMs(msOf(node.attributes["duration"] ?? ""));
    const item = { ...toItem(node, parent), durationMs, result: child(node, "result"), hasFinished: true };
    item.output.push(...outputOf(node));
    items.push(item);
    endedAt = Math.max(endedAt, item.startedAt + (durationMs ?? 0) || 0);
    for (const inner of named(node, "child").toReversed()) open.push({ node: inner, parent: item, level: level + 1 });
  }
  return { items, endedAt };
}

/** Reads a duration of ISO 8601 such as PT1M0.25S. */
function msOf(duration: string): number | undefined {
  const found = /^PT(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?$/.exec(duration);
  return found ? 1000 * (3600 * Number(found[1] ?? 0) + 60 * Number(found[2] ?? 0) + Number(found[3] ?? 0)) : undefined;
}

const outputOf = (node: Node): string[] =>
  named(node, "attachments")
    .flatMap((list) => named(list, "output"))
    .map(textBelow);

const STATUSES: Record<string, CaseStatus> = {
  SUCCESSFUL: "passed",
  SKIPPED: "skipped",
  ABORTED: "skipped",
  FAILED: "failed",
  ERRORED: "failed",
};

/** Returns the status; a container may end without a result. */
function statusOf({ result, hasFinished, hasChildren }: Item, unknown: UnknownResults): CaseStatus {
  if (!hasFinished) return "failed";
  if (!result) return hasChildren ? "passed" : "failed";
  const word = result.attributes["status"] ?? "";
  if (Object.hasOwn(STATUSES, word)) return STATUSES[word]!;
  unknown.count(word);
  return "failed";
}

/** Creates a test case; `status` null: the item is a container. */
function toTestCase(item: Item, status: CaseStatus | null, cutter: Cutter): ReportedCase {
  const { result, output, durationMs, hasFinished } = item;
  const throwable = result && elementsOf(result).find((node) => localName(node.name) === "throwable");
  const reason = textBelow(child(result, "reason"));
  const stack = textBelow(throwable);
  const type = throwable?.attributes["type"] ?? "";
  const isError = result?.attributes["status"] === "ERRORED" || throwable?.attributes["assertionError"] === "false";
  const { name, ...names } = namesOf(item);
  const fields = {
    ...names,
    kind: /Time(?:d)?Out/i.test(type) ? "timeout" : isError || !hasFinished ? "error" : "failure",
    durationMs,
    message: reason || firstLine(stack) || (hasFinished ? type : "It did not finish"),
    stack,
    output: output.join("\n"),
  } as const;
  return status === null
    ? toFault(cutter, { ...fields, name: `(${name} failed)` })
    : toCase(cutter, { ...fields, name, status });
}

/** Returns the suite as in JUnit XML: the class, or the names of the items around it. */
function namesOf(item: Item): { suite: string; file: string; name: string } {
  let { className, file, name } = item;
  const names: string[] = [];
  for (let above = item.parent; above; above = above.parent) {
    className ||= above.className;
    file ||= above.file;
    // The outermost one is the engine or the configuration.
    if (above.parent) names.unshift(above.name);
    // Repetitions and parameters are inside their method.
    if (above.isMethod) name = `${above.name} ${name}`;
  }
  return { suite: className || names.join(" > "), file, name };
}
