/** Compares the totals and failures that JUnit suites declare with the cases found in them. */

import { FAULT } from "./fields.ts";
import type { CaseStatus, ReportedCase } from "./report.ts";
import { cut, describeTotals, plural } from "./text.ts";

type Counted = { tests: number; failed: number; skipped: number };

/** The totals that a suite declares, and those found in it. */
export type SuiteTotals = {
  /** The enclosing suite; for a root, the tally of everything around all roots. */
  outer: SuiteTotals | null;
  name: string;
  attributes: Record<string, string>;
  all: Counted;
  /** Totals of the cases that are directly in the suite. */
  direct: Counted;
  /** Totals of these cases, and of suites directly inside as one item each. Node counts this way. */
  items: Counted;
  /** Number of failures shown: a case may show several, also if it has not failed. */
  shown: number;
  /** Number of failed suites inside. */
  red: number;
  /** Failures outside of any case. */
  outsideFailures: { count: number; message: string; texts: string[] };
  /** Failures that node counts in a comment at the end: `<!-- fail 1 -->`. */
  comments: number;
  /** Failures of inner suites: those that each declares, or else those found in it. */
  declaredInside: number;
  /** Failures counted in `all` that suites declare and no test case shows: they stand until the root has ended. */
  unshown: number;
  /** Cases that passed according to the known words. */
  odd: ReportedCase[];
  /** The first case of its own; null: it has none, or cases of several files, classes or packages. */
  first: ReportedCase | null | undefined;
  /** The time of the cases of its own, and of the suites inside. */
  casesMs: number;
  insideMs: number;
};

/** Creates the tally of a suite, or without `outer` that of everything around all roots. */
export function createTally(
  attributes: SuiteTotals["attributes"],
  name: string,
  outer: SuiteTotals | null,
): SuiteTotals {
  return {
    outer,
    name,
    attributes,
    all: { tests: 0, failed: 0, skipped: 0 },
    direct: { tests: 0, failed: 0, skipped: 0 },
    items: { tests: 0, failed: 0, skipped: 0 },
    shown: 0,
    red: 0,
    outsideFailures: { count: 0, message: "", texts: [] },
    comments: 0,
    declaredInside: 0,
    unshown: 0,
    odd: [],
    first: undefined,
    casesMs: 0,
    insideMs: 0,
  };
}

/** A test case of the suite itself: the time of the suite is that of a file, class or package if all its cases are of the same. */
export function noteUnit(tally: SuiteTotals, one: ReportedCase): void {
  tally.casesMs += one.durationMs ?? 0;
  if (tally.first === undefined) tally.first = one;
  else if (tally.first && (tally.first.file !== one.file || (one.file === null && tally.first.suite !== one.suite)))
    tally.first = null;
}

/** The suite has ended: what it took without the suites inside is the time of its file, class or package. */
export function takeUnitTime({ first, casesMs, insideMs, outer }: SuiteTotals, ms: number | null): void {
  // Less than what is inside is no time of the suite.
  if (ms !== null && first && ms >= insideMs) first.unitMs = ms - insideMs;
  if (outer) outer.insideMs += ms ?? casesMs + insideMs;
}

/** A test case, which tells of so many failures, whatever it made of them. */
export function countCase(tally: SuiteTotals, status: CaseStatus, failures: number): void {
  for (const counts of [tally.all, tally.direct, tally.items]) {
    counts.tests++;
    if (status !== "passed") counts[status]++;
  }
  tally.shown += Math.max(failures, status === "failed" ? 1 : 0);
}

/** If the suite declares more failed or skipped cases than were found, cases with unknown words are counted as these. */
function settleOdd({ odd, all, direct, items, shown, outer }: SuiteTotals, declared: Declared): SuiteTotals["odd"] {
  if (odd.length === 0) return odd;
  const lacksSkipped = (declared.skipped ?? 0) + (declared.disabled ?? 0) > all.skipped;
  const status = (declared.failed ?? 0) > shown ? "failed" : lacksSkipped ? "skipped" : null;
  if (status === null) {
    outer?.odd.push(...odd);
    return [];
  }
  const message = `The totals of its suite count it as ${status}`;
  for (const one of odd)
    Object.assign(one, { status, kind: status === "failed" ? "failure" : null, message: one.message ?? message });
  for (const counts of [all, direct, items]) counts[status] += odd.length;
  return odd;
}

