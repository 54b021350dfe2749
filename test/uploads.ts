/** `assay upload` in tests: into projects of a server, and what the server has made of it. */

import { expect } from "bun:test";
import { createAsking, type Project } from "./asking.ts";
import { start as startCommand, type Variables, variablesOf } from "./commands.ts";
import { type createHarness, junit } from "./harness.ts";

type Harness = Pick<Awaited<ReturnType<typeof createHarness>>, "url" | "ask" | "acme" | "addProject">;
export type UploadOptions = { folder?: string; variables?: Variables; input?: string };

/** For servers that never come back. */
export const SOON = ["--patience", "0.5"];
/** A wrapped command of the shell. */
export const script = (text: string) => ["--", "sh", "-c", text];
/** The part of such a command that writes a report. */
export const writes = (letters: string, name = "report.xml") => `printf '%s' '${junit(letters)}' > ${name}`;

export async function createUploads({ url, ask, acme, addProject }: Harness) {
  const start = (of: Project, args: string[], { folder, variables, input }: UploadOptions = {}) =>
    startCommand(["upload", ...args], { cwd: folder, env: { ...variablesOf(url, of), ...variables }, stdin: input });
  const list = (of: Project) => createAsking(ask, of).list("/executions?limit=100");
  const project = await addProject(acme);
  return {
    start,
    upload: (of: Project, args: string[], options?: UploadOptions) => start(of, args, options).ended,
    list,
    /** The only run of the project's only execution. */
    onlyRun: async (of: Project) => {
      const [{ id, tasks }, ...others] = await list(of);
      expect([others, tasks.length]).toEqual([[], 1]);
      return await createAsking(ask, of).get(`/executions/${id}/test-runs/${encodeURIComponent(tasks[0].slug)}`);
    },
    /** A project that has one upload, and the answer to it, for a receiver to give. */
    project,
    SAMPLE: (await ask(`POST /projects/${project.project}/test-runs`, { key: project.key, body: junit("p") })).body,
  };
}
