/** Assigns each failure of a run to a bug: a known bug, or a new one that several failures may share. */

import { mapInTurns } from "../../turns.ts";
import {
  caseFingerprint,
  executionOutageFingerprint,
  fingerprint,
  FINGERPRINT_VERSION,
  type Fingerprint,
  flakyFingerprint,
  infrastructureFingerprint,
  outageFingerprint,
  readFailure,
  saysTheSame,
} from "../../rules/fingerprint.ts";
import type { TrackedFailure } from "../../store/bug_occurrences.ts";
import {
  type MatchedBug,
  type OldMark,
  selectBugsByFingerprint,
  selectOldMarks,
  selectOwnBugs,
} from "../../store/bug_fingerprints.ts";
import { selectFlakyCases } from "../../store/bug_cases.ts";
import type { Tx } from "../../database/connect.ts";

/** At least this many tests in this many files that fail with one message have one cause. */
const MIN_FAMILY = { cases: 8, files: 3 };

/** Failures that are one bug. */
export type FailureGroup = {
  /** Undefined: it is a new one. */
  bug: MatchedBug | undefined;
  failures: TrackedFailure[];
  /** New fingerprints of the bug, the most specific first. */
  marks: Fingerprint[];
};

/** The bugs that failures may belong to, with one object per bug, so that changes by one failure are known to the next. */
export type BugsByFingerprint = {
  byDigest(digest: string): MatchedBug | undefined;
  /** Answers the one object of the bug. */
  add(bug: MatchedBug, marks?: readonly Fingerprint[]): MatchedBug;
  addDigest(bug: MatchedBug, digest: string): void;
};

function createBugsByFingerprint(): BugsByFingerprint {
  const bugs = new Map<string, MatchedBug>();
  const byDigest = new Map<string, MatchedBug>();
  const addOne = (bug: MatchedBug) => {
    const one = bugs.get(bug.id) ?? bug;
    bugs.set(bug.id, one);
    return one;
  };
  // A fingerprint that another bug already has stays with that bug.
  const addDigest = (bug: MatchedBug, digest: string) => {
    if (!byDigest.has(digest)) byDigest.set(digest, addOne(bug));
  };
  return {
    byDigest: (digest) => byDigest.get(digest),
    addDigest,
    add(bug, marks = []) {
      for (const { digest } of marks) addDigest(bug, digest);
      return addOne(bug);
    },
  };
}

/** Returns the bugs that are known by the messages or locations of these failures, in a transaction that holds the lock of the bugs. */
export async function findBugsByFingerprint(
  sql: Tx,
  projectId: string,
  failures: readonly TrackedFailure[],
): Promise<BugsByFingerprint> {
  const marked = await mapInTurns(failures, mark);
  const digests = new Set(marked.flatMap(({ message, place }) => [message.digest, place.digest]));
  const known = createBugsByFingerprint();
  if (digests.size > 0) await lookUp(sql, projectId, [...digests], known);
  return known;
}

async function lookUp(sql: Tx, projectId: string, digests: readonly string[], known: BugsByFingerprint): Promise<void> {
  for (const { digest, ...bug } of await selectBugsByFingerprint(sql, projectId, digests)) known.addDigest(bug, digest);
}

type Marked = { failure: TrackedFailure; message: Fingerprint; place: Fingerprint };

export type GroupedRun = { executionId: string; taskSlug: string; onDefaultBranch: boolean };

/** The bug that at least half of them are known to be; where there are several, the one of most. */
function mostOf(members: readonly Marked[], bugOf: (member: Marked) => MatchedBug | undefined): MatchedBug | undefined {
  const votes = new Map<string, { bug: MatchedBug; count: number }>();
  for (const member of members) {
    const bug = bugOf(member);
    if (!bug) continue;
    const vote = votes.get(bug.id) ?? { bug, count: 0 };
    votes.set(bug.id, { bug, count: vote.count + 1 });
  }
  const best = [...votes.values()].toSorted((a, b) => b.count - a.count)[0];
  return best && best.count * 2 >= members.length ? best.bug : undefined;
}

