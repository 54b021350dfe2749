/** Takes reports into their runs: the one way of every upload, alone or with others in one transaction. */

import { decideRun, type DecidedRun, mayResolveBugs, timeOf, toEvent } from "./decide.ts";
import { type IngestFacts, loadFacts, type MatchedReport } from "./facts.ts";
import { matchBuilds, type ReportedBuild } from "./match.ts";
import { originOf, type PreparedReport, type RunnerFailure, toResolved } from "./prepare.ts";
import { repeatReport, storeReports, type TakenBuild, type TakenReport } from "./store.ts";
import { lookUpNumbers } from "./test_case_cache.ts";
import { decideNext } from "../executions/advance.ts";
import { isSameCommit } from "../../rules/commit.ts";
import { hasEnded } from "../../rules/execution.ts";
import { Refusal } from "../../schema/refusal.ts";
import type { UploadParameters } from "../../schema/test_runs.ts";
import type { Tx } from "../../database/connect.ts";
import type { AdvisoryLock } from "../../database/locks.ts";
import { type ExecutionOrigin, type LockedExecution } from "../../store/executions.ts";
import type { TaskRow } from "../../store/execution_tasks.ts";
import { lockOfKey } from "../../store/execution_of_build.ts";
import type { RunRow } from "../../store/test_runs.ts";

export type IncomingReport = {
  prepared: PreparedReport;
  parameters: UploadParameters;
  /** test_case.number of each case, in their order; undefined: they are looked up, and a report with an unknown one is left out. */
  numbers?: readonly number[];
  /** What failed in a runner that has no report. */
  failure?: RunnerFailure | undefined;
  /** The commit that a runner has found checked out. */
  testedCommit?: string | undefined;
  /** No event is stored. */
  isMuted?: boolean;
};

export type TakeOptions = {
  /** Whether each may be stored, in their order. */
  admitted?: Promise<readonly boolean[]>;
  /** A report is alone in its transaction and waits for locks. False: what another transaction has locked is left out. */
  mayWait: boolean;
  now?: Date;
};

/** What the transaction of an upload with these parameters is to hold before it takes the report. */
export const locksFor = (projectId: string, { execution_id, execution_key }: UploadParameters): AdvisoryLock[] =>
  execution_id === undefined && execution_key !== undefined ? [lockOfKey(projectId, execution_key)] : [];

/**
 * In a transaction that holds the locks of the reports. Nothing is stored of a report that is left out, whose output is
 * undefined; none is where `mayWait`. `written` resolves when everything is stored; its last statement has been sent.
 */
export async function takeReports(
  sql: Tx,
  projectId: string,
  reports: readonly IncomingReport[],
  { admitted, mayWait, now = new Date() }: TakeOptions,
): Promise<{ outputs: readonly (TakenReport | undefined)[]; written: Promise<unknown> }> {
  const builds = toBuilds(reports, now);
  const unresolved = [...reports.keys()].filter((index) => reports[index]!.numbers === undefined);
  const digests = unresolved.map((index) => reports[index]!.prepared.identified.digests);
  const numbersAt = digests.length === 0 ? async () => [] : lookUpNumbers(sql, projectId, digests);
  const [isAdmitted, matches] = await Promise.all([admitted, matchBuilds(sql, projectId, builds, { mayWait })]);
  const version = matches.find((match) => match !== undefined)?.caseIndexVersion;
  if (version === undefined) return { outputs: reports.map(() => undefined), written: Promise.resolve() };
  const found = await numbersAt(version);
  const numbersOf = (index: number) => reports[index]!.numbers ?? found[unresolved.indexOf(index)];
  const matched = builds.map((build, at): MatchedReport[] => {
    const match = matches[at];
    if (!match) return [];
    return build.reports.flatMap((report): MatchedReport[] => {
      const numbers = numbersOf(report.index);
      if (!numbers || isAdmitted?.[report.index] === false) return [];
      const { prepared, parameters, failure } = reports[report.index]!;
      const origin = ownOrigin(match.execution, report.origin, reports[report.index]!);
      return [{ ...report, origin, resolved: toResolved(prepared, numbers), parameters, match, failure }];
    });
  });
  const facts = await loadFacts(sql, projectId, matched.flat(), { mayWait });
  const [first] = matched.flat();
  if (mayWait && first && facts.byReport.get(first.index)!.isRepeated) {
    const isMuted = reports[first.index]!.isMuted === true;
    const { attempts } = facts.byReport.get(first.index)!;
    const output = await repeatReport(sql, projectId, first, { isMuted, attempts });
    return { outputs: [output], written: Promise.resolve() };
  }
  const taken = builds.flatMap((build, at) => {
    const one = takeBuild(build, matched[at]!, facts, { mayWait, isMuted: reports[build.reports[0]!.index]!.isMuted });
    return one ? [one] : [];
  });
  const { answers, written } = await storeReports(sql, projectId, taken);
  // Nobody else's commit follows at once.
  if (mayWait) await written;
  return { outputs: reports.map((_, index) => answers.get(index)), written };
}

type PlacedReport = Pick<MatchedReport, "index" | "origin" | "time">;
type Build = ReportedBuild & { reports: PlacedReport[] };

