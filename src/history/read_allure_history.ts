/** Reads the history of an Allure report: the results that it keeps for each test.
 *
 * Allure 2 stores it in "history/history.json", and Allure 3 in a file of JSON lines. Allure 2 keeps up to 20 results of a test,
 * each with a status, a time and the message of a failure. It names neither the test nor the build of a result. Names come from
 * the report around the history, and builds from addresses and times.
 */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { toFileError } from "../file_failure.ts";
import { basename, dirname, join } from "node:path";
import { readAllure } from "../reports/allure.ts";
import { asList, asText, type JsonObject, toFields } from "../reports/fields.ts";
import type { CaseName } from "../reports/report.ts";
import { type PastBuilds, type PastBuild, toChronological, toKey } from "./build.ts";

export type AllureOptions = { branch: string | undefined; task: string | undefined };

/** A result of one test in one build. */
type PastResult = CaseName & {
  /** Identifies the test within the history. */
  historyId: string;
  status: string;
  start: number;
  stop: number;
  message: string | undefined;
  stack: string | undefined;
  /** The address of the report of the build; undefined: the history does not state it. */
  reportUrl: string | undefined;
};

const toText = (value: unknown): string | undefined => asText(value) || undefined;
const toMs = (value: unknown): number | undefined =>
  typeof value === "number" && value > Date.UTC(2000) && value < Date.UTC(2200) ? Math.round(value) : undefined;

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw toFileError(error, "read", path);
  }
}

/**
 * `path` is a report, its folder "history", or a history file of Allure 3. Throws an Error if there is no history, or it cannot be
 * read.
 */
export function readAllureHistory(path: string, options: AllureOptions): PastBuilds {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return readLines(path, options);
  for (const name of ["history.jsonl", "history/history.jsonl"])
    if (existsSync(join(path, name))) return readLines(join(path, name), options);
  const folder = existsSync(join(path, "history.json")) ? path : join(path, "history");
  if (!existsSync(join(folder, "history.json")))
    throw new Error(
      `No Allure history in "${path}": expected an Allure report, its folder "history" or a history file of Allure 3`,
    );
  return readFolder(folder, options);
}

function readFolder(folder: string, options: AllureOptions): PastBuilds {
  const names = readNames(join(dirname(folder), "data"));
  const results: PastResult[] = [];
  const nameless = new Map<string, number>();
  for (const [historyId, value] of Object.entries(toFields(readJson(join(folder, "history.json"))))) {
    const items = asList(toFields(value)["items"]).map(toFields);
    const named =
      names.byHistoryId.get(historyId) ??
      items.map(({ uid }) => names.byUid.get(String(uid))).find((name) => name !== undefined);
    if (!named) nameless.set(historyId, items.length);
    else
      results.push(
        ...items.flatMap((item) => toResult(historyId, item, { ...named, ...names.details.get(String(item["uid"])) })),
      );
  }
  if (results.length === 0 && nameless.size > 0)
    throw new Error(
      `"${join(folder, "history.json")}" does not name its tests: keep the folder "data" of the report beside "history"`,
    );
  const groups = toBuildGroups(results);
  return {
    builds: toChronological(groups.map((group) => toBuild(group, options))),
    problems: [],
    others: [],
    notes: [...namelessNotes(nameless), ...compareWithTrend(join(folder, "history-trend.json"), groups)],
  };
}

type Names = {
  byHistoryId: Map<string, CaseName>;
  byUid: Map<string, CaseName>;
  /** Stacks of results of the newest build, by uid. */
  details: Map<string, { stack: string | undefined }>;
};

/** A parameter that does not belong to the name of a test. Results of Allure mark it as excluded, and reports do not. */
const RETRY = "Retry";

