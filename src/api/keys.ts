/** The named keys of a project. */

import { absent } from "../http/problem.ts";
import { generateNamedKey, revokeNamedKey } from "../operations/people/keys.ts";
import { toPage } from "../request/page.ts";
import { jsonOnce, noContent } from "../request/reply.ts";
import { route, type Route } from "../request/route.ts";
import { generatedNamedKey, namedKeyFilter, namedKeyPage, newNamedKey } from "../schema/keys.ts";
import type { Caller } from "../request/callers.ts";
import { selectNamedKeys } from "../store/keys.ts";

const actorOf = ({ leading }: Caller) => ({ accountId: null, name: `key ${leading}` });

export const keys: Route[] = [
  route(
    "POST /projects/:projectId/keys",
    {
      summary: "Create a named key with a scope",
      description:
        "A named key exists in addition to the project's own key, which may do everything and is required for this " +
        "request. Each key has its own rate limit. The key is shown only in this answer, not when the request is " +
        "repeated with its Idempotency-Key.",
      example: { body: { name: "nightly e2e", scope: "upload" } },
      body: newNamedKey,
      answer: generatedNamedKey,
      status: 201,
    },
    ({ params: { projectId }, body, caller, conclude }) =>
      conclude(async (sql) => {
        const { id, key } = (await generateNamedKey(sql, projectId, body, actorOf(caller))) ?? absent();
        const [row] = await selectNamedKeys(sql, projectId, { limit: 0, id });
        return jsonOnce(201, { ...row!, key }, { ...row!, key: null });
      }),
  ),

  route(
    "GET /projects/:projectId/keys",
    {
      summary: "List the active named keys, newest first",
      description: "The project's own key and keys of runners are not included. Keys themselves are not stored.",
      query: namedKeyFilter,
      answer: namedKeyPage,
    },
    async (context) => {
      const { sql, params, query, page } = context;
      const rows = await selectNamedKeys(sql, params.projectId, { limit: query.limit, after: page.after?.[0] });
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),

  route(
    "DELETE /projects/:projectId/keys/:keyId",
    {
      summary: "Revoke a named key",
      description:
        "The keys of runners that were started with it are revoked as well. After the answer, no request with these keys " +
        "has any effect.",
      answer: null,
    },
    async ({ params: { projectId, keyId }, caller, transact }) => {
      await transact((sql) => revokeNamedKey(sql, projectId, keyId, actorOf(caller)));
      return noContent();
    },
  ),
];
