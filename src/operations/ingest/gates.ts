/** Decides the gates that uploads ask for, and records the decisions. */

import type { DecidedRun } from "./decide.ts";
import type { MatchedReport } from "./facts.ts";
import type { ResolvedReport } from "./prepare.ts";
import { gateQuietUpload, gateUpload } from "../executions/gate.ts";
import { isFailure } from "../../rules/merge.ts";
import { latestAttempts, WHOLE } from "../../rules/run_outcome.ts";
import type { GateDecision } from "../../schema/gate.ts";
import type { Tx } from "../../database/connect.ts";
import { updateGate } from "../../store/gate.ts";
import type { Attempt } from "../../store/test_runs.ts";

const failedIn = ({ results }: ResolvedReport): number[] =>
  results.flatMap(({ testCase, letter }) => (isFailure(letter) ? testCase : []));

/** Returns the decision about the first upload of a run in which nothing failed; undefined if the upload asks for none. */
export function decideQuietGate({ parameters }: MatchedReport, { run, attempt }: DecidedRun): GateDecision | undefined {
  if (parameters.gate === undefined) return undefined;
  const { exitCode, failedCases, exitCase, partial } = attempt;
  const upload = { exitCode, failedCases, isStandIn: exitCase !== null, isPartial: partial };
  return gateQuietUpload(parameters.gate, run.taskSlug, upload, run.shards);
}

/**
 * Decides the gate in the transaction of the upload, after its failures were judged. `attempts` are all attempts of the run, including this
 * upload. Returns undefined if the upload asks for no decision.
 */
export async function decideGate(
  sql: Tx,
  projectId: string,
  { parameters, resolved }: MatchedReport,
  { runId, attempts }: { runId: string; attempts: readonly Attempt[] },
): Promise<GateDecision | undefined> {
  const { gate, gate_missing, gate_dry_run, shard: given } = parameters;
  if (gate === undefined) return undefined;
  const shard = given?.index ?? WHOLE;
  const { digest } = resolved;
  const isReplaced = latestAttempts(attempts).find((attempt) => attempt.shard === shard)?.digest !== digest;
  const upload = { runId, shard, testCases: failedIn(resolved), isReplaced };
  const decision = await gateUpload(sql, projectId, { mode: gate, missingPercent: gate_missing }, upload);
  if (!gate_dry_run) await updateGate(sql, projectId, { runId, shard, digest }, decision);
  return decision;
}