/** Reads the names of tests from the data of the report, in the form in which reports of Allure results name them. */
function readNames(data: string): Names {
  const names: Names = { byHistoryId: new Map(), byUid: new Map(), details: new Map() };
  const cases = join(data, "test-cases");
  const files = existsSync(cases) ? readdirSync(cases).filter((name) => name.endsWith(".json")) : [];
  for (const file of files) {
    const json = toFields(readJson(join(cases, file)));
    const parameters = asList(json["parameters"]).filter((one) => toFields(one)["name"] !== RETRY);
    const [{ result } = { result: undefined }] = readAllure({ ...json, uuid: json["uid"], parameters });
    if (!result || result.name === "") continue;
    const named = { suite: result.suite, name: result.name, file: result.file };
    const historyId = toText(json["historyId"]);
    if (historyId !== undefined) names.byHistoryId.set(historyId, named);
    names.byUid.set(String(json["uid"]), named);
    names.details.set(String(json["uid"]), { stack: toText(json["statusTrace"]) });
  }
  const suites = join(data, "suites.json");
  if (files.length === 0 && existsSync(suites)) addSuites(readJson(suites), names.byUid);
  return names;
}

/** The tree of suites names the tests of the newest build: its leaves have the uid of a result. */
function addSuites(tree: unknown, byUid: Names["byUid"]): void {
  const open: { node: JsonObject; suites: string[] }[] = asList(toFields(tree)["children"]).map((child) => ({
    node: toFields(child),
    suites: [],
  }));
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, suites } = next;
    const name = toText(node["name"]);
    if (name === undefined) continue;
    if (Array.isArray(node["children"]))
      open.push(...node["children"].map((child) => ({ node: toFields(child), suites: [...suites, name] })));
    else byUid.set(String(node["uid"]), { suite: suites.join(" > "), name, file: null });
  }
}

