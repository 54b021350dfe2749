/**
 * The list of test runs by Hono on Bun with postgres.js, as a competent team writes it and as the manuals show it: middleware
 * from the ecosystem, a query for the key and one for the page, the driver's own pool of 10. Neither tuned nor crippled.
 */

import { createHash } from "node:crypto";
import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import { createMiddleware } from "hono/factory";
import { HTTPException } from "hono/http-exception";
import { rateLimiter } from "hono-rate-limiter";
import postgres from "postgres";
import { z } from "zod";

type ApiKey = { id: string; teamId: string; projectId: string | null };
type Env = { Variables: { apiKey: ApiKey } };

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
const sql = postgres({ max: 10 });

const authenticate = createMiddleware<Env>(async (c, next) => {
  const [, token] = /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "") ?? [];
  if (token === undefined) throw new HTTPException(401, { message: "Unauthorized" });
  const digest = createHash("sha256").update(token).digest();
  const [apiKey] = await sql<ApiKey[]>`
    select id, team_id as "teamId", project_id as "projectId"
    from api_key where digest = ${digest} and revoked_at is null`;
  if (!apiKey) throw new HTTPException(401, { message: "Unauthorized" });
  c.set("apiKey", apiKey);
  await next();
});

const limitRate = rateLimiter<Env>({
  windowMs: 60_000,
  limit: 1_000_000_000,
  keyGenerator: (c) => c.get("apiKey").id,
});

const requireProject = createMiddleware<Env>(async (c, next) => {
  if (c.get("apiKey").projectId !== c.req.param("projectId")) throw new HTTPException(404, { message: "Not found" });
  await next();
});

const place = z.tuple([z.iso.datetime(), z.uuid()]);

const filter = z.strictObject({
  limit: z.coerce.number().int().min(1).max(100).default(10),
  cursor: z
    .string()
    .transform((text) => Buffer.from(text, "base64url").toString().split("\n"))
    .pipe(place)
    .optional(),
});

const toCursor = ({ completedAt, id }: TestRun) =>
  Buffer.from(`${completedAt.toISOString()}\n${id}`).toString("base64url");

const app = new Hono<Env>()
  .basePath("/api/v1/projects/:projectId")
  .use(authenticate, limitRate, requireProject)
  .get("/test-runs", zValidator("query", filter), async (c) => {
    const { limit, cursor } = c.req.valid("query");
    const rows = await sql<TestRun[]>`
      select id, execution_id as "executionId", task_slug as "taskSlug", completed_at as "completedAt", passed, failed, skipped
      from test_run
      where project_id = ${c.req.param("projectId")!}
        ${cursor ? sql`and (completed_at, id) < (${cursor[0]}, ${cursor[1]})` : sql`and completed_at is not null`}
      order by completed_at desc, id desc limit ${limit + 1}`;
    const hasMore = rows.length > limit;
    const page = rows.slice(0, limit);
    return c.json({
      data: page.map(({ id, ...run }) => ({ ...run, total: run.passed + run.failed + run.skipped })),
      pagination: { hasMore, ...(hasMore ? { cursor: toCursor(page.at(-1)!) } : {}) },
    });
  });

const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: app.fetch });
console.log(server.url.origin);