/** A failure of the suite itself, outside of any case. */
export function countOutsideFailure(tally: SuiteTotals, message: string | null, text: string): void {
  const { outsideFailures, all, direct, items } = tally;
  outsideFailures.message ||= cut(message ?? "", MAX_OUTSIDE_LENGTH);
  if (outsideFailures.texts.length < MAX_OUTSIDE_FAILURES)
    outsideFailures.texts.push(cut(text || (message ?? ""), MAX_OUTSIDE_LENGTH));
  outsideFailures.count++;
  for (const counts of [all, direct, items]) counts.failed++;
  tally.shown++;
}

/** Reads the count that node writes in a comment at the end of a report. */
export function countComment(tally: SuiteTotals, comment: string): void {
  const count = /^\s*(?:fail|cancelled) (\d{1,9})\s*$/.exec(comment)?.[1];
  if (count !== undefined) tally.comments += Number(count);
}

/** Adds the totals of an inner suite that has ended. */
function countSuite(tally: SuiteTotals, inner: SuiteTotals): void {
  for (const key of ["tests", "failed", "skipped"] as const) tally.all[key] += inner.all[key];
  tally.items.tests++;
  if (inner.shown > 0) tally.items.failed++;
  if (inner.all.skipped > 0) tally.items.skipped++;
  tally.shown += inner.shown;
  tally.red += inner.red + (inner.all.failed > 0 ? 1 : 0);
  tally.unshown += inner.unshown;
  tally.declaredInside += toDeclared(inner).failed ?? Math.max(inner.declaredInside, inner.all.failed - inner.unshown);
}

/** Failures of one suite, and characters of each: more is not kept of a message or a stack. */
const MAX_OUTSIDE_FAILURES = 100;
const MAX_OUTSIDE_LENGTH = 65_536;
/** Suites. */
const MAX_WARNED_SUITES = 5;

/** Compares the totals that suites declare, from the inside out, and collects warnings. */
export function createTotals() {
  const root: string[] = [];
  const inner: string[] = [];
  let more = 0;
  let lacksFailures = false;
  // A suite may declare the failure of a test in another suite, so this is only decided at the end of the root.
  let pending: LocatedFault[] = [];
  const settle = (tally: SuiteTotals, { failed }: Declared): LocatedFault[] => {
    const faults = pending;
    pending = [];
    const { all, unshown, declaredInside } = tally;
    const shown = all.failed - unshown;
    if (faults.length === 0 || shown === 0 || (failed ?? declaredInside) > shown) return faults;
    [all.failed, tally.shown, tally.unshown] = [shown, tally.shown - unshown, 0];
    return [];
  };
  const warn = (tally: SuiteTotals, declared: Declared) => {
    const warning = describeOddTotal(tally) ?? describeDisagreement(tally, declared);
    if (warning === null) return;
    if (isTop(tally) && root.length < MAX_WARNED_SUITES) root.push(warning);
    else if (inner.length < MAX_WARNED_SUITES) inner.push(warning);
    else more++;
  };
  return {
    /** Returns the failures that no test case shows: of a suite that has ended, and with a root those of the suites in it. */
    finish(tally: SuiteTotals, toLocation: () => FaultLocation): LocatedFault[] {
      const declared = toDeclared(tally);
      const settledOdd = settleOdd(tally, declared).filter(({ status }) => status === "failed");
      tally.shown += settledOdd.length;
      const settled = isTop(tally) ? settle(tally, declared) : [];
      warn(tally, declared);
      const located = toFaults(tally, declared).map((fault) => ({ ...fault, ...toLocation() }));
      lacksFailures ||= isTop(tally) && (declared.failed ?? tally.declaredInside) > tally.shown;
      if (tally.outer) countSuite(tally.outer, tally);
      if (isTop(tally)) return [...settled, ...located];
      pending.push(...located.filter(({ name }) => name === FAULT));
      return located.filter(({ name }) => name !== FAULT);
    },
    /** Whether a root declares more failures than its test cases and suites show: some are not named. */
    lacksFailures: (): boolean => lacksFailures,
    warnings: (): string[] => [
      ...root,
      ...inner,
      ...(more > 0 ? [`The totals of ${plural(more, "more suite")} are not those of their test cases`] : []),
    ],
  };
}

