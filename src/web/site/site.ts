/** Serves the pages of the dashboard: finds the page of a path, checks access, and renders it. */

import type { Database, Sql } from "../../database/connect.ts";
import { createCursors } from "../../http/cursor.ts";
import { createDeadlines } from "../../http/deadline.ts";
import type { Path } from "../../http/html.ts";
import { check, parsePath, parseQuery } from "../../http/input.ts";
import { Problem } from "../../http/problem.ts";
import { createRouter } from "../../http/router.ts";
import type { RequestTarget } from "../../http/target.ts";
import { createFormReader } from "../../request/forms.ts";
import { type FixedReply, Reply } from "../../request/reply.ts";
import type { Visitor } from "../../request/visitors.ts";
import { isAtLeast } from "../../schema/accounts.ts";
import { Refusal } from "../../schema/refusal.ts";
import { selectProjectRef } from "../../store/projects.ts";
import { ASSETS } from "./assets.ts";
import { createErrorPages } from "./error_pages.tsx";
import { type Page, type PageServices, SeeOther, type VisitorServices } from "./page.ts";
import { PageError, noSuchPage } from "./page_error.ts";
import { type PageFrame, redirect, toPageReply, acceptsHtml } from "./page_reply.ts";
import { PAGES } from "./pages.ts";

/**
 * Completes the frame of a visitor. Throws a PageError: a visitor who is not a member of the team cannot see that it exists,
 * and a member without the required role sees who has it. The frame then includes the team for the error page.
 */
async function enterFrame(
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
async function mayStillSee(
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

type FormRequest = { request: Request; address: () => string; visitor: Visitor | undefined };

/** The function it returns throws a PageError or a Problem. */
function createFieldReader(visitors: VisitorServices) {
  const readForm = createFormReader();
  return async function readFields(
    schema: NonNullable<Page["fields"]>,
    { request, address, visitor }: FormRequest,
  ): Promise<unknown> {
    const sent = await readForm(request, { accountId: visitor?.accountId, address }).catch((error: unknown) => {
      const isBusy = error instanceof Problem && error.code === "RATE_LIMITED";
      if (!isBusy || !acceptsHtml(request)) throw error;
      throw new PageError(429, error.message, "Nothing was changed. Wait a moment, then try again.");
    });
    const { csrf = "", ...fields } = sent ?? {};
    if (!sent || !visitors.isOwnForm(request, visitor, csrf))
      throw new PageError(403, "This form has expired", "Nothing was changed. Reload the page and try again.");
    return check(schema, fields);
  };
}

export type SiteOptions = Omit<PageServices, "sql"> & {
  poolOf: Database["poolOf"];
  /** The path of the API, relative to the public address. */
  api: string;
  visitors: VisitorServices;
  /** Signs the cursors of lists. */
  cursorSecret: Uint8Array;
  /** Counts a request of somebody who is not signed in; throws a Problem when the address has sent too many. */
  admitStranger: (address: string) => void;
  /** Returns the current time. */
  clock?: () => Date;
};

/** Time limit for a page. A page that takes longer is answered with an error. */
const PAGE_DEADLINE_SECONDS = 30;

type PageRequest = { request: Request; target: RequestTarget; address: () => string };
type Found = { route: Page; segments: string[] };

export function createSite({
  api,
  visitors,
  cursorSecret,
  admitStranger,
  clock = () => new Date(),
  poolOf,
  ...services
}: SiteOptions) {
  const { fast, log } = services;
  const findRoute = createRouter(PAGES);
  const cursors = createCursors(cursorSecret);
  const deadlines = createDeadlines();
  const readFields = createFieldReader(visitors);
  const toErrorReply = createErrorPages({ visitors, log });

  /** Completes the frame step by step, so that an error page shows as much of it as is known. */
  async function answer({ route, segments }: Found, pageRequest: PageRequest, frame: PageFrame): Promise<Reply> {
    const { request, target, address } = pageRequest;
    // Before anything is refused: the visitor of an error page is known as well.
    const visitor = (frame.visitor = await visitors.find(request.headers.get("cookie")));
    if (!visitor) admitStranger(address());
    const params = parsePath(route.pathParameters, segments) as Record<string, string>;
    if (route.access !== "public" && !visitor) return redirect(logInPath(pageRequest));
    await enterFrame(fast, route, params, frame);
    const { token: csrf, cookie } = visitors.csrf(request, visitor);
    let isOver = false;
    const context = {
      ...services,
      sql: poolOf(frame.team?.id ?? visitor?.accountId ?? address(), () => isOver),
      ...frame,
      params,
      path: target.path as Path,
      now: clock(),
      cursors,
      request,
      address,
      mayStay: () => mayStillSee({ fast, visitors }, route, params, request),
      csrf,
      query: check(route.query, knownParameters(route.query, parseQuery(target.search))),
      fields: route.fields ? await readFields(route.fields, { request, address, visitor }) : undefined,
    };
    const handle = () => route.handle(context as never);
    const expire = () => void (isOver = true);
    const result = await deadlines.within(PAGE_DEADLINE_SECONDS, handle, expire).catch(throwAsPageError);
    const cookies: Record<string, string> = cookie === undefined ? {} : { "Set-Cookie": cookie };
    if (result instanceof Reply) return result;
    if (result instanceof SeeOther) return redirect(result.to, { ...cookies, ...result.headers });
    return toPageReply(result, { ...frame, csrf }, cookies);
  }

  /** `route` is the pattern of the path, for metrics. The promise never rejects. */
  return function find(pageRequest: PageRequest, requestId: string): { route: string; answer: () => Promise<Reply> } {
    const { request, target } = pageRequest;
    const asset = assetOf(request, target.path);
    if (asset) return { route: "/assets", answer: async () => asset };
    const found = findRoute(request.method, target.path);
    const frame: PageFrame = { visitor: undefined, project: null, team: null, role: null };
    const refuse = (error: unknown) => toErrorReply(error, { request, requestId, frame });
    if (!found || "allow" in found) {
      const findNothing = async () => {
        frame.visitor = await visitors.find(request.headers.get("cookie")).catch(() => undefined);
        if (!frame.visitor) admitStranger(pageRequest.address());
        throw new Problem("NOT_FOUND", `No such page: the API is under ${api}`);
      };
      return { route: "unknown", answer: () => findNothing().catch(refuse) };
    }
    return {
      route: found.route.path,
      answer: () => answer(found, pageRequest, frame).catch(refuse),
    };
  };
}

/** Style sheet, script and icon need no session. */
const assetOf = ({ method }: Request, path: string): FixedReply | undefined =>
  method === "GET" || method === "HEAD" ? ASSETS[path] : undefined;

/** Redirects to the requested page after signing in. */
function logInPath({ request, target }: PageRequest): string {
  if (request.method === "POST") return "/login";
  const next = `${target.path}${target.search === "" ? "" : `?${target.search}`}`;
  return `/login?${new URLSearchParams({ next })}`;
}

/** Drops unknown parameters, because mail and chat programs append their own to links. */
const knownParameters = ({ type, entries }: Page["query"], parameters: Record<string, string>) =>
  type === "strict_object"
    ? Object.fromEntries(Object.entries(parameters).filter(([name]) => Object.hasOwn(entries, name)))
    : parameters;

/** Converts refusals to error pages, because their messages are for the visitor. */
function throwAsPageError(error: unknown): never {
  if (!(error instanceof Refusal)) throw error;
  throw error.kind === "absent" ? noSuchPage() : new PageError(400, error.message, "Go back and correct it.");
}
