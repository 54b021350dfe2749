/** Checks whether the objects of a path exist, if the rest of a request is invalid, because absence is reported first. */

import { numberOfTestCase } from "../rules/test_case_id.ts";
import type { Sql } from "../database/connect.ts";

type Params = Readonly<Record<string, string>>;

const LOOK_UPS: Record<string, (sql: Sql, params: Params) => Promise<{ length: number }>> = {
  executionId: (sql, { projectId, executionId }) => sql`
    select from execution where project_id = ${projectId!} and id = ${executionId!}`,
  keyId: (sql, { projectId, keyId }) => sql`
    select from api_key where project_id = ${projectId!} and id = ${keyId!} and scope <> 'runner'`,
  leaseId: (sql, { projectId, leaseId }) => sql`
    select from lease where project_id = ${projectId!} and id = ${leaseId!}`,
  attachmentId: (sql, { projectId, attachmentId }) => sql`
    select from attachment where project_id = ${projectId!} and id = ${attachmentId!}`,
  testCaseId: (sql, { projectId, testCaseId }) => sql`
    select from test_case
    where project_id = ${projectId!} and number = ${numberOfTestCase(testCaseId!)} and id = ${testCaseId!}`,
  verificationId: (sql, { projectId, verificationId }) => sql`
    select from verification where project_id = ${projectId!} and id = ${verificationId!}`,
  bugReportId: (sql, { projectId, bugReportId }) => sql`
    select from bug_report where project_id = ${projectId!} and id = ${bugReportId!}`,
  environmentId: (sql, { teamId, environmentId }) => sql`
    select from environment where team_id = ${teamId!} and id = ${environmentId!}`,
  integrationId: (sql, { teamId, integrationId }) => sql`
    select from integration where team_id = ${teamId!} and id = ${integrationId!}`,
  deliveryId: (sql, { teamId, integrationId, deliveryId }) => sql`
    select from delivery where team_id = ${teamId!} and integration_id = ${integrationId!} and id = ${deliveryId!}`,
  infrastructureRuleId: (sql, { teamId, infrastructureRuleId }) => sql`
    select from infrastructure_rule where team_id = ${teamId!} and id = ${infrastructureRuleId!}`,
  automationId: (sql, { teamId, automationId }) => sql`
    select from automation where team_id = ${teamId!} and id = ${automationId!}`,
};

/** The ids that can stand in a path below its project or team. */
export const PATH_IDS: readonly string[] = Object.keys(LOOK_UPS);

/** Whether all ids in the path below the project or team exist. */
export async function selectAllExist(sql: Sql, params: Params): Promise<boolean> {
  for (const name of Object.keys(params)) {
    const lookUp = LOOK_UPS[name];
    if (lookUp && (await lookUp(sql, params)).length === 0) return false;
  }
  return true;
}