/** Failures are marked when their bugs are looked up, and again when they are grouped. */
const marks = new WeakMap<TrackedFailure, Marked>();

function mark(failure: TrackedFailure): Marked {
  const known = marks.get(failure);
  if (known) return known;
  const read = readFailure(failure);
  const marked = { failure, message: fingerprint(failure, read), place: caseFingerprint(failure, read) };
  marks.set(failure, marked);
  return marked;
}

/**
 * Groups failures, in a transaction that holds the lock of the bugs. The message decides; a new message in a known location belongs to the
 * bug of that location; a test known as flaky has a bug of its own, unless it fails together with others. Only the default branch gets
 * groups without a bug, because failures on others are work in progress.
 */
export async function groupFailures(
  sql: Tx,
  projectId: string,
  run: GroupedRun,
  failures: readonly TrackedFailure[],
  known: BugsByFingerprint,
): Promise<FailureGroup[]> {
  const marked = await mapInTurns(failures, mark);
  const groups: FailureGroup[] = [];
  const add = (members: readonly Marked[], bug: MatchedBug | undefined, marks: readonly Fingerprint[] = []) => {
    const places = members.flatMap(({ place }) => (run.onDefaultBranch && !known.byDigest(place.digest) ? place : []));
    groups.push({ bug, failures: members.map(({ failure }) => failure), marks: [...marks, ...places] });
  };
  const unknown: Marked[][] = [];
  for (const [digest, members] of Map.groupBy(marked, ({ message }) => message.digest)) {
    const bug = known.byDigest(digest) ?? mostOf(members, ({ place }) => known.byDigest(place.digest));
    if (bug) add(members, bug);
    else unknown.push(members);
  }
  if (unknown.length === 0) return groups;

  const fresh: Marked[][] = [];
  const old = await selectOld(sql, projectId, unknown.flat(), known);
  for (const members of unknown) {
    const bug = mostOf(members, old);
    if (bug) add(members, bug, run.onDefaultBranch ? [members[0]!.message] : []);
    else fresh.push(members);
  }
  if (fresh.length === 0 || !run.onDefaultBranch) return groups;

  const flaky = await selectFlakyCases(sql, projectId, casesOf(fresh.flat()));
  const alone: Marked[] = [];
  for (const members of fresh)
    if (members.every(({ failure }) => flaky.has(failure.testCase))) alone.push(...members);
    else add(members, undefined, [members[0]!.message]);
  const own = await selectOwn(sql, projectId, alone, known);
  for (const member of alone) add([member], own(member), [flakyFingerprint(member.failure)]);
  return groups;
}

const casesOf = (members: readonly Marked[]): number[] => members.map(({ failure }) => failure.testCase);

/** Bugs from before the fingerprints were of this version: the same case with the same exception, in the same place or words. */
async function selectOld(
  sql: Tx,
  projectId: string,
  members: readonly Marked[],
  known: BugsByFingerprint,
): Promise<(member: Marked) => MatchedBug | undefined> {
  const rows = await selectOldMarks(sql, projectId, casesOf(members), FINGERPRINT_VERSION);
  const byCase = Map.groupBy(rows, ({ testCase }) => testCase);
  const isOf = ({ message }: Marked, old: OldMark) =>
    old.exceptionType === message.exceptionType &&
    (old.frames.length > 0 && message.frames.length > 0
      ? old.frames[0] === message.frames[0]
      : saysTheSame(old.message, message.message));
  return (member) => {
    const found = byCase.get(member.failure.testCase)?.find((old) => isOf(member, old));
    return found && known.add(toMatchedBug(found));
  };
}

const toMatchedBug = ({ id, number, title, status, resolvedAt }: MatchedBug): MatchedBug => {
  return { id, number, title, status, resolvedAt };
};

