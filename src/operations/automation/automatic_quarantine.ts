/** The actions of automations that quarantine a flaky test case and release it after its recovery. */

import type { Action } from "../../schema/automation_actions.ts";
import type { ActionResult } from "../../schema/automation_runs.ts";
import type { Actor } from "../../schema/audit.ts";
import type { EventRow } from "../../store/events.ts";
import type { Tx } from "../../database/connect.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import { lockBugs } from "../../store/bug_reports.ts";
import {
  countAutomaticQuarantines,
  deleteAutomaticQuarantine,
  deleteBrokenQuarantines,
  insertAutomaticQuarantine,
  lockQuarantineSubject,
  type QuarantineSubject,
  selectSuiteSize,
} from "../../store/quarantines.ts";
import { quarantineReason } from "../../wording/quarantine_reason.ts";

type Result = Omit<ActionResult, "type">;
type Limits = Pick<Extract<Action, { type: "quarantine" }>, "maxTests" | "maxShare" | "days">;

/** What an action of quarantine is about. */
type QuarantineOccasion = {
  teamId: string;
  projectId: string;
  /** The name of the automation. */
  automation: string;
  event: EventRow;
  dryRun: boolean;
};

const skipped = (reason: string): Result => ({ status: "skipped", reason });

export async function quarantineFlaky(sql: Tx, limits: Limits, occasion: QuarantineOccasion): Promise<Result> {
  const { projectId, automation, event, dryRun, teamId } = occasion;
  const testCaseId = event.data.testCase?.id;
  // Automations of several servers count one after the other. The lock is that of the bugs because the same transaction may open
  // a bug before or after this: two locks in both orders could wait for each other.
  await lockBugs(sql, projectId);
  const subject = testCaseId === undefined ? undefined : await lockQuarantineSubject(sql, projectId, testCaseId);
  if (!subject) return skipped("The test was deleted");
  const about = { testCaseId: subject.id };
  const refusal = refusalOf(subject) ?? (await findCapReached(sql, projectId, limits));
  if (refusal !== undefined) return { ...skipped(refusal), ...about };
  const reason = quarantineReason(subject, event.data.execution?.commit ?? null);
  const period = `for ${limits.days === 1 ? "1 day" : `${limits.days} days`}`;
  if (dryRun) return { status: "planned", reason: `Would quarantine the test ${period}. ${reason}`, ...about };
  const { days } = limits;
  await insertAutomaticQuarantine(sql, projectId, { testCase: subject.number, reason, days, automation });
  await recordChange(sql, teamId, projectId, { automation, testCaseId: subject.id, reason });
  return { status: "done", reason: `Quarantined the test ${period}. ${reason}`, ...about };
}

function refusalOf({ isBroken, isFlaky, isQuarantined, automation }: QuarantineSubject): string | undefined {
  if (isBroken) return "Not quarantined: the test is broken on the default branch";
  if (!isFlaky) return "Not quarantined: the test is no longer flaky";
  if (!isQuarantined) return undefined;
  return automation === null
    ? "A person has quarantined the test already"
    : `The automation ${JSON.stringify(automation)} has quarantined the test already`;
}

/** Only the quarantines of automations count: a person may quarantine as many tests as needed. */
async function findCapReached(sql: Tx, projectId: string, { maxTests, maxShare }: Limits): Promise<string | undefined> {
  const held = await countAutomaticQuarantines(sql, projectId);
  if (held >= maxTests)
    return `Cap reached: ${held} tests are quarantined automatically, and at most ${maxTests} may be`;
  const size = await selectSuiteSize(sql, projectId);
  if ((held + 1) * 100 <= maxShare * size) return undefined;
  return `Cap reached: ${held + 1} of ${size} tests on the default branch would be more than ${maxShare} %`;
}

export async function releaseRecovered(sql: Tx, occasion: QuarantineOccasion): Promise<Result> {
  const { projectId, automation, event, dryRun, teamId } = occasion;
  const testCaseId = event.data.testCase?.id;
  await lockBugs(sql, projectId);
  const subject = testCaseId === undefined ? undefined : await lockQuarantineSubject(sql, projectId, testCaseId);
  if (!subject) return skipped("The test was deleted");
  const about = { testCaseId: subject.id };
  if (!subject.isQuarantined) return { ...skipped("The test is not quarantined"), ...about };
  if (subject.automation === null)
    return { ...skipped("A person has quarantined the test, and only a person releases it"), ...about };
  if (subject.isFlaky) return { ...skipped("The test is flaky again"), ...about };
  if (dryRun) return { status: "planned", reason: "Would release the test: it has recovered", ...about };
  await deleteAutomaticQuarantine(sql, projectId, subject.number);
  await recordChange(sql, teamId, projectId, { automation, testCaseId: subject.id, reason: "Recovered" });
  return { status: "done", reason: "Released the test: it has recovered", ...about };
}

/**
 * Ends the automatic quarantine of broken test cases, in the transaction that counts results, so that the quarantine does not hide the
 * failure. A quarantine that a person began stays.
 */
export async function releaseBroken(sql: Tx, projectId: string): Promise<void> {
  for (const { teamId, id, automation } of await deleteBrokenQuarantines(sql, projectId))
    await recordChange(sql, teamId, projectId, { automation, testCaseId: id, reason: "Broken on the default branch" });
}

function recordChange(
  sql: Tx,
  teamId: string,
  projectId: string,
  { automation, testCaseId, reason }: { automation: string; testCaseId: string; reason: string },
) {
  const actor: Actor = { accountId: null, name: `automation ${automation}` };
  const details = { projectId, testCaseIds: [testCaseId], fields: ["quarantine"], reason };
  return insertAuditEntry(sql, teamId, actor, { action: "test_case.changed", subject: testCaseId, details });
}
