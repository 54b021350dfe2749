/** The actions of an execution: rerun, complete, cancel, delete. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { absent } from "../../../http/problem.ts";
import { cancelExecution, completeExecution, removeExecution } from "../../../operations/executions/executions.ts";
import { rerunEnded } from "../../../operations/executions/reruns.ts";
import { hasEnded, sumTasks } from "../../../rules/execution.ts";
import type { AuditAction, NewAuditEntry } from "../../../schema/audit.ts";
import type { ExecutionRow } from "../../../store/executions.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { ActionForm, Danger } from "../../components/form.tsx";
import { SeeOther, form } from "../../site/page.ts";
import { executionPath } from "../../site/paths.ts";
import { write } from "../../site/write.ts";
import { howToRepeat } from "./rerun.tsx";

type ActionContext = {
  projectId: string;
  base: Path;
  publicUrl: string;
  csrf: string;
  role: string;
  execution: ExecutionRow;
  share: Html | null;
  /** Whether a runner or a CI integration would run the tasks again. */
  isRerunnable: boolean;
};

export function actionsOf({ base, csrf, role, execution, share, ...more }: ActionContext): Html | null {
  const { status, mode, tasks } = execution;
  if (role === "viewer") return null;
  const red = tasks.filter(({ verdict, status }) => verdict !== "passed" || status === "timed_out");
  const failed = sumTasks(tasks, "failed");
  // Runners rerun failed tests; CI integrations rerun the tasks that contain them.
  const again = mode === "run" && failed > 0 ? `${toCount(failed)} failed` : `${counted(red.length, "failed task")}`;
  const isOver = hasEnded(status);
  const forms = isOver
    ? [
        more.isRerunnable && red.length > 0 ? (
          <ActionForm
            action={`${base}/rerun`}
            csrf={csrf}
            label={`Rerun ${again}`}
            kind="main"
            fields={<input type="hidden" name="failedOnly" value="true" />}
          />
        ) : null,
        more.isRerunnable ? <ActionForm action={`${base}/rerun`} csrf={csrf} label="Rerun all" /> : null,
      ]
    : [
        <details class="menu" id="end-early">
          <summary class="button">End early</summary>
          <div>
            <ActionForm action={`${base}/complete`} csrf={csrf} label="Complete" />
            <p class="hint">Ends the execution with the results that have been reported so far.</p>
            <ActionForm action={`${base}/cancel`} csrf={csrf} label="Cancel" />
            <p class="hint">Stops the tasks that wait or run. The execution is cancelled, whatever its results.</p>
          </div>
        </details>,
      ];
  const remove =
    role === "owner" ? (
      <Danger
        action={`${base}/delete`}
        csrf={csrf}
        label="Delete execution"
        loss={`Its ${counted(sumTasks(tasks, "passed") + sumTasks(tasks, "failed") + sumTasks(tasks, "skipped"), "result")}, messages and logs are deleted. This cannot be undone.`}
      />
    ) : null;
  const hint =
    isOver && tasks.length > 0 && !execution.probe && !more.isRerunnable
      ? howToRepeat({ execution, red, ...more })
      : null;
  return (
    <div class="actions">
      {forms}
      {share || hint || remove ? (
        <details class="menu">
          <summary class="button">More</summary>
          <div>
            {share}
            {hint}
            {remove}
          </div>
        </details>
      ) : null}
    </div>
  );
}

export const rerunForm = form(
  "/projects/:projectId/executions/:executionId/rerun",
  { access: "member", fields: v.strictObject({ failedOnly: v.optional(v.literal("true")) }) },
  async (context) => {
    const { project, params, fields, publicUrl } = context;
    const failedOnly = fields.failedOnly === "true";
    const asked = { failedOnly, teamId: project.teamId, publicUrl, now: new Date() };
    const id = await write(
      context,
      "member",
      (sql) => rerunEnded(sql, project.id, params.executionId, asked),
      (rerun) => ({
        action: "execution.rerun",
        subject: params.executionId,
        details: { projectId: project.id, rerun, failedOnly },
      }),
    );
    return new SeeOther(executionPath(project.id, id));
  },
);

export const completeForm = form(
  "/projects/:projectId/executions/:executionId/complete",
  { access: "member" },
  async (context) => {
    const { project, params } = context;
    await write(
      context,
      "member",
      (sql) => completeExecution(sql, project.id, params.executionId, new Date()),
      toEntry("execution.completed", project),
    );
    return new SeeOther(executionPath(project.id, params.executionId));
  },
);

export const cancelForm = form(
  "/projects/:projectId/executions/:executionId/cancel",
  { access: "member" },
  async (context) => {
    const { project, params } = context;
    await write(
      context,
      "member",
      (sql) => cancelExecution(sql, project.id, params.executionId, new Date()),
      toEntry("execution.cancelled", project),
    );
    return new SeeOther(executionPath(project.id, params.executionId));
  },
);

export const deleteForm = form(
  "/projects/:projectId/executions/:executionId/delete",
  { access: "owner" },
  async (context) => {
    const { project, params } = context;
    await write(
      context,
      "owner",
      async (sql) => (await removeExecution(sql, project.id, params.executionId)) || absent(),
      toEntry("execution.deleted", project),
    );
    return new SeeOther(`/projects/${project.id}/executions`);
  },
);

const toEntry =
  (action: AuditAction, { id: projectId }: { id: string }) =>
  ({ id, key }: { id: string; key: string | null }): NewAuditEntry => ({
    action,
    subject: key ?? id,
    details: { projectId, executionId: id },
  });
