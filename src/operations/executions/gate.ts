/** Decides whether the failures of an upload or of an execution are forgiven. */

import { WORD_OF } from "../../rules/blame.ts";
import { forgivenBlames, gateExecution, type GatedTask, gateTask, type TaskGate } from "../../rules/gate.ts";
import { missingShardsOf } from "../../rules/shards.ts";
import { WHOLE } from "../../rules/run_outcome.ts";
import type { ExecutionStatus } from "../../schema/executions.ts";
import type { Blame } from "../../schema/failures.ts";
import type { ForgivenFailure, GateChoice, GateDecision, GateMode, UnclearFailure } from "../../schema/gate.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import {
  type GatedFailure,
  type GatedRun,
  selectGatedFailures,
  selectGatedRun,
  selectGatedRuns,
  type ShardFailures,
} from "../../store/gate.ts";
import { failureReason } from "../../wording/failure_reason.ts";
import { executionGateReasons, type GatedTaskText, taskGateReasons } from "../../wording/gate.ts";
import { taskReason } from "../../wording/reasons.ts";

const toTask = (run: GatedRun): GatedTask => ({
  slug: run.slug,
  status: run.status,
  verdict: run.verdict,
  isOnSharedBranch: run.isOnSharedBranch,
  isBaselineShared: run.isBaselineShared,
  isOutage: run.outage,
  missingShards: missingShardsOf(run),
  uploads: run.uploads,
  blames: run.blames,
  unjudged: Math.max(0, run.failed - run.judged),
  absence: run.absence,
});

const toText = (run: GatedRun): GatedTaskText => ({
  slug: run.slug,
  shards: run.shards,
  missingShards: missingShardsOf(run),
  reason: taskReason(run),
});

const toUnclear = ({ blame, ruleName, change, shares, evidence, ...ref }: GatedFailure): UnclearFailure => ({
  ...ref,
  reason: failureReason({ blame, ruleName, change, shares, evidence }) ?? "",
});

const toForgiven = (failure: GatedFailure): ForgivenFailure => ({
  ...toUnclear(failure),
  list: WORD_OF[failure.blame] as ForgivenFailure["list"],
});

/** A shard is judged by its own results: other shards may not have reported yet. */
function toShardTask(run: GatedRun, shard: number): GatedTask {
  const uploads = run.uploads.filter((upload) => upload.shard === shard);
  return {
    ...toTask(run),
    status: "failed",
    verdict: null,
    missingShards: [],
    absence: null,
    uploads,
    unjudged: uploads.reduce((sum, { counted }) => sum + counted, 0),
  };
}

type NamedFailures = Pick<GateDecision, "forgiven" | "unclear">;

async function namedOf(
  sql: Sql,
  projectId: string,
  mode: GateMode,
  { runs, forgiven, own }: { runs: readonly GatedRun[]; forgiven: number; own?: ShardFailures | undefined },
): Promise<NamedFailures> {
  const ids = runs.map(({ id }) => id);
  const select = (blames: readonly Blame[]) => selectGatedFailures(sql, projectId, ids, blames, own);
  const hasUnclear = runs.some(({ blames }) => blames.unclear);
  return {
    // Runs of one build are of one branch.
    forgiven: forgiven === 0 ? [] : (await select(forgivenBlames(mode, runs[0]!))).map(toForgiven),
    unclear: hasUnclear ? (await select(["unclear"])).map(toUnclear) : [],
  };
}

function toDecision(mode: GateMode, gate: TaskGate, text: GatedTaskText, named: NamedFailures): GateDecision {
  const reasons = taskGateReasons(gate, text);
  return { gate: mode, pass: reasons.length === 0, reasons, forgivenCount: gate.forgiven, ...named };
}

/** An upload in which nothing failed: nothing is to be read about it. */
export function gateQuietUpload(
  mode: GateMode,
  slug: string,
  upload: GatedTask["uploads"][number],
  shards: number,
): GateDecision {
  const task: GatedTask = {
    ...{ slug, status: "passed", verdict: null, isOutage: false, missingShards: [] },
    ...{ isOnSharedBranch: false, isBaselineShared: true },
    ...{ uploads: [upload], blames: {}, unjudged: 0, absence: null },
  };
  return toDecision(
    mode,
    gateTask(mode, task),
    { slug, shards, missingShards: [], reason: null },
    {
      ...{ forgiven: [], unclear: [] },
    },
  );
}

/** In the transaction of the upload, after its failures were judged. `testCases`: those that failed in its report. */
export async function gateUpload(
  sql: Tx,
  projectId: string,
  { mode, missingPercent }: GateChoice,
  {
    runId,
    shard,
    testCases,
    isReplaced,
  }: { runId: string; shard: number; testCases: readonly number[]; isReplaced: boolean },
): Promise<GateDecision> {
  const own = shard === WHOLE ? undefined : { shard, testCases };
  const run = (await selectGatedRun(sql, projectId, runId, own))!;
  const gate = gateTask(mode, { ...(own ? toShardTask(run, shard) : toTask(run)), isReplaced }, missingPercent);
  const named = await namedOf(sql, projectId, mode, { runs: [run], forgiven: gate.forgiven, own });
  return toDecision(mode, gate, toText(run), named);
}

export type GatedExecution = GateDecision & { final: boolean };

/** Decides about an execution with its reruns, or about one of its tasks. An unknown task has not reported. */
export async function readGate(
  sql: Sql,
  projectId: string,
  { mode, missingPercent }: GateChoice,
  { id, status }: { id: string; status: ExecutionStatus },
  taskSlug?: string,
): Promise<GatedExecution> {
  const runs = await selectGatedRuns(sql, projectId, id, taskSlug);
  const decision = gateExecution(mode, status, runs.map(toTask), {
    isWhole: taskSlug === undefined,
    missingPercent,
  });
  const count = decision.tasks.reduce((sum, { forgiven }) => sum + forgiven, 0);
  const named = await namedOf(sql, projectId, mode, { runs, forgiven: count });
  return {
    gate: mode,
    pass: decision.pass,
    final: decision.final,
    reasons: executionGateReasons(decision, runs.map(toText)),
    forgivenCount: count,
    ...named,
  };
}
