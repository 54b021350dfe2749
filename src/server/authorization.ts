/** Checks whether a key may call a route: its kind, the project or team that it belongs to, and its scope. */

import { absent, fail } from "../http/problem.ts";
import type { Caller } from "../request/callers.ts";
import type { Route } from "../request/route.ts";

const OF_PROJECTS = /^\/projects(?:\/|$)/;
const OF_TEAMS = /^\/teams(?:\/|$)/;
const CHALLENGE = { "WWW-Authenticate": "Bearer" };

/** Checks the kind of the key by the path alone, before it is known whether the path has a route. */
export function requireKind({ kind }: Caller, path: string): void {
  const asked = OF_PROJECTS.test(path) ? "project" : OF_TEAMS.test(path) ? "team" : kind;
  if (asked !== kind) fail("UNAUTHORIZED", `A ${kind} key cannot call ${asked} endpoints`, CHALLENGE);
}

/** Answers 404 for a project or team without access, as for one that does not exist. */
export function requireAccess(caller: Caller, route: Route, params: Record<string, string>): void {
  const isOwn =
    route.access === "project" ? params["projectId"] === caller.projectId : params["teamId"] === caller.teamId;
  if (!isOwn) absent();
  requireScope(caller, route);
}

/** Answers 401 for a key whose scope is not among those that a route asks for. */
export function requireScope({ scope }: Caller, { scopes }: Pick<Route, "scopes">): void {
  if (scope === null || scopes.has(scope)) return;
  const wanted = [...scopes].filter((one) => one !== "runner").map((one) => `one of scope "${one}"`);
  const keys = ["the project's own key", ...wanted].join(", or ");
  fail("UNAUTHORIZED", `A key of scope "${scope}" cannot call this: use ${keys}`, CHALLENGE);
}