/** Returns the bug of a flaky test: the one for its flakiness, or one that was opened before it was known to be flaky. */
async function selectOwn(
  sql: Tx,
  projectId: string,
  members: readonly Marked[],
  known: BugsByFingerprint,
): Promise<(member: Marked) => MatchedBug | undefined> {
  if (members.length === 0) return () => undefined;
  const digestOf = ({ failure }: Marked) => flakyFingerprint(failure).digest;
  await lookUp(sql, projectId, members.map(digestOf), known);
  const single = await selectOwnBugs(sql, projectId, casesOf(members));
  const own = new Map<number, MatchedBug>(single.map((bug) => [bug.testCase, known.add(toMatchedBug(bug))]));
  return (member) => known.byDigest(digestOf(member)) ?? own.get(member.failure.testCase);
}

/**
 * Groups failures of incidents: one bug per cause that many failures have. It is identified by the message alone, because the same tests
 * fail for other reasons, too. Other failures of the run open none.
 */
export function groupIncidents(
  run: GroupedRun,
  failures: readonly TrackedFailure[],
  known: BugsByFingerprint,
): FailureGroup[] {
  const byCause = [...Map.groupBy(failures.map(mark), ({ message }) => message.digest)];
  return byCause.flatMap(([digest, members]): FailureGroup[] => {
    const bug = known.byDigest(digest);
    if (!bug && !(run.onDefaultBranch && members.length >= MIN_FAMILY.cases)) return [];
    return [{ bug, failures: members.map(({ failure }) => failure), marks: bug ? [] : [members[0]!.message] }];
  });
}

/** Groups failures that match infrastructure rules, one bug of the project per rule, in a transaction that holds the lock of the bugs. */
export async function groupByRule(
  sql: Tx,
  projectId: string,
  run: GroupedRun,
  failures: readonly TrackedFailure[],
  known: BugsByFingerprint,
): Promise<FailureGroup[]> {
  if (failures.length === 0) return [];
  const byDigest = Map.groupBy(failures, (failure) => ruleMark(failure).digest);
  await lookUp(sql, projectId, [...byDigest.keys()], known);
  return [...byDigest].flatMap(([digest, members]): FailureGroup[] => {
    const bug = known.byDigest(digest);
    if (!bug && !run.onDefaultBranch) return [];
    return [{ bug, failures: members, marks: bug ? [] : [ruleMark(members[0]!)] }];
  });
}

const ruleMark = ({ ruleId, ruleName }: TrackedFailure): Fingerprint =>
  infrastructureFingerprint({ id: ruleId ?? "", name: ruleName ?? "" });

/**
 * Returns one bug for a run in which nearly everything failed, for the cause that at least half of the failures share. Without such a cause
 * it is the outage of the whole execution, or of the task. Only the default branch joins that one, because another branch may break
 * everything itself.
 */
export async function groupOutage(
  sql: Tx,
  projectId: string,
  run: GroupedRun,
  failures: readonly TrackedFailure[],
  known: BugsByFingerprint,
): Promise<FailureGroup[]> {
  const marked = await mapInTurns(failures, mark);
  const [most = []] = [...Map.groupBy(marked, ({ message }) => message.digest).values()].toSorted(
    (a, b) => b.length - a.length,
  );
  const cause = most[0]?.message;
  const isTold = cause !== undefined && cause.test === null && most.length * 2 >= failures.length;
  const message = isTold ? cause : outageFingerprint(run.taskSlug);
  const execution = executionOutageFingerprint(run.executionId);
  await lookUp(sql, projectId, [message.digest, execution.digest], known);
  const bugOf = ({ digest }: Fingerprint) => known.byDigest(digest);
  const [first, second] = isTold ? [message, execution] : [execution, message];
  const bug = bugOf(first) ?? bugOf(second);
  if (!run.onDefaultBranch && !(isTold && bug)) return [];
  const one = isTold ? most[0]!.failure : failures[0];
  if (!one) return [];
  return [{ bug, failures: [one], marks: run.onDefaultBranch ? [...(bug ? [] : [message]), execution] : [] }];
}
