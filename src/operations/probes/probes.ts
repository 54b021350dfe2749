/** Probes: executions that run one test case at one commit, for a verification or for searches of culprits. */

import { hasEnded } from "../../rules/execution.ts";
import { refuse } from "../../schema/refusal.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import { selectOpenListing } from "../../store/culprit_listings.ts";
import { insertExecution } from "../../store/new_executions.ts";
import { lockExecution } from "../../store/executions.ts";
import {
  countFreeSlots,
  insertProbe,
  type NewProbe,
  type ProbeOwner,
  type ProbePlan,
  selectHasProbeRunner,
  selectIsWantedByOthers,
  selectNextNumber,
  selectOpenProbeIds,
  selectProbePlan,
  updateLeftProbe,
} from "../../store/probes.ts";
import { advanceExecution } from "../executions/advance.ts";
import { planTasks } from "../executions/executions.ts";

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
export const createProbes = (sql: Tx, projectId: string, probes: NewProbes): Promise<string[]> => {
  const { testCaseId, taskSlug, commits, owner, now } = probes;
  const tests = [{ testCaseId, owner }];
  return createSharedProbes(sql, projectId, { taskSlug, probes: commits.map((commit) => ({ commit, tests })), now });
};

/** A probe that runs the test cases of several searches together. */
export type SharedProbe = { commit: string; tests: readonly { testCaseId: string; owner: ProbeOwner }[] };

/** In a transaction. Returns the ids of the executions. */
export async function createSharedProbes(
  sql: Tx,
  projectId: string,
  { taskSlug, probes, now }: { taskSlug: string; probes: readonly SharedProbe[]; now: Date },
): Promise<string[]> {
  const plan = await planOf(sql, projectId, taskSlug);
  const ids: string[] = [];
  for (const { commit, tests } of probes) {
    const rows = tests.map(({ testCaseId, owner }) => ({ test: { testCaseId, commit }, owner }));
    ids.push(await createProbe(sql, projectId, plan, { taskSlug, commit, rows, now }));
  }
  return ids;
}

type ListingSearch = { id: string; taskSlug: string; goodCommit: string; badCommit: string };

/** In a transaction: a search waits for a probe that lists its range for another search. Returns false if there is none. */
export async function joinListing(sql: Tx, projectId: string, search: ListingSearch, now: Date): Promise<boolean> {
  const { id, taskSlug } = search;
  const open = await selectOpenListing(sql, projectId, search);
  const execution = open === undefined ? undefined : await lockExecution(sql, projectId, open);
  if (!execution || hasEnded(execution.status)) return false;
  const number = await selectNextNumber(sql, projectId, execution.id);
  const row = { test: null, owner: { culpritSearchId: id } };
  await insertProbe(sql, projectId, { ...row, executionId: execution.id, number, taskSlug, now });
  return true;
}

/** In a transaction: a runner lists the commits of the range of a search. */
export async function createListing(
  sql: Tx,
  projectId: string,
  { id, taskSlug }: Pick<ListingSearch, "id" | "taskSlug">,
  now: Date,
): Promise<void> {
  const row = { test: null, owner: { culpritSearchId: id } };
  const plan = await planOf(sql, projectId, taskSlug);
  await createProbe(sql, projectId, plan, { taskSlug, rows: [row], now });
}

type Creation = { taskSlug: string; commit?: string; rows: readonly Pick<NewProbe, "test" | "owner">[]; now: Date };

async function createProbe(sql: Tx, projectId: string, plan: ProbePlan, probe: Creation): Promise<string> {
  const { taskSlug, commit, rows, now } = probe;
  const { labels, timeoutSeconds, concurrencyGroup, environment, variables } = plan;
  const task = {
    ...{ slug: taskSlug, shards: 1, labels, priority: PROBE_PRIORITY },
    ...(timeoutSeconds === null ? {} : { timeoutSeconds }),
    ...(concurrencyGroup === null ? {} : { concurrencyGroup }),
  };
  const execution = await insertExecution(sql, projectId, {
    ...{ key: null, status: "queued", mode: "run", trigger: "probe", timeoutMinutes: null },
    ...{ commit, environment, untrusted: true, probe: true, now },
    ...(variables === null ? {} : { variables }),
  });
  for (const [at, row] of rows.entries())
    await insertProbe(sql, projectId, { ...row, executionId: execution.id, number: at + 1, taskSlug, now });
  await planTasks(sql, projectId, execution, [task], now);
  return execution.id;
}

/** In a transaction: cancels the probes that are queued or running. One that others want as well goes on for them. */
export async function cancelProbes(sql: Tx, projectId: string, owner: ProbeOwner, reason: string): Promise<void> {
  for (const id of await selectOpenProbeIds(sql, projectId, owner)) {
    const execution = await lockExecution(sql, projectId, id);
    if (!execution || hasEnded(execution.status)) continue;
    // Two that cancel one probe at once take turns: the second one sees that the first one has left it.
    if (await selectIsWantedByOthers(sql, projectId, id, owner)) await updateLeftProbe(sql, projectId, id, owner);
    else await advanceExecution(sql, projectId, execution, "cancelled", { arrived: false, now: new Date(), reason });
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
