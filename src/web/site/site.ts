/** Serves the pages of the dashboard: finds the page of a path, checks access, and renders it. */

import { createDeadlines } from "../../http/deadline.ts";
import { check, parsePath, parseQuery } from "../../http/input.ts";
import type { Path } from "../../http/html.ts";
import { Problem } from "../../http/problem.ts";
import { createRouter } from "../../http/router.ts";
import type { RequestTarget } from "../../http/target.ts";
import { type FixedReply, Reply } from "../../request/reply.ts";
import { Refusal } from "../../schema/refusal.ts";
import { createErrorPages } from "./error_pages.tsx";
import { ASSETS } from "./assets.ts";
import { type Page, type PageServices, SeeOther, type VisitorServices } from "./page.ts";
import { enterFrame, mayStillSee } from "./page_access.ts";
import { PageError, noSuchPage } from "./page_error.ts";
import { createFieldReader } from "./page_form.ts";
import { type PageFrame, redirect, toPageReply } from "./page_reply.ts";
import { PAGES } from "./pages.ts";

export type SiteOptions = PageServices & {
  /** The path of the API, relative to the public address. */
  api: string;
  visitors: VisitorServices;
  /** Counts a request of somebody who is not signed in; throws a Problem when the address has sent too many. */
  admitStranger: (address: string) => void;
  /** Returns the current time. */
  clock?: () => Date;
};

/** Time limit for a page. A page that takes longer is answered with an error. */
const PAGE_DEADLINE_SECONDS = 30;

type PageRequest = { request: Request; target: RequestTarget; address: () => string };
type Found = { route: Page; segments: string[] };

export function createSite({ api, visitors, admitStranger, clock = () => new Date(), ...services }: SiteOptions) {
  const { fast, log } = services;
  const findRoute = createRouter(PAGES);
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
    const context = {
      ...services,
      ...frame,
      params,
      path: target.path as Path,
      now: clock(),
      request,
      address,
      mayStay: () => mayStillSee({ fast, visitors }, route, params, request),
      csrf,
      query: check(route.query, knownParameters(route.query, parseQuery(target.search))),
      fields: route.fields ? await readFields(route.fields, { request, address, visitor }) : undefined,
    };
    const handle = () => route.handle(context as never);
    const result = await deadlines.within(PAGE_DEADLINE_SECONDS, handle).catch(throwAsPageError);
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
