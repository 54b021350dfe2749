/** The commands that start a runner, one for each project of a team. */

import type { Html } from "../../../http/html.ts";
import type { selectProjectsWithKeys } from "../../../store/projects.ts";
import type { Waiting } from "../../../store/runners.ts";
import { Empty } from "../../components/list.tsx";
import { Tag } from "../../components/status.tsx";

type Project = Awaited<ReturnType<typeof selectProjectsWithKeys>>[number];

type CommandProperties = {
  project: Project;
  /** Tasks of the project without a matching runner. */
  unserved: Waiting | undefined;
  publicUrl: string;
  isOpen: boolean;
};

/** For a task without a matching runner, the command has the missing labels. */
function StartCommand({ project, unserved, publicUrl, isOpen }: CommandProperties): Html {
  const labels = unserved?.labels ?? [];
  return (
    <details class="fold" open={isOpen}>
      <summary>
        For {project.name}
        {unserved ? [" ", <Tag kind="failed">missing</Tag>] : null}
      </summary>
      <pre data-copy>
        export ASSAY_URL={publicUrl} ASSAY_PROJECT={project.id}
        {"\n"}export ASSAY_KEY_FILE=assay.key{"\n"}assay runner --config assay.yaml --concurrency 2
        {labels.length > 0 ? ` --labels ${labels.join(",")}` : ""}
      </pre>
      <p class="hint">
        assay.key contains the key of the project
        {project.leading === null ? (
          [", which has none yet: ", <a href={`/projects/${project.id}/settings`}>generate one</a>]
        ) : (
          <>
            {" "}
            (<code>{project.leading}…</code>)
          </>
        )}
        .
      </p>
    </details>
  );
}

type CommandsProperties = {
  teamId: string;
  projects: readonly Project[];
  queue: readonly Waiting[];
  publicUrl: string;
};

/** Projects with tasks that no runner matches come first. */
export function StartCommands({ teamId, projects, queue, publicUrl }: CommandsProperties): Html {
  const unserved = new Map(queue.filter((row) => row.unserved > 0).map((row) => [row.projectId, row]));
  const ordered = projects.toSorted((a, b) => Number(unserved.has(b.id)) - Number(unserved.has(a.id)));
  return (
    <>
      <h2 id="start">
        Start a runner <small>on your own machine, next to assay.yaml, which defines the tasks</small>
      </h2>
      {ordered.length === 0 ? (
        <Empty>
          No projects yet: <a href={`/teams/${teamId}/settings#projects`}>create one</a> first.
        </Empty>
      ) : (
        <div class="card">
          {ordered.map((project, index) => (
            <StartCommand
              project={project}
              unserved={unserved.get(project.id)}
              publicUrl={publicUrl}
              isOpen={index === 0}
            />
          ))}
        </div>
      )}
    </>
  );
}
