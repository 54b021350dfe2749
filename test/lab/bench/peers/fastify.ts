/**
 * The list of test runs by Fastify 5 with pg on Node, as a competent team writes it and as the manuals show it: hooks, JSON
 * schemas for what comes and what goes, a query for the key and one for the page, pg's own pool of 10. Neither tuned nor
 * crippled: no statement is named, because hardly anybody names them.
 */

import { createHash } from "node:crypto";
import rateLimit from "@fastify/rate-limit";
import createFastify from "fastify";
import pg from "pg";

type ApiKey = { id: string; teamId: string; projectId: string | null };

declare module "fastify" {
  interface FastifyRequest {
    apiKey: ApiKey | null;
  }
}

type TestRun = {
  id: string;
  executionId: string;
  taskSlug: string;
  completedAt: Date;
  passed: number;
  failed: number;
  skipped: number;
};

/** Where it is comes from PGHOST and its like. */
const pool = new pg.Pool({ max: 10 });
const fastify = createFastify({ ajv: { customOptions: { removeAdditional: false } } });

fastify.decorateRequest("apiKey", null);

fastify.addHook("onRequest", async (request, reply) => {
  const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "") ?? [];
  if (token === undefined) return reply.code(401).send({ error: "Unauthorized" });
  const digest = createHash("sha256").update(token).digest();
  const { rows } = await pool.query<ApiKey>(
    `select id, team_id as "teamId", project_id as "projectId" from api_key where digest = $1 and revoked_at is null`,
    [digest],
  );
  if (!rows[0]) return reply.code(401).send({ error: "Unauthorized" });
  request.apiKey = rows[0];
});

await fastify.register(rateLimit, {
  max: 1_000_000_000,
  timeWindow: "1 minute",
  hook: "preValidation",
  keyGenerator: (request) => request.apiKey!.id,
});

const count = { type: "integer" };

const schema = {
  params: {
    type: "object",
    properties: { projectId: { type: "string", format: "uuid" } },
    required: ["projectId"],
  },
  querystring: {
    type: "object",
    properties: {
      limit: { type: "integer", minimum: 1, maximum: 100, default: 10 },
      cursor: { type: "string", maxLength: 200 },
    },
    additionalProperties: false,
  },
  response: {
    200: {
      type: "object",
      properties: {
        data: {
          type: "array",
          items: {
            type: "object",
            properties: {
              executionId: { type: "string" },
              taskSlug: { type: "string" },
              completedAt: { type: "string", format: "date-time" },
              passed: count,
              failed: count,
              skipped: count,
              total: count,
            },
          },
        },
        pagination: { type: "object", properties: { hasMore: { type: "boolean" }, cursor: { type: "string" } } },
      },
    },
  },
} as const;

const toCursor = ({ completedAt, id }: TestRun) =>
  Buffer.from(`${completedAt.toISOString()}\n${id}`).toString("base64url");

const PLACE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\n([0-9a-f-]{36})$/;

const columns = `
  id, execution_id as "executionId", task_slug as "taskSlug", completed_at as "completedAt", passed, failed, skipped`;

fastify.get<{ Params: { projectId: string }; Querystring: { limit: number; cursor?: string } }>(
  "/api/v1/projects/:projectId/test-runs",
  { schema },
  async (request, reply) => {
    const { projectId } = request.params;
    const { limit, cursor } = request.query;
    if (request.apiKey!.projectId !== projectId) return reply.code(404).send({ error: "Not found" });
    const place = cursor === undefined ? undefined : PLACE.exec(Buffer.from(cursor, "base64url").toString());
    if (place === null) return reply.code(400).send({ error: "Bad cursor" });
    const { rows } = place
      ? await pool.query<TestRun>(
          `select ${columns} from test_run where project_id = $1 and (completed_at, id) < ($3, $4)
           order by completed_at desc, id desc limit $2`,
          [projectId, limit + 1, place[1], place[2]],
        )
      : await pool.query<TestRun>(
          `select ${columns} from test_run where project_id = $1 and completed_at is not null
           order by completed_at desc, id desc limit $2`,
          [projectId, limit + 1],
        );
    const hasMore = rows.length > limit;
    const page = rows.slice(0, limit);
    return {
      data: page.map(({ id, ...run }) => ({ ...run, total: run.passed + run.failed + run.skipped })),
      pagination: { hasMore, ...(hasMore ? { cursor: toCursor(page.at(-1)!) } : {}) },
    };
  },
);

console.log(await fastify.listen({ port: 0, host: "127.0.0.1" }));
