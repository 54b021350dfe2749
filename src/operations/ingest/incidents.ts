/** Finds the failures of a run that nobody's change has caused. */

import { isDisturbedRun } from "../health/flaky_evidence.ts";
import { BAD_RUN, FAMILY, isIll, isIncident, isOwnDoing, SHARED } from "../../rules/incident.ts";
import type { IncidentSign } from "../../schema/failures.ts";
import type { Tx } from "../../database/connect.ts";
import type { JudgedRun } from "../../store/failures.ts";
import {
  markIncidents,
  markOthers,
  selectFamilies,
  selectMayHaveIllMachine,
  selectMachineRuns,
  selectSightings,
} from "../../store/incidents.ts";

/** So many causes of a run, those of most failures, are looked for in other runs. */
const MAX_FAMILIES = 20;

/**
 * In the transaction that judges the failures of a run: marks those of an incident, and tells whether there are any.
 * `fresh` is the number of its new failures.
 */
export async function findIncidents(
  sql: Tx,
  projectId: string,
  run: JudgedRun & { passed: number; failed: number; flaky: number },
  fresh: number,
): Promise<boolean> {
  if (fresh === 0) return false;
  if (await isDisturbedRun(sql, projectId, run)) {
    await excuse(sql, projectId, run.id, "retries");
    return true;
  }
  const ofCauses = fresh >= FAMILY.cases && (await findCauses(sql, projectId, run));
  const mayBeIll = fresh >= BAD_RUN.cases || (await selectMayHaveIllMachine(sql, projectId, [timeOf(run)]));
  return (mayBeIll && (await findIllMachine(sql, projectId, run))) || ofCauses;
}

const timeOf = ({ completedAt }: Pick<JudgedRun, "completedAt">) =>
  completedAt === null ? Date.now() : Date.parse(completedAt);

/** All new failures of the run, unless several tests fail for one reason in the code: chance does not do that. */
async function excuse(sql: Tx, projectId: string, runId: string, sign: IncidentSign): Promise<void> {
  const own = (await selectFamilies(sql, projectId, runId, SHARED)).filter(({ sample }) => isOwnDoing(sample));
  await markOthers(sql, projectId, runId, sign, own);
}

async function findCauses(sql: Tx, projectId: string, run: JudgedRun): Promise<boolean> {
  const causes: string[] = [];
  for (const family of (await selectFamilies(sql, projectId, run.id, FAMILY)).slice(0, MAX_FAMILIES))
    if (isIncident(family, await selectSightings(sql, projectId, run, family.cause))) causes.push(family.cause);
  if (causes.length > 0) await markIncidents(sql, projectId, run.id, causes);
  return causes.length > 0;
}

/** The runs of the machine that have shown it are told as what they are as well, though they came before. */
async function findIllMachine(sql: Tx, projectId: string, run: JudgedRun): Promise<boolean> {
  const runs = await selectMachineRuns(sql, projectId, run);
  if (!runs || !isIll(runs.mine, runs.others)) return false;
  for (const { id } of runs.others.filter(({ isMine, isBad }) => isMine && isBad))
    await excuse(sql, projectId, id, "machine");
  await excuse(sql, projectId, run.id, "machine");
  return true;
}
