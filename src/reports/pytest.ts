/** Code that the JSON formats of pytest share: names, and the exit status of a session. */

import { FAULT, toFault } from "./fields.ts";
import type { FailureKind, ReportedCase } from "./report.ts";
import { FAILED_TO_LOAD } from "./js_tools.ts";
import { type Cutter, cut, firstLine } from "./text.ts";

/** The names of tests by their ids, such as "tests/test_cart.py::TestCart::test_adds[1]". Keeps those of modules and classes. */
export function createPytestNames(): (nodeId: string) => { suite: string; name: string; file: string } {
  const known = new Map<string, { suite: string; file: string }>();
  let [last, location] = ["", toLocation("")];
  return (nodeId) => {
    // Parameters may hold anything.
    const open = nodeId.indexOf("[");
    const at = nodeId.lastIndexOf("::", open === -1 ? nodeId.length : open);
    const end = at === -1 ? nodeId.length : at;
    // The tests of a class follow each other.
    if (end !== last.length || !nodeId.startsWith(last)) {
      last = nodeId.slice(0, end);
      location = known.get(last) ?? toLocation(last);
      if (!known.has(last)) known.set(last, location);
    }
    return { suite: location.suite, name: at === -1 ? "" : nodeId.slice(at + 2), file: location.file };
  };
}

/** Builds suite and file like pytest's own JUnit XML: module and classes are joined with dots. */
function toLocation(address: string): { suite: string; file: string } {
  const [file = "", ...classes] = address.split("::");
  const module = file.replace(/\.py$/, "").replaceAll("/", ".");
  return { suite: [module, ...classes].join("."), file };
}

export function toPytestKind(isCall: boolean, message: string): FailureKind {
  if (/^Failed: Timeout\b|\bTimeoutError\b/.test(cut(firstLine(message), 300))) return "timeout";
  return isCall ? "failure" : "error";
}

const EXITS: Record<number, string> = {
  1: "Tests failed",
  2: "The session was interrupted",
  3: "pytest had an internal error",
  4: "pytest was used wrongly",
};
const NO_TESTS = 5;

/** A session that did not exit well is not green: one failed case where none of its cases has failed, else none. */
export function exitFaults(cutter: Cutter, exit: unknown, cases: ReportedCase[]): ReportedCase[] {
  const isEmpty = exit === NO_TESTS && cases.length === 0;
  if (exit === 0 || isEmpty || cases.some(({ status }) => status === "failed")) return [];
  const reason = typeof exit === "number" && Object.hasOwn(EXITS, exit) ? `: ${EXITS[exit]}` : "";
  const code = typeof exit === "number" ? `exited with ${exit}${reason}` : "did not say how it exited";
  return [toFault(cutter, { name: exit === 1 ? FAULT : "(session failed)", message: `pytest ${code}` })];
}

/** The last line that pytest marks as the error's. */
export const toLoadMessage = (text: string): string => {
  const at = text.lastIndexOf("\nE  ");
  return firstLine(at === -1 ? text : text.slice(at + 2)) || FAILED_TO_LOAD;
};
