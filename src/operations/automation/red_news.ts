/** Whether the failure of an execution is news: a message says that a task of a branch is red once, until it is green again. */

import { toFacts } from "../../rules/automation.ts";
import { counted } from "../../wording/numbers.ts";
import { isTaskAmong } from "../../rules/variants.ts";
import type { Action } from "../../schema/automation_actions.ts";
import type { Tx } from "../../database/connect.ts";
import type { AutomationRow } from "../../store/automations.ts";
import { type EventRow, insertRedTaskMessages } from "../../store/events.ts";

/** Returns why a message repeats a known state, in the transaction that sends it. Undefined: it is new, and is recorded as known. */
export async function findRedNews(
  sql: Tx,
  { teamId, automation, action, event }: { teamId: string; automation: AutomationRow; action: Action; event: EventRow },
): Promise<string | undefined> {
  const { type, projectId, defaultBranch, data } = event;
  const { redTasks } = data.execution ?? {};
  const { branch } = toFacts(data, projectId, defaultBranch);
  if (type !== "execution.failed" || !redTasks || projectId === null || branch === null) return undefined;
  const { taskSlugs } = automation.conditions;
  const slugs = redTasks.filter((slug) => !taskSlugs || isTaskAmong(slug, taskSlugs));
  const index = automation.actions.indexOf(action);
  const place = { teamId, automationId: automation.id, action: index, projectId, branch };
  if (slugs.length === 0) return `No task of ${branch} is red by it`;
  if (await insertRedTaskMessages(sql, place, slugs)) return undefined;
  const named = slugs.filter((slug) => slug !== "");
  const [first = branch, ...others] = named;
  const what = others.length === 0 ? `${first} has` : `${first} and ${counted(others.length, "other task")} have`;
  return `No news: ${what} been red since an earlier message`;
}
