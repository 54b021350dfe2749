/** Finds the team and the project in the path of a page, and refuses visitors who may not see them. */

import type { Sql } from "../../database/connect.ts";
import { isAtLeast } from "../../schema/accounts.ts";
import { selectProjectRef } from "../../store/projects.ts";
import type { Page, VisitorServices } from "./page.ts";
import { PageError, noSuchPage } from "./page_error.ts";
import type { PageFrame } from "./page_reply.ts";

/**
 * Completes the frame of a visitor. Throws a PageError: a visitor who is not a member of the team cannot see that it exists,
 * and a member without the required role sees who has it. The frame then includes the team for the error page.
 */
export async function enterFrame(
  fast: Sql,
  { access }: Page,
  { projectId, teamId }: Record<string, string>,
  frame: PageFrame,
): Promise<void> {
  if (access === "public" || (projectId === undefined && teamId === undefined)) return;
  const project = projectId === undefined ? undefined : await selectProjectRef(fast, projectId);
  const membership = frame.visitor!.teams.find((team) => team.teamId === (project ? project.teamId : teamId));
  if (!membership || (projectId !== undefined && !project)) throw noSuchPage();
  frame.team = { id: membership.teamId, name: membership.teamName };
  frame.role = membership.role;
  frame.project = project ?? null;
  if (access === "account" || isAtLeast(membership.role, access)) return;
  throw new PageError(
    403,
    access === "owner" ? "Only owners of the team can do this" : "Viewers cannot do this",
    `You are a ${membership.role} of ${membership.teamName}. An owner can change your role.`,
  );
}

/** Whether the visitor of a request may see the page now. Sessions and memberships can end while a stream is open. */
export async function mayStillSee(
  { fast, visitors }: { fast: Sql; visitors: VisitorServices },
  route: Page,
  params: Record<string, string>,
  request: Request,
): Promise<boolean> {
  const visitor = await visitors.find(request.headers.get("cookie"));
  if (!visitor) return false;
  try {
    await enterFrame(fast, route, params, { visitor, project: null, team: null, role: null });
    return true;
  } catch (error) {
    if (error instanceof PageError) return false;
    throw error;
  }
}
