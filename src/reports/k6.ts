/** The summary of k6, of --summary-export and of the data of handleSummary: https://grafana.com/docs/k6 */

import { asCount, asText, isObject, type JsonObject, toCase, toFields, toFault } from "./fields.ts";
import { MAX_LEVELS, nestedTooDeeply, type Report, type ReportedCase } from "./report.ts";
import { createCutter, type Cutter, MAX_CASES, tooManyCases } from "./text.ts";

/**
 * Each check and each threshold is a test case. A check that failed at least once has failed, unless a threshold of the metric `checks` says how
 * many may. Throws a ReportError when there are too many cases.
 */
export function readK6(json: unknown): Report {
  const cutter = createCutter();
  const { root_group, metrics, state } = toFields(json);
  const thresholds = readThresholds(toFields(metrics), cutter);
  const isBounded = Object.entries(toFields(metrics)).some(
    ([name, metric]) => /^checks\b/.test(name) && toFields(metric).thresholds !== undefined,
  );
  const cases = [...readChecks(toFields(root_group), isBounded, cutter), ...thresholds];
  if (cases.length > MAX_CASES) throw tooManyCases();
  const { testRunDurationMs } = toFields(state);
  return {
    format: "k6",
    suite: null,
    cases,
    countsOnly: null,
    partial: false,
    durationMs: typeof testRunDurationMs === "number" ? Math.round(testRunDurationMs) : null,
    completedAt: null,
    context: {},
    warnings: cutter.warnings(),
  };
}

/** Groups and checks are lists, in older versions objects by their names. */
const valuesOf = (some: unknown): JsonObject[] =>
  (isObject(some) || Array.isArray(some) ? Object.values(some) : []).map(toFields);

function readChecks(root: JsonObject, isBounded: boolean, cutter: Cutter): ReportedCase[] {
  const cases: ReportedCase[] = [];
  const open = [{ group: root, suite: "checks", level: 1 }];
  for (let one = open.pop(); one; one = open.pop()) {
    const { group, suite, level } = one;
    if (level > MAX_LEVELS) throw nestedTooDeeply("values");
    for (const check of valuesOf(group.checks)) {
      const [passes, fails] = [asCount(check.passes), asCount(check.fails)];
      const name = asText(check.name);
      const counts = `Failed ${fails} of ${(passes ?? 0) + (fails ?? 0)} times`;
      if (passes === null || fails === null)
        cases.push(toFault(cutter, { suite, name, message: "The check has no numbers of passes and failures" }));
      else if (fails > 0 && !isBounded) cases.push(toCase(cutter, { suite, name, status: "failed", message: counts }));
      else cases.push(toCase(cutter, { suite, name, status: "passed", output: fails > 0 ? counts : null }));
      if (cases.length > MAX_CASES) throw tooManyCases();
    }
    for (const inner of valuesOf(group.groups).toReversed())
      open.push({ group: inner, suite: `${suite} > ${asText(inner.name)}`, level: level + 1 });
  }
  return cases;
}

function readThresholds(metrics: JsonObject, cutter: Cutter): ReportedCase[] {
  return Object.entries(metrics).flatMap(([metric, value]) =>
    Object.entries(toFields(toFields(value).thresholds)).map(([threshold, outcome]) => {
      // An object says whether it was kept, the value of --summary-export whether it was crossed.
      const isKept = isObject(outcome) ? outcome.ok === true : outcome === false;
      const { thresholds: _, type: __, contains: ___, ...rest } = toFields(value);
      const measured = Object.entries(isObject(rest.values) ? rest.values : rest)
        .map(([key, number]) => `${key}=${asText(number)}`)
        .join(" ");
      return toCase(cutter, {
        ...{ suite: "thresholds", name: `${metric}: ${threshold}`, status: isKept ? "passed" : "failed" },
        message: isKept ? null : `The threshold was crossed: ${measured}`,
      });
    }),
  );
}