type Declared = Record<keyof Counted | "disabled", number | null>;

function toDeclared({ attributes }: SuiteTotals): Declared {
  const number = (key: string) => {
    const text = attributes[key];
    return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
  };
  const [failures, errors] = [number("failures"), number("errors")];
  return {
    tests: number("tests"),
    failed: failures === null && errors === null ? null : (failures ?? 0) + (errors ?? 0),
    skipped: number("skipped") ?? number("skips") ?? number("skip") ?? number("ignored"),
    disabled: number("disabled"),
  };
}

function describeOddTotal(tally: SuiteTotals): string | null {
  const odd = ["tests", "failures", "errors", "skipped"].find((key) =>
    /^\s*(?!NaN)[^\s\d.+-]/.test(tally.attributes[key] ?? ""),
  );
  return odd === undefined
    ? null
    : `${toSubject(tally)} declares ${odd}="${cut(tally.attributes[odd]!, 50)}", which is no number`;
}

const isTop = ({ outer }: SuiteTotals): boolean => outer?.outer === null;
const toSubject = (tally: SuiteTotals): string => (isTop(tally) ? "The report" : `The suite "${cut(tally.name, 200)}"`);

function describeDisagreement(tally: SuiteTotals, { disabled, ...declared }: Declared): string | null {
  if (declared.tests === null && declared.failed === null && declared.skipped === null) return null;
  const { all, direct, items, shown } = tally;
  // Some producers count what is disabled among the skipped, some beside them.
  const together = (declared.skipped ?? 0) + (disabled ?? 0);
  const skipped = declared.skipped !== null && together === all.skipped ? together : declared.skipped;
  // pytest counts subtests that passed without listing them. TestNG does not count skipped tests.
  const isBeside = (key: keyof Counted, value: number) =>
    (tally.name === "pytest" && value > all[key]) ||
    (key === "tests" && tally.attributes.ignored !== undefined && value === all.tests - all.skipped);
  const isSo = (key: keyof Counted, value: number | null) =>
    value === null || [all, direct, items].some((counts) => counts[key] === value) || isBeside(key, value);
  // Tools count failed tests, or each of their failures, or those of todo tests as well.
  const failed = declared.failed ?? all.failed;
  if (isSo("tests", declared.tests) && isSo("skipped", skipped)) {
    if ([all, direct, items].some((counts) => counts.failed === failed) || (failed >= all.failed && failed <= shown))
      return null;
  }
  return describeTotals(toSubject(tally), { ...declared, skipped }, all);
}

type Fault = { name: string; message: string; stack: string };
type FaultLocation = { suite: string; file: string | null };
type LocatedFault = Fault & FaultLocation;

/** Returns and counts the failures of a suite outside of its cases, and those that it declares but no case shows. */
function toFaults(tally: SuiteTotals, { failed }: Declared): Fault[] {
  const { outsideFailures, all, comments } = tally;
  const faults: Fault[] = [];
  if (outsideFailures.count > 0) {
    const stack = outsideFailures.texts.join("\n\n");
    faults.push({ name: "(suite failed)", message: outsideFailures.message || "The suite failed", stack });
  }
  const declared = failed ?? 0;
  const missing = (what: string) => ({ name: FAULT, message: `${toSubject(tally)} ${what}`, stack: "" });
  if (declared > 0 && tally.shown === 0) {
    faults.push(missing(`declares ${declared} failed, but none of its test cases failed`));
    [all.failed, tally.shown, tally.unshown] = [all.failed + declared, declared, tally.unshown + declared];
  }
  // An enclosing test may have failed with them; only further failures are not shown by a case.
  if (comments > all.failed + tally.red) {
    faults.push(missing(`ends with "fail ${comments}", but ${all.failed} of its test cases failed`));
    [all.failed, tally.shown] = [comments, Math.max(tally.shown, comments)];
  }
  return faults;
}
