/** The pages of the dashboard: what is asked for, who asks, may he, and what he gets. */

import { createDeadlines } from "../http/deadline.ts";
import { html, type Html } from "../http/html.ts";
import { check, parsePath, parseQuery } from "../http/input.ts";
import { Problem } from "../http/problem.ts";
import { createRouter } from "../http/router.ts";
import type { RequestTarget } from "../http/target.ts";
import { toProblem } from "../request/failure.ts";
import { createFormReader } from "../request/forms.ts";
import { json, Reply } from "../request/reply.ts";
import type { Visitor } from "../request/visitors.ts";
import { isAtLeast } from "../schema/accounts.ts";
import { Refusal } from "../schema/refusal.ts";
import { selectPlace } from "../store/projects.ts";
import { ASSETS, layout } from "./layout.ts";
import {
  type Page,
  type PageContext,
  type PageServices,
  type ProjectPlace,
  SeeOther,
  type View,
  type Visitors,
} from "./page.ts";
import { PAGES } from "./pages.ts";

export type SiteOptions = PageServices & {
  /** Where the API is, relative to the public address. */
  api: string;
  visitors: Visitors;
  /** The moment that pages speak from. */
  clock?: () => Date;
};

/** A page that takes longer is answered with an error: nobody waits for it any more. */
const PAGE_DEADLINE_SECONDS = 30;
/** In characters. Every list and text of a page has a limit of its own, far below this one. */
const MAX_PAGE_LENGTH = 16_777_216;

/** Nothing of others runs, is loaded, framed or posted to. */
const PAGE_HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};

/** Of a page for whoever has its address: nobody else is told it. */
const SHARED_HEADERS = { "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex" };

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#176f42"/><path d="M4.5 8.2l2.4 2.4 4.6-5" fill="none" stroke="#fff" stroke-width="1.8"/></svg>';

/** A page of an error: status, what is wrong in a few words, what to do. */
class Refused extends Error {
  readonly status: number;
  readonly hint: string;
  constructor(status: number, message: string, hint: string) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

const notFound = () =>
  new Refused(404, "There is no such page", "It may have been deleted, or you may not be a member of its team.");

/** Leaves out parameters that a page does not know: mail and chat programs append their own to links. */
const knownOf = ({ type, entries }: Page["query"], given: Record<string, string>) =>
  type === "strict_object"
    ? Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(entries, name)))
    : given;

