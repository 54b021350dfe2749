/** A task of an execution: its results, reports and log. */

import { type Page, page } from "../../site/page.ts";
import { loadTask, taskQuery } from "./load_task.ts";
import { taskView } from "./task_view.tsx";

export const tasks: Page[] = [
  page(
    "/projects/:projectId/executions/:executionId/tasks/:taskSlug",
    { access: "viewer", query: taskQuery },
    async ({ sql, project, params, query, now }) => {
      const address = { ...params, projectId: project.id };
      return taskView(address, query, await loadTask(sql, address, query), now);
    },
  ),
];
