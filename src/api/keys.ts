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
      summary: "Make a named key for the project, which may do what its scope says",
      description:
        "Beside the project's own key, which may do everything, and which this takes. Each key has its own rate limit. The key is " +
        "shown in this answer alone, also when the request is repeated with its Idempotency-Key.",
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
      summary: "The named keys of the project that are live, newest first",
      description: "Without the project's own key and without those of runners. The rest of a key is stored nowhere.",
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
      summary: "Revoke a named key, with the keys of the runners that were started with it",
      description: "From the moment of the answer on no request with it takes effect.",
      answer: null,
    },
    async ({ params: { projectId, keyId }, caller, transact }) => {
      await transact((sql) => revokeNamedKey(sql, projectId, keyId, actorOf(caller)));
      return noContent();
    },
  ),
];
