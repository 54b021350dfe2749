/** Which results contradict those of other runs of their task on the same commit: evidence of flakiness. */

import { isSameCommit } from "./commit.ts";

/** A run is compared with so many that were counted before it. */
export const COMPARED_RUNS = 20;

/** `hasFailed`: any of its cases has. */
export type ComparedRun = { id: string; hasFailed: boolean };

export type RunOnCommit = ComparedRun & { taskSlug: string; commit: string };

/** Runs of one task on one commit, as they name it. */
export type CommitGroup = {
  taskSlug: string;
  commit: string;
  /** Whether any case has failed in a run that these are compared with among themselves. */
  hasFailed: boolean;
};

const groupOf = ({ taskSlug, commit }: RunOnCommit) => JSON.stringify([commit.toLowerCase(), taskSlug]);
/** Hashes of any length that mean the same commit begin alike. */
const kinOf = ({ taskSlug, commit }: RunOnCommit) => JSON.stringify([commit.toLowerCase().slice(0, 7), taskSlug]);

/** By what each of them is called. */
export function groupRuns(runs: readonly RunOnCommit[]): Map<string, CommitGroup> {
  const failed = new Set(runs.filter(({ hasFailed }) => hasFailed).map(kinOf));
  const groups = runs.map((run) => [groupOf(run), { ...run, hasFailed: failed.has(kinOf(run)) }] as const);
  return new Map(groups);
}

/**
 * The ids of the runs with which each run is compared, where either has failures: of those of its task and commit that were
 * counted before it, the last by id; of those long before it only the last. `runs` are in the order in which they are
 * counted; `counted` tells those that were counted before all of them, by the group, newest first, and leaves out groups in
 * which nothing has failed anywhere.
 */
export function toCompare(
  runs: readonly RunOnCommit[],
  counted: ReadonlyMap<string, readonly ComparedRun[]>,
): Map<string, string[]> {
  const compared = new Map<string, string[]>();
  for (const kin of Map.groupBy(runs, kinOf).values()) {
    /** Ascending by id, which is nearly the order in which runs are counted. */
    const earlier: RunOnCommit[] = [];
    for (const run of kin) {
      const before = counted.get(groupOf(run));
      if (before !== undefined) {
        const last = lastOf(run, before, earlier);
        // What passed again since a failure long ago has told so then.
        const previous = last.find(({ id }) => id < run.id);
        const others = last.filter(
          (other) =>
            (other.hasFailed || run.hasFailed) && (other === previous || earlierByFar(run.id, other.id) !== "theirs"),
        );
        if (others.length > 0)
          compared.set(
            run.id,
            others.map(({ id }) => id),
          );
      }
      let place = earlier.length;
      while (place > 0 && earlier[place - 1]!.id > run.id) place--;
      earlier.splice(place, 0, run);
    }
  }
  return compared;
}

function lastOf(run: RunOnCommit, before: readonly ComparedRun[], earlier: readonly RunOnCommit[]): ComparedRun[] {
  const last: ComparedRun[] = [];
  let next = 0;
  let index = earlier.length - 1;
  while (last.length < COMPARED_RUNS) {
    while (index >= 0 && !isSameCommit(earlier[index]!.commit, run.commit)) index--;
    const [old, fresh] = [before[next], earlier[index]];
    if (old === undefined && fresh === undefined) break;
    if (old === undefined || (fresh !== undefined && fresh.id > old.id)) {
      last.push(fresh!);
      index--;
    } else {
      last.push(old);
      next++;
    }
  }
  return last;
}

/** Results of one block of test cases, in step; see rules/merge.ts. */
export type Outcomes = { testCases: readonly number[]; statuses: string };

/** What begins to fail so long after it passed, on the same commit, may have another cause: the world around it has changed. */
const DRIFT_MS = 12 * 3_600_000;

/** By their ids, which begin with the time. Which of two runs is the earlier, where they are so far apart; else undefined. */
export function earlierByFar(ours: string, theirs: string): "ours" | "theirs" | undefined {
  const timeOf = (id: string) => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
  const gap = timeOf(ours) - timeOf(theirs);
  return gap > DRIFT_MS ? "theirs" : gap < -DRIFT_MS ? "ours" : undefined;
}

const isResult = (letter: string) => letter === "p" || letter === "f";

/**
 * Adds the test cases that passed in the one and failed in the other; where one is `earlier` by far, only those that failed
 * there and passed later. Both ascend by test case.
 */
export function addContradicted(
  contradicted: Set<number>,
  ours: Outcomes,
  theirs: Outcomes,
  earlier?: "ours" | "theirs",
): void {
  if (!/[fF]/.test(ours.statuses) && !/[fF]/.test(theirs.statuses)) return;
  for (let mine = 0, its = 0; mine < ours.testCases.length && its < theirs.testCases.length;) {
    const [number, other] = [ours.testCases[mine]!, theirs.testCases[its]!];
    if (number === other) {
      const [one, two] = [ours.statuses[mine]!.toLowerCase(), theirs.statuses[its]!.toLowerCase()];
      const hasBoth = one !== two && isResult(one) && isResult(two);
      if (hasBoth && (earlier === undefined || (earlier === "ours" ? one : two) === "f")) contradicted.add(number);
    }
    if (number <= other) mine++;
    if (other <= number) its++;
  }
}
