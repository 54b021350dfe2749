/** Probes: executions that run one test case at one commit, for a verification or the search of a culprit. */

import { hasEnded } from "../../rules/execution.ts";
import { refuse } from "../../schema/refusal.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { insertExecution, lockExecution } from "../../store/executions.ts";
import {
  countFreeSlots,
  insertProbe,
  type ProbeOwner,
  type ProbePlan,
  selectHasProbeRunner,
  selectOpenProbeIds,
  selectProbePlan,
} from "../../store/probes.ts";
import { advanceExecution, planTasks } from "../executions/executions.ts";

/** Every other task takes precedence. */
const PROBE_PRIORITY = -100;

/** The plan for a task that no runner has run yet. */
const NO_PLAN: ProbePlan = {
  labels: [],
  timeoutSeconds: null,
  concurrencyGroup: null,
  environment: null,
  variables: null,
};

const planOf = async (sql: Sql, projectId: string, taskSlug: string): Promise<ProbePlan> =>
  (await selectProbePlan(sql, projectId, taskSlug)) ?? NO_PLAN;

export type NewProbes = {
  testCaseId: string;
  taskSlug: string;
  /** A probe for each, in this order. */
  commits: readonly string[];
  owner: ProbeOwner;
  now: Date;
};

/** In a transaction. Returns the ids of the executions, in the order of the commits. */
export async function createProbes(sql: Tx, projectId: string, probes: NewProbes): Promise<string[]> {
  const { testCaseId, taskSlug, commits, owner, now } = probes;
  const plan = await planOf(sql, projectId, taskSlug);
  const ids: string[] = [];
  for (const commit of commits)
    ids.push(await createProbe(sql, projectId, plan, { taskSlug, test: { testCaseId, commit }, owner, now }));
  return ids;
}

/** In a transaction: a runner lists the commits of the range that the search of a culprit has. Returns the id of the execution. */
export async function createListing(
  sql: Tx,
  projectId: string,
  listing: { taskSlug: string; culpritSearchId: string; now: Date },
): Promise<string> {
  const { taskSlug, culpritSearchId, now } = listing;
  const plan = await planOf(sql, projectId, taskSlug);
  return await createProbe(sql, projectId, plan, { taskSlug, test: null, owner: { culpritSearchId }, now });
}

type NewProbe = Omit<Parameters<typeof insertProbe>[2], "executionId">;

async function createProbe(sql: Tx, projectId: string, plan: ProbePlan, probe: NewProbe): Promise<string> {
  const { taskSlug, test, now } = probe;
  const { labels, timeoutSeconds, concurrencyGroup, environment, variables } = plan;
  const task = {
    ...{ slug: taskSlug, shards: 1, labels, priority: PROBE_PRIORITY },
    ...(timeoutSeconds === null ? {} : { timeoutSeconds }),
    ...(concurrencyGroup === null ? {} : { concurrencyGroup }),
  };
  const execution = await insertExecution(sql, projectId, {
    ...{ key: null, status: "queued", mode: "run", trigger: "probe", timeoutMinutes: null },
    ...{ commit: test?.commit, environment, untrusted: true, probe: true, now },
    ...(variables === null ? {} : { variables }),
  });
  await insertProbe(sql, projectId, { ...probe, executionId: execution.id });
  await planTasks(sql, projectId, execution, [task], now);
  return execution.id;
}

/** In a transaction: cancels the probes that are queued or running. */
export async function cancelProbes(sql: Tx, projectId: string, owner: ProbeOwner, reason: string): Promise<void> {
  for (const id of await selectOpenProbeIds(sql, projectId, owner)) {
    const execution = await lockExecution(sql, projectId, id);
    if (execution && !hasEnded(execution.status))
      await advanceExecution(sql, projectId, execution, "cancelled", { arrived: false, now: new Date(), reason });
  }
}

/** The number of probes of the task that runners could begin now. */
export async function countFreeRunners(sql: Sql, projectId: string, taskSlug: string): Promise<number> {
  const { labels } = await planOf(sql, projectId, taskSlug);
  return await countFreeSlots(sql, projectId, { taskSlug, labels });
}

/** Refuses a task that no runner of the last hour can run for one test case at any commit. */
export async function refuseUnlessProbeable(sql: Sql, projectId: string, taskSlug: string): Promise<void> {
  const { labels } = await planOf(sql, projectId, taskSlug);
  if (await selectHasProbeRunner(sql, projectId, { taskSlug, labels })) return;
  const having = labels.length === 0 ? "" : ` with the labels ${labels.join(", ")}`;
  refuse(
    `Cannot run the test case alone: no runner${having} that was seen within the last hour has "checkout" with "git", and ` +
      `"rerun", for the task ${JSON.stringify(taskSlug)} in its assay.yaml`,
  );
}