function toResult(historyId: string, item: JsonObject, named: CaseName & { stack?: string | undefined }): PastResult[] {
  const time = toFields(item["time"]);
  const start = toMs(time["start"] ?? item["start"]);
  if (start === undefined) return [];
  const stop = toMs(time["stop"] ?? item["stop"]) ?? start;
  const { suite, name, file, stack } = named;
  const message =
    toText(item["statusDetails"]) ?? toText(toFields(item["error"])["message"]) ?? toText(item["message"]);
  // The address of a result is that of its report with the result behind "#".
  const reportUrl = toText(item["reportUrl"])?.replace(/(?:\/index\.html)?\/?#.*$/, "");
  return [{ historyId, suite, name, file, status: String(item["status"]), start, stop, message, stack, reportUrl }];
}

/** The tests of one build run without a longer pause. */
const MAX_PAUSE_MS = 30 * 60_000;

/**
 * Groups results into builds: by the address of the report where the history states it, otherwise by time. Then a build ends where a
 * test occurs that the build has already, or after a pause.
 */
function toBuildGroups(results: readonly PastResult[]): PastResult[][] {
  const { stated = [], unstated = [] } = Object.groupBy(results, ({ reportUrl }) =>
    reportUrl === undefined ? "unstated" : "stated",
  );
  const groups = [...Map.groupBy(stated, ({ reportUrl }) => reportUrl).values()];
  let current: PastResult[] = [];
  let tests = new Set<string>();
  let end = 0;
  for (const result of unstated.toSorted((one, other) => one.start - other.start)) {
    if (current.length === 0 || tests.has(result.historyId) || result.start > end + MAX_PAUSE_MS) {
      current = [];
      groups.push(current);
      tests = new Set();
      end = 0;
    }
    current.push(result);
    tests.add(result.historyId);
    end = Math.max(end, result.stop);
  }
  return groups.toSorted((one, other) => startOf(one) - startOf(other));
}

const startOf = (group: readonly PastResult[]): number =>
  group.reduce((first, { start }) => Math.min(first, start), Number.POSITIVE_INFINITY);
const stopOf = (group: readonly PastResult[]): number => group.reduce((last, { stop }) => Math.max(last, stop), 0);

/** How "native.ts" reads the statuses of Allure. */
const STATUSES: Record<string, "passed" | "failed"> = { passed: "passed", failed: "failed", broken: "failed" };

/** Results of one test in one build that are not the last are retries. */
function toCase(results: readonly PastResult[]) {
  const last = results.reduce((newest, one) => (one.start >= newest.start ? one : newest));
  const { suite, name, file, status: word, start, stop, message, stack } = last;
  const status = STATUSES[word] ?? "skipped";
  const flaky = status === "passed" && results.some((one) => STATUSES[one.status] === "failed");
  return {
    ...{ suite, name, status, durationMs: stop - start },
    ...(file === null ? {} : { file }),
    ...(status === "failed" ? { kind: word === "broken" ? "error" : "failure" } : {}),
    ...(flaky ? { flaky } : {}),
    ...(results.length > 1 ? { attempts: results.length } : {}),
    ...(message === undefined ? {} : { message }),
    ...(stack === undefined || status !== "failed" ? {} : { stack }),
  };
}

function toReport(group: readonly PastResult[]): Uint8Array<ArrayBuffer> {
  const cases = [...Map.groupBy(group, ({ historyId }) => historyId).values()].map(toCase);
  const count = (wanted: string) => cases.filter(({ status }) => status === wanted).length;
  const report = {
    ...{ passed: count("passed"), failed: count("failed"), skipped: count("skipped") },
    durationMs: stopOf(group) - startOf(group),
    cases,
  };
  return new TextEncoder().encode(JSON.stringify(report));
}

function toBuild(group: readonly PastResult[], { branch, task }: AllureOptions): PastBuild {
  const [{ reportUrl }] = group as [PastResult];
  const began = new Date(startOf(group)).toISOString();
  const isLink = reportUrl !== undefined && /^https?:\/\//.test(reportUrl) && URL.canParse(reportUrl);
  return {
    key: toKey(`allure ${reportUrl ?? began}`),
    branch,
    ...(isLink ? { buildUrl: reportUrl } : {}),
    uploads: [
      {
        name: `build of ${began}`,
        ...{ task: task ?? "allure", completedAt: new Date(stopOf(group)), format: "assay" },
        read: () => [{ name: "history.json", bytes: toReport(group) }],
      },
    ],
  };
}

function namelessNotes(nameless: ReadonlyMap<string, number>): string[] {
  if (nameless.size === 0) return [];
  const results = [...nameless.values()].reduce((sum, count) => sum + count, 0);
  const tests = nameless.size === 1 ? "1 test is" : `${nameless.size} tests are`;
  return [`${tests} not in the newest report, so the names are unknown: ${results} results are left out`];
}

/** Allure 2 counts the results of each build, tests without a name included. */
function compareWithTrend(path: string, groups: readonly PastResult[][]): string[] {
  if (!existsSync(path)) return [];
  const builds = asList(readJson(path)).length;
  if (builds === 0 || builds === groups.length) return [];
  return [
    `The history contains results of ${groups.length} builds, and "${basename(path)}" counts ${builds}: Allure keeps the last 20 ` +
      "results of a test, and without addresses of reports the builds are recognised by their times",
  ];
}

/** Allure 3 writes a line for each build, with the name of each test. */
function readLines(path: string, options: AllureOptions): PastBuilds {
  const problems: PastBuilds["problems"] = [];
  const builds: PastBuild[] = [];
  for (const [index, line] of readFileSync(path, "utf8").split("\n").entries()) {
    if (line.trim() === "") continue;
    try {
      const build = toFields(JSON.parse(line));
      const group = Object.entries(toFields(build["testResults"])).flatMap(([historyId, value]) =>
        toNamedResult(historyId, toFields(value), toMs(build["timestamp"])),
      );
      if (group.length === 0) throw new Error("it has no results");
      const url = toText(build["url"]);
      const first = toBuild(
        group.map((one) => ({ ...one, reportUrl: url })),
        options,
      );
      builds.push({
        ...first,
        key: toKey(`allure ${toText(build["uuid"]) ?? url ?? new Date(startOf(group)).toISOString()}`),
      });
    } catch (error) {
      problems.push({ name: `${basename(path)}, line ${index + 1}`, message: (error as Error).message });
    }
  }
  return { builds: toChronological(builds), problems, others: [], notes: [] };
}

function toNamedResult(historyId: string, item: JsonObject, timestamp: number | undefined): PastResult[] {
  const [{ result } = { result: undefined }] = readAllure({ ...item, uuid: item["id"] });
  if (!result || result.name === "") return [];
  const { suite, name, file } = result;
  const stack = toText(toFields(item["error"])["trace"]) ?? toText(item["trace"]);
  return toResult(historyId, { ...item, start: item["start"] ?? timestamp }, { suite, name, file, stack });
}
