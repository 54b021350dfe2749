/** Verifications: begun, advanced until they have their answer, cancelled. */

import { countWantedProbes, decideVerification, type VerificationTally } from "../../rules/verification.ts";
import type { Actor } from "../../schema/audit.ts";
import { refuse, refuseAbsent } from "../../schema/refusal.ts";
import type { VerificationStatus } from "../../schema/verifications.ts";
import type { Tx } from "../../database/connect.ts";
import { lockExecution } from "../../store/executions.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import { lockBugs } from "../../store/bug_reports.ts";
import { insertVerified } from "../../store/events.ts";
import { updateTestCases } from "../../store/test_cases.ts";
import {
  countRunningVerifications,
  insertVerification,
  type LockedVerification,
  lockDueVerification,
  lockVerification,
  selectHasRunningNewTests,
  tallyProbes,
  updateVerification,
} from "../../store/verifications.ts";
import { verificationWords } from "../../wording/verification.ts";
import { announceChange } from "../executions/end_events.ts";
import { cancelProbes, countFreeRunners, createProbes, refuseUnlessProbeable } from "./probes.ts";

/** The maximum number of verifications of a project that run at the same time. */
const MAX_RUNNING = 20;

export type NewVerification = {
  testCase: { id: string; taskSlug: string };
  commit: string;
  runs: number;
  release: boolean;
  actor: Actor;
  now: Date;
};

/** In a transaction: begins the verification of a test that the execution `newIn` has added. */
export const beginNewTestVerification = (
  sql: Tx,
  projectId: string,
  verification: NewVerification & { newIn: string },
): Promise<string> => insertAndAdvance(sql, projectId, verification);

/** In a transaction. Returns the id. Refuses a test case that no runner can run alone. */
export async function beginVerification(sql: Tx, projectId: string, verification: NewVerification): Promise<string> {
  await refuseUnlessProbeable(sql, projectId, verification.testCase.taskSlug);
  if ((await countRunningVerifications(sql, projectId)) >= MAX_RUNNING)
    refuse(`Cannot verify the test case: ${MAX_RUNNING} verifications of the project are running`);
  return await insertAndAdvance(sql, projectId, { ...verification, newIn: null });
}

async function insertAndAdvance(
  sql: Tx,
  projectId: string,
  { testCase, commit, runs, release, actor, newIn, now }: NewVerification & { newIn: string | null },
): Promise<string> {
  const id = Bun.randomUUIDv7("hex", now.getTime());
  const { accountId, name: requestedBy } = actor;
  await insertVerification(sql, projectId, {
    ...{ id, testCaseId: testCase.id, commit, runs, release, accountId, requestedBy, newIn, now },
  });
  await advance(sql, (await lockVerification(sql, projectId, id))!);
  return id;
}

/** In a transaction: looks at the verification that is due next. False: none is. */
export async function advanceDueVerification(
  sql: Tx,
  take: (verification: LockedVerification) => void,
): Promise<boolean> {
  const verification = await lockDueVerification(sql);
  if (!verification) return false;
  take(verification);
  await advance(sql, verification);
  return true;
}

async function advance(sql: Tx, verification: LockedVerification): Promise<void> {
  const { projectId, id, runs, commit, testCaseId, taskSlug } = verification;
  const tally = await tallyProbes(sql, projectId, id);
  const status = decideVerification(runs, tally);
  if (status !== "running") return await end(sql, verification, tally, status);
  const wanted = countWantedProbes(runs, tally, await countFreeRunners(sql, projectId, taskSlug));
  const commits = Array.from({ length: wanted }, () => commit);
  if (wanted > 0)
    await createProbes(sql, projectId, {
      ...{ testCaseId, taskSlug, commits, owner: { verificationId: id }, now: new Date() },
    });
  await updateVerification(sql, verification, { ...tally, status, released: false });
}

async function end(
  sql: Tx,
  verification: LockedVerification,
  tally: VerificationTally,
  status: Exclude<VerificationStatus, "running">,
): Promise<void> {
  const { projectId, id, testCaseId, commit, newIn } = verification;
  await cancelProbes(sql, projectId, { verificationId: id }, "The verification has its answer");
  const statement = verificationWords({ ...tally, status });
  const released = status === "passed" && verification.release && (await release(sql, verification, statement));
  await updateVerification(sql, verification, { ...tally, status, released });
  if (newIn !== null) return await announceNewTests(sql, projectId, newIn);
  if (status === "cancelled") return;
  const { passed, failed } = tally;
  await insertVerified(sql, projectId, testCaseId, { id, commit, status, passed, failed, statement, released });
}

/** The last of the verifications of an execution announces that there is something new about it. */
async function announceNewTests(sql: Tx, projectId: string, executionId: string): Promise<void> {
  // Two that end at once take turns: the second one sees that the first one has ended.
  const execution = await lockExecution(sql, projectId, executionId);
  if (execution && !(await selectHasRunningNewTests(sql, projectId, executionId)))
    await announceChange(sql, projectId, execution);
}

/** Ends the quarantine of the test case, on behalf of who began the verification. False: there is none. */
async function release(
  sql: Tx,
  { projectId, teamId, testCaseId, commit, accountId, requestedBy }: LockedVerification,
  statement: string,
): Promise<boolean> {
  // Others that change quarantines in the same transaction as bugs lock the bugs first.
  await lockBugs(sql, projectId);
  const done = await updateTestCases(sql, projectId, [testCaseId], { quarantine: null });
  if ("absent" in done || done.changed === 0) return false;
  const reason = `Verified at ${commit.slice(0, 12)}: ${statement}`;
  const details = { projectId, testCaseIds: [testCaseId], fields: ["quarantine"], reason };
  await insertAuditEntry(
    sql,
    teamId,
    { accountId, name: requestedBy },
    {
      ...{ action: "test_case.changed", subject: testCaseId, details },
    },
  );
  return true;
}

/** In a transaction: stops it and its probes. Refuses one that has ended otherwise. */
export async function cancelVerification(sql: Tx, projectId: string, id: string): Promise<void> {
  const verification = (await lockVerification(sql, projectId, id)) ?? refuseAbsent();
  const { status } = verification;
  if (status === "cancelled") return;
  if (status !== "running") refuse(`Cannot cancel the verification: it has ended as "${status}"`);
  await end(sql, verification, await tallyProbes(sql, projectId, id), "cancelled");
}
