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
import { ActionForm, Danger, Hidden } from "../../components/form.tsx";
import { executionPath } from "../../site/paths.ts";
import { howToRepeat } from "./rerun.tsx";
import { action } from "../../site/action.ts";

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
            fields={<Hidden name="failedOnly" value="true" />}
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

const toEntry =
  (action: AuditAction) =>
  ({ id, key }: { id: string; key: string | null }, { project }: { project: { id: string } }): NewAuditEntry => ({
    action,
    subject: key ?? id,
    details: { projectId: project.id, executionId: id },
  });

const onePath = "/projects/:projectId/executions/:executionId";

export const rerunForm = action(
  `${onePath}/rerun`,
  { access: "member", fields: v.strictObject({ failedOnly: v.optional(v.literal("true")) }) },
  {
    read: ({ project, fields, publicUrl }) => ({
      ...{ failedOnly: fields.failedOnly === "true", teamId: project.teamId, publicUrl, now: new Date() },
    }),
    act: (sql, { project, params }, asked) => rerunEnded(sql, project.id, params.executionId, asked),
    record: (rerun, { project, params }, { failedOnly }) => ({
      action: "execution.rerun",
      subject: params.executionId,
      details: { projectId: project.id, rerun, failedOnly },
    }),
    done: ({ project }, id) => executionPath(project.id, id),
  },
);

export const completeForm = action(
  `${onePath}/complete`,
  { access: "member" },
  {
    act: (sql, { project, params }) => completeExecution(sql, project.id, params.executionId, new Date()),
    record: toEntry("execution.completed"),
    done: ({ project, params }) => executionPath(project.id, params.executionId),
  },
);

export const cancelForm = action(
  `${onePath}/cancel`,
  { access: "member" },
  {
    act: (sql, { project, params }) => cancelExecution(sql, project.id, params.executionId, new Date()),
    record: toEntry("execution.cancelled"),
    done: ({ project, params }) => executionPath(project.id, params.executionId),
  },
);

export const deleteForm = action(
  `${onePath}/delete`,
  { access: "owner" },
  {
    act: async (sql, { project, params }) => (await removeExecution(sql, project.id, params.executionId)) || absent(),
    record: toEntry("execution.deleted"),
    done: ({ project }) => `/projects/${project.id}/executions`,
  },
);