/** Of several builds with one key only the first: the others are told of it when it is stored. */
function toBuilds(reports: readonly IncomingReport[], now: Date): Build[] {
  const builds: Build[] = [];
  const byKey = new Map<string, Build>();
  for (const [index, { prepared, parameters }] of reports.entries()) {
    const origin = originOf(parameters, prepared.report);
    const report = { index, origin, time: timeOf(parameters, now) };
    const key = parameters.execution_key;
    const known = key === undefined ? undefined : byKey.get(key);
    if (known) {
      const isSame =
        known.origin.branch === origin.branch &&
        known.origin.queueRef === origin.queueRef &&
        known.origin.commit === origin.commit;
      if (isSame) known.reports.push(report);
      continue;
    }
    const build = { parameters, origin, now: report.time.at, reports: [report] };
    builds.push(build);
    if (key !== undefined) byKey.set(key, build);
  }
  return builds;
}

const HASH = /^[0-9a-f]{7,64}$/i;

/**
 * What runners run, and with which variables, was said when the execution began: reports add nothing to it but the commit that
 * was tested, where the execution names none.
 */
function ownOrigin(
  { mode, commit }: LockedExecution,
  stated: ExecutionOrigin,
  { testedCommit }: IncomingReport,
): ExecutionOrigin {
  if (mode !== "run") return stated;
  return commit === null && testedCommit !== undefined && HASH.test(testedCommit) ? { commit: testedCommit } : {};
}

/** Decides about the reports of one execution, one after the other. */
function takeBuild(
  build: Build,
  reports: readonly MatchedReport[],
  facts: IngestFacts,
  { mayWait, isMuted = false }: { mayWait: boolean; isMuted: boolean | undefined },
): TakenBuild | undefined {
  const [first] = reports;
  // What is new begins when its first report says, with what that says.
  if (!first || (first.match.isNew && first.index !== build.reports[0]!.index)) return undefined;
  const { match } = first;
  const runs = facts.runs.get(match.execution.id) ?? [];
  const state: TakenBuild = { match, execution: match.execution, runs, told: {}, next: undefined, reports: [] };
  for (const report of reports) {
    const decided = decideOne(report, state, facts, mayWait);
    if (decided)
      addReport(state, {
        ...{ report, decided, mayResolve: mayResolveBugs(decided, match, facts) },
        isMuted: isMuted || report.time.isOld || match.execution.untrusted,
      });
    else if (match.isNew && report === first) return undefined;
  }
  return state.reports.length === 0 ? undefined : state;
}

/** Undefined for a report that needs a transaction of its own. */
function decideOne(
  report: MatchedReport,
  { execution, runs, match, reports }: TakenBuild,
  facts: IngestFacts,
  mayWait: boolean,
): DecidedRun | undefined {
  const own = facts.byReport.get(report.index)!;
  const warnings = reports.length === 0 || !match.isNew ? match.warnings : [];
  const known = { ...report, ...own, execution, runs, warnings, quarantined: facts.quarantined };
  if (mayWait) return decideRun(known);
  const { taskSlug } = report.resolved;
  const isFurther = own.attempts.length > 0 || reports.some(({ decided }) => decided.run.taskSlug === taskSlug);
  // The end of the execution is announced before anything that comes after it.
  const hasJustEnded = hasEnded(execution.status) && !hasEnded(match.execution.status);
  // What a rerun comes to is stored with the build that it repeats, whose row would be waited for.
  if (isFurther || hasJustEnded || own.isShort || execution.mode === "run" || execution.buildId !== null)
    return undefined;
  try {
    const decided = decideRun(known);
    const needsBugs = decided.run.failed > 0 || mayResolveBugs(decided, match, facts);
    return (facts.bugs?.areHeld || !needsBugs) && decided.changedOthers.length === 0 ? decided : undefined;
  } catch (error) {
    // Refused where it is alone, so that the others are taken.
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** Adds what a report makes of its execution. */
function addReport(
  state: TakenBuild,
  {
    report,
    decided,
    mayResolve,
    isMuted,
  }: Pick<TakenBuild["reports"][number], "report" | "decided" | "mayResolve" | "isMuted">,
): void {
  const { execution, runs, told } = state;
  const { run, changedOthers, from } = decided;
  const changed = new Map([run, ...changedOthers].map((one) => [one.id, one]));
  const others = runs.map((one) => changed.get(one.id) ?? one);
  state.runs = decided.isKnown ? others : [...others, run].sort(byId);
  // What runners do with an execution of theirs is looked up when it is advanced.
  if (execution.mode !== "run") state.next = decideNext(execution, state.runs.map(toTask), toEvent(report.parameters));
  const status = state.next?.status ?? execution.status;
  state.reports.push({ report, decided, mayResolve, isMuted, formerStatus: execution.status, status });
  state.execution = { ...execution, ...from, status };
  state.told = {
    branch: told.branch ?? report.origin.branch,
    commit: longerCommit(told.commit, report.origin.commit),
    pullRequest: told.pullRequest ?? report.origin.pullRequest,
    baseBranch: told.baseBranch ?? report.origin.baseBranch,
    queueRef: told.queueRef ?? report.origin.queueRef,
    buildUrl: told.buildUrl ?? report.origin.buildUrl,
    environment: told.environment ?? report.origin.environment,
  };
}

const byId = (a: RunRow, b: RunRow) => (a.id < b.id ? -1 : 1);
const toTask = (run: RunRow): TaskRow => ({ ...run, slug: run.taskSlug, runner: null });

/** A further report may name the same commit with more digits. */
const longerCommit = (known: string | null | undefined, next: string | null | undefined) =>
  known == null || (next != null && next.length > known.length && isSameCommit(known, next)) ? (next ?? known) : known;
