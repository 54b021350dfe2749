import { expect, test } from "bun:test";
import * as v from "valibot";
import { route } from "../../src/request/route.ts";
import { pageQuery } from "../../src/schema/page.ts";

// The compiler tests the handlers: where a part is not an error any more, `bun check` fails.
test("a handler sees the parts of its own family only", () => {
  const routes = [
    route("GET /projects/:projectId/one", { summary: "", answer: v.string() }, async (context) => {
      // @ts-expect-error It is no list.
      void context.page;
      // @ts-expect-error It is no upload.
      void context.upload;
      // @ts-expect-error It is no stream.
      void context.lastEventId;
      // @ts-expect-error Runners do not call it.
      void context.budget;
      // @ts-expect-error The path has no such parameter.
      void context.params.teamId;
      return context.params.projectId;
    }),
    route(
      "GET /projects/:projectId/list",
      { summary: "", query: v.strictObject(pageQuery), answer: v.string() },
      (context) => Promise.resolve(context.page.list),
    ),
    route("POST /projects/:projectId/upload", { summary: "", body: "upload", answer: v.string() }, async (context) => {
      // @ts-expect-error It is no list.
      void context.page;
      void context.upload.claim;
      return context.body.digest;
    }),
    route("GET /projects/:projectId/stream", { summary: "", stream: "Events", answer: null }, async (context) => {
      // @ts-expect-error It is no upload.
      void context.upload;
      throw new Error(context.lastEventId ?? "");
    }),
    route(
      "POST /projects/:projectId/sync",
      { summary: "", isForRunners: true, answer: v.number() },
      async ({ budget }) => budget.remaining,
    ),
  ];
  expect(routes.map(({ body, stream, scopes }) => [body === "upload", stream, scopes.has("runner")])).toEqual([
    [false, undefined, false],
    [false, undefined, false],
    [true, undefined, false],
    [false, "Events", false],
    [false, undefined, true],
  ]);
});