export function createSite({ api, visitors, clock = () => new Date(), ...services }: SiteOptions) {
  const { fast, log } = services;
  const findRoute = createRouter(PAGES);
  const deadlines = createDeadlines();
  const readForm = createFormReader();

  /** What needs no visitor; undefined where there is no such thing. */
  function plain(path: string): Reply | undefined {
    if (path === "/icon.svg") return asset("image/svg+xml", ICON);
    const found = ASSETS[path];
    return found && asset(found.type, found.text);
  }

  const asset = (type: string, text: string) =>
    new Reply(200, text, type, { "Cache-Control": "public, max-age=31536000, immutable" });

  type Asking = { request: Request; target: RequestTarget; address: () => string };
  type Frame = Pick<PageContext<never, never, never, never>, "project" | "team" | "role"> & {
    visitor: Visitor | undefined;
  };

  async function answer(found: { route: Page; segments: string[] }, asking: Asking, frame: Frame): Promise<Reply> {
    const { request, target, address } = asking;
    const { route, segments } = found;
    // Before anything is refused: the page of an error is one of his, too.
    frame.visitor = await visitors.find(request.headers.get("cookie"));
    const { visitor } = frame;
    const params = parsePath(route.pathParameters, segments) as Record<string, string>;
    if (route.access !== "public" && !visitor) {
      const next = `${target.path}${target.search === "" ? "" : `?${target.search}`}`;
      return seeOther(request.method === "POST" ? "/login" : `/login?${new URLSearchParams({ next })}`);
    }
    await place(route, params, frame);
    const { token, cookie } = visitors.csrf(request, visitor);
    const context = {
      ...services,
      ...frame,
      params,
      path: target.path,
      now: clock(),
      request,
      address,
      mayStay: () => mayStay(route, params, request),
      csrf: token,
      query: check(route.query, knownOf(route.query, parseQuery(target.search))),
      fields: route.fields ? await readFields(route, asking, visitor) : undefined,
    };
    const handle = () => route.handle(context as never);
    const result = await deadlines.within(PAGE_DEADLINE_SECONDS, handle).catch((error: unknown) => {
      // What the product refuses is the visitor's to read.
      if (error instanceof Refusal)
        throw error.kind === "absent" ? notFound() : new Refused(400, error.message, "Go back, and change that.");
      throw error;
    });
    const cookies: Record<string, string> = cookie === undefined ? {} : { "Set-Cookie": cookie };
    if (result instanceof Reply) return result;
    if (result instanceof SeeOther) return seeOther(result.to, { ...cookies, ...result.headers });
    return toReply(result, { ...frame, csrf: token }, result.isShared ? SHARED_HEADERS : cookies);
  }

  async function mayStay(route: Page, params: Record<string, string>, request: Request): Promise<boolean> {
    const visitor = await visitors.find(request.headers.get("cookie"));
    if (!visitor) return false;
    const frame: Frame = { visitor, project: null, team: null, role: null };
    return await place(route, params, frame).then(
      () => true,
      (error) => {
        if (error instanceof Refused) return false;
        throw error;
      },
    );
  }

  /** Who is no member of the team of a path learns nothing of it; who may not do something learns who may. */
  async function place(route: Page, params: Record<string, string>, frame: Frame): Promise<void> {
    const { visitor } = frame;
    const { projectId, teamId } = params;
    if (route.access === "public" || (projectId === undefined && teamId === undefined)) return;
    const project: ProjectPlace | undefined = projectId === undefined ? undefined : await selectPlace(fast, projectId);
    const membership = visitor!.teams.find((team) => team.teamId === (project ? project.teamId : teamId));
    if (!membership || (projectId !== undefined && !project)) throw notFound();
    frame.team = { id: membership.teamId, name: membership.teamName };
    frame.role = membership.role;
    frame.project = project ?? null;
    const isAllowed = route.access === "account" || isAtLeast(membership.role, route.access);
    if (!isAllowed)
      throw new Refused(
        403,
        route.access === "owner" ? "Only owners of the team may do this" : "Viewers may not do this",
        `You are a ${membership.role} of ${membership.teamName}: an owner can change that.`,
      );
  }

  async function readFields(route: Page, asking: Asking, visitor: Visitor | undefined): Promise<unknown> {
    const { request, address } = asking;
    const given = await readForm(request, { accountId: visitor?.accountId, address }).catch((error: unknown) => {
      const isBusy = error instanceof Problem && error.code === "RATE_LIMITED";
      if (!isBusy || !/\btext\/html\b/.test(request.headers.get("accept") ?? "")) throw error;
      throw new Refused(429, error.message, "Nothing was changed. Wait a moment, then send it again.");
    });
    const { csrf = "", ...fields } = given ?? {};
    if (!given || !visitors.isOwnForm(request, visitor, csrf))
      throw new Refused(
        403,
        "This form is out of date",
        "Nothing was changed. Open the page again, and send it once more.",
      );
    return check(route.fields!, fields);
  }

  const seeOther = (to: string, headers: Record<string, string> = {}) =>
    new Reply(303, null, null, { ...PAGE_HEADERS, Location: to, ...headers });

  function toReply(view: View, frame: Frame & { csrf: string }, headers: Record<string, string> = {}): Reply {
    const { text } = layout(view, frame);
    if (text.length > MAX_PAGE_LENGTH)
      throw new Refused(500, "This page is too large to be shown", "The API answers what it holds, piece by piece.");
    return new Reply(view.status ?? 200, text, "text/html; charset=utf-8", { ...PAGE_HEADERS, ...headers });
  }

  function refusal(error: unknown, frame: Frame, request: Request, requestId: string): Reply {
    const isBrowser = /\btext\/html\b/.test(request.headers.get("accept") ?? "");
    if (!isBrowser && !(error instanceof Refused)) {
      const { status, body, headers } = toProblem(error, log, requestId);
      return new Reply(status, JSON.stringify(body), "application/json", headers);
    }
    const { status, message, hint } = toRefused(error, requestId);
    const code = status === 404 ? "NOT_FOUND" : "VALIDATION_ERROR";
    if (!isBrowser) return json(status, { error: { code, message } });
    const body: Html = html`<h1>${message}</h1><p class="hint">${hint}</p><p><a href="/">To the projects</a></p>`;
    // Who is signed in can sign out from here as well.
    const csrf = frame.visitor ? visitors.csrf(request, frame.visitor).token : "";
    return toReply({ title: message, body, status, isNarrow: true }, { ...frame, csrf });
  }

  function toRefused(error: unknown, requestId: string): Refused {
    if (error instanceof Refused) return error;
    const problem = toProblem(error, log, requestId);
    if (problem.code === "NOT_FOUND") return notFound();
    if (problem.status < 500) return new Refused(problem.status, problem.message, "Go back, and change that.");
    return new Refused(500, "Something went wrong on our side", `It is in the server's log as ${requestId}.`);
  }

  /** `route` is the pattern of the path, for counting. The answer never throws. */
  return function find(asking: Asking, requestId: string): { route: string; answer: () => Promise<Reply> } {
    const { request, target } = asking;
    const isRead = request.method === "GET" || request.method === "HEAD";
    const known = isRead ? plain(target.path) : undefined;
    if (known) return { route: "/assets", answer: async () => known };
    const found = findRoute(request.method, target.path);
    const frame: Frame = { visitor: undefined, project: null, team: null, role: null };
    if (!found || "allow" in found) {
      const error = new Problem("NOT_FOUND", `No such page: the API is under ${api}`);
      return {
        route: "unknown",
        answer: async () => {
          frame.visitor = await visitors.find(request.headers.get("cookie")).catch(() => undefined);
          return refusal(error, frame, request, requestId);
        },
      };
    }
    return {
      route: found.route.path,
      answer: async () => {
        return await answer(found, asking, frame).catch((error) => refusal(error, frame, request, requestId));
      },
    };
  };
}
