/** Finds the execution that each report belongs to, or what it takes to begin one. */

import { otherBuild, warningsOf } from "../executions/found_execution.ts";
import { isSameCommit } from "../../rules/commit.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { UploadParameters } from "../../schema/test_runs.ts";
import type { Tx } from "../../database/connect.ts";
import { type ExecutionMatch, type ExecutionQuery, matchExecutions } from "../../store/execution_of_build.ts";
import type { ExecutionOrigin, LockedExecution } from "../../store/executions.ts";

/** A build as a report names it. */
export type ReportedBuild = {
  parameters: UploadParameters;
  origin: ExecutionOrigin;
  now: Date;
};

/** The execution of a build, locked; where it is new it is yet to be stored. */
export type MatchedExecution = Omit<ExecutionMatch, "execution" | "freshId" | "isGone" | "isUnclear" | "namesake"> & {
  execution: LockedExecution;
  isNew: boolean;
  warnings: string[];
};

/** Each time somebody else has changed or deleted the execution that was waited for. */
const MAX_TRIES = 5;

/**
 * In a transaction that holds the locks of their execution_keys. Refuses an execution_id that is not there, or that other
 * parameters contradict.
 */
export async function matchBuilds(
  sql: Tx,
  projectId: string,
  builds: readonly ReportedBuild[],
): Promise<MatchedExecution[]> {
  const queries = builds.map(({ parameters, origin, now }): ExecutionQuery => {
    const { branch = null, pullRequest = null, baseBranch = null, queueRef = null, commit = null } = origin;
    const freshId = Bun.randomUUIDv7("hex", now.getTime());
    const { execution_id: id = null, execution_key: key = null, base_commit: baseCommit = null } = parameters;
    const line = { branch, pullRequest, baseBranch, baseCommit, queueRef, commit };
    return { freshId, id, key, ...line, untrusted: isUntrusted(parameters), now };
  });
  for (let tries = 1; ; tries++) {
    const matches = await matchExecutions(sql, projectId, queries);
    const found = new Map(matches.map((match) => [match.freshId, match]));
    const all = queries.map((query) => {
      const match = found.get(query.freshId);
      if (query.id !== null && (match === undefined || match.isGone)) refuseAbsent();
      // While it was waited for, it may have been deleted, or somebody has told another commit.
      const fits = match && !match.isGone && (query.id !== null || !match.execution || agrees(match.execution, query));
      return fits ? match : undefined;
    });
    if (!all.includes(undefined)) return all.map((match, index) => toMatched(builds[index]!, match!));
    if (tries === MAX_TRIES) throw new Error("The execution of a report changed during each attempt to lock it");
  }
}

function toMatched(
  { parameters, origin, now }: ReportedBuild,
  { execution: known, freshId, isGone: _, isUnclear, namesake, ...match }: ExecutionMatch,
): MatchedExecution {
  const { execution_id, execution_key: key = null } = parameters;
  if (execution_id !== undefined && known) requireSame(known, parameters);
  const build = { key, branch: origin.queueRef ?? origin.branch, commit: origin.commit };
  const untrusted = isUntrusted(parameters);
  const execution = known ?? beginAt(now, { id: freshId, key, origin, untrusted, ...match });
  const isNew = known === undefined;
  const warnings = !isNew
    ? warningsOf(build, { isUnclear })
    : namesake && execution_id === undefined
      ? [otherBuild(build, namesake)]
      : [];
  return { ...match, execution, isNew, warnings };
}

/** An execution that begins with an upload, and is not stored yet. */
const beginAt = (
  now: Date,
  {
    id,
    key,
    origin,
    untrusted,
    baselineId,
    defaultBranch,
  }: Pick<LockedExecution, "id" | "key" | "untrusted" | "baselineId" | "defaultBranch"> & { origin: ExecutionOrigin },
): LockedExecution => ({
  id,
  key,
  status: "running",
  mode: "report",
  trigger: "upload",
  branch: origin.branch ?? null,
  commit: origin.commit ?? null,
  pullRequest: origin.pullRequest ?? null,
  baseBranch: origin.baseBranch ?? null,
  queueRef: origin.queueRef ?? null,
  buildUrl: origin.buildUrl ?? null,
  environment: origin.environment ?? null,
  createdAt: now.toISOString(),
  startedAt: null,
  completedAt: null,
  sample: false,
  untrusted,
  probe: false,
  rerunOf: null,
  buildId: null,
  repeatedStatus: null,
  baselineId,
  depth: 0,
  reruns: 0,
  failFast: null,
  defaultBranch,
});

const agrees = (
  execution: Pick<LockedExecution, "branch" | "queueRef" | "commit">,
  { branch, queueRef, commit }: Pick<ExecutionQuery, "branch" | "queueRef" | "commit">,
): boolean =>
  isSameIfKnown(execution.queueRef ?? execution.branch, queueRef ?? branch) &&
  (execution.commit === null || commit === null || isSameCommit(execution.commit, commit));

const isSameIfKnown = (a: string | null, b: string | null): boolean => a === null || b === null || a === b;

const isUntrusted = ({ untrusted }: Partial<UploadParameters>): boolean => untrusted === true;

/** Refuses an upload that names its execution and says something else of it. */
function requireSame(execution: LockedExecution, parameters: UploadParameters): void {
  const { execution_key: key, branch, commit } = parameters;
  const untrusted = isUntrusted(parameters);
  if (untrusted !== execution.untrusted)
    refuse(
      `Cannot read "untrusted": expected ${execution.untrusted}, as the execution of "execution_id" was created, got ${untrusted}`,
    );
  if (key !== undefined && execution.key !== key)
    refuse(`Cannot read "execution_key": the execution of "execution_id" has another key`);
  const known = execution.queueRef ?? execution.branch;
  if (branch !== undefined && known !== null && branch !== known)
    refuse(`Cannot read "branch": the execution of "execution_id" is of branch "${known}", got "${branch}"`);
  if (commit !== undefined && execution.commit !== null && !isSameCommit(commit, execution.commit))
    refuse(`Cannot read "commit": the execution of "execution_id" is of commit "${execution.commit}", got "${commit}"`);
}
