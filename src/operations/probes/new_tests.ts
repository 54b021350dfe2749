/** New tests: what an execution has added is run several times more, as verifications. */

import type { NewTestCheck } from "../../store/new_tests.ts";
import type { Database, Tx } from "../../database/connect.ts";
import { type LockedExecution, lockExecution } from "../../store/executions.ts";
import { lockNewTestCheck, selectNewTestCheck, selectNewTests, updateNewTestCheckDone } from "../../store/new_tests.ts";
import { SERVER } from "../../schema/audit.ts";
import { isOnDefaultBranch } from "../executions/origin.ts";
import { catchUp } from "../health/catch_up.ts";
import { beginNewTestVerification } from "./verifications.ts";

/** The maximum number of new tests of a task in one execution that are run again. */
const MAX_NEW_TESTS = 20;

/**
 * Begins the verifications of one task whose execution has ended. False: there is none. The results of the default branch are
 * counted first, because what is counted decides which tests are new.
 */
export async function checkNewTests(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  take: (check: NewTestCheck) => void,
): Promise<boolean> {
  const check = await selectNewTestCheck(pool);
  if (!check) return false;
  take(check);
  await catchUp(pool, begin, check.projectId);
  await begin(async (sql) => {
    // The execution first, as whoever deletes it locks it before the check.
    const execution = await lockExecution(sql, check.projectId, check.executionId);
    if (!execution || !(await lockNewTestCheck(sql, check))) return;
    await beginVerifications(sql, execution, check);
    await updateNewTestCheckDone(sql, check);
  });
  return true;
}

async function beginVerifications(
  sql: Tx,
  execution: LockedExecution,
  { projectId, executionId, runId, runs }: NewTestCheck,
): Promise<void> {
  const { commit, baselineId, status, untrusted } = execution;
  // Without a baseline all tests would be new.
  if (commit === null || baselineId === null || untrusted || isOnDefaultBranch(execution, execution)) return;
  if (status !== "passed" && status !== "failed") return;
  for (const testCase of await selectNewTests(sql, projectId, runId, MAX_NEW_TESTS))
    await beginNewTestVerification(sql, projectId, {
      ...{ testCase, commit, runs, release: false, actor: SERVER },
      ...{ newIn: executionId, now: new Date() },
    });
}
