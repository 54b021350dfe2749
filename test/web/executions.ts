/** What tests of the pages of executions share: they create executions, and look at their pages. */

import type { Asking } from "../asking.ts";
import type { createPages, Shown, Who } from "./browser.ts";

type Pages = Pick<Awaited<ReturnType<typeof createPages>>, "look" | "fill">;
type Project = Pick<Asking, "uploadReport" | "post"> & { path: string };

/** The query of a complete build of main. */
export const main = (key: string) => ({
  execution_key: key,
  branch: "main",
  commit: `aaaaaaa${key}`,
  complete: "true",
});

export const pathOf = ({ path }: Pick<Project, "path">, id: string) => `${path}/executions/${id}`;

/** Uploads a report. Returns the id of its execution. */
export const upload = async (mine: Project, query: Record<string, string>, body: string): Promise<string> =>
  (await mine.uploadReport(body, query)).executionId;

/** Returns the id of the execution. */
export const create = async (mine: Project, body: unknown): Promise<string> =>
  (await mine.post("/executions", body)).id;

/** Opens a page, or sends a form to it. */
export const createVisit =
  ({ look, fill }: Pages) =>
  (path: string, who: Who = "owner", fields?: Record<string, string>): Promise<Shown> =>
    fields ? fill(who, path, fields) : look(who, path);
