/** Answers the request for a page that failed: as a page for browsers, as JSON for everyone else. */

import type { Html } from "../../http/html.ts";
import type { Log } from "../../log.ts";
import { toProblem } from "../../request/failure.ts";
import { toFormMessage } from "../../wording/field_problem.ts";
import { json, Reply } from "../../request/reply.ts";
import type { VisitorServices } from "./page.ts";
import { PageError, noSuchPage } from "./page_error.ts";
import { type PageFrame, acceptsHtml, toPageReply } from "./page_reply.ts";

/** `requestId` identifies a server error in the log. */
type FailedRequest = { request: Request; requestId: string; frame: PageFrame };

/** The function it returns does not throw. */
export function createErrorPages({ visitors, log }: { visitors: VisitorServices; log: Log }) {
  return function toErrorReply(error: unknown, { request, requestId, frame }: FailedRequest): Reply {
    const isBrowser = acceptsHtml(request);
    if (!isBrowser && !(error instanceof PageError)) {
      const { status, body, headers } = toProblem(error, log, requestId);
      return new Reply(status, JSON.stringify(body), "application/json", headers);
    }
    const { status, message: problem, hint } = toPageError(error, log, requestId);
    const code = status === 404 ? "NOT_FOUND" : "VALIDATION_ERROR";
    if (!isBrowser) return json(status, { error: { code, message: problem } });
    const message = request.method === "POST" ? toFormMessage(problem) : problem;
    const body: Html = (
      <>
        <h1>{message}</h1>
        <p class="hint">{hint}</p>
        <p>
          <a href="/">Go to the projects</a>
        </p>
      </>
    );
    // A signed-in visitor can also sign out on this page.
    const csrf = frame.visitor ? visitors.csrf(request, frame.visitor).token : "";
    return toPageReply({ title: message, body, status, isNarrow: true }, { ...frame, csrf }, {});
  };
}

function toPageError(error: unknown, log: Log, requestId: string): PageError {
  if (error instanceof PageError) return error;
  const problem = toProblem(error, log, requestId);
  if (problem.code === "NOT_FOUND") return noSuchPage();
  if (problem.code === "RATE_LIMITED") return new PageError(429, problem.message, "Try again in a minute.");
  if (problem.status < 500) return new PageError(problem.status, problem.message, "Go back and correct it.");
  return new PageError(500, "Something went wrong", `See the server's log for request ${requestId}.`);
}
