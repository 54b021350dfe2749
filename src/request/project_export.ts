/** Exports a project as lines of JSON: what the API answers about it, at one moment, as a stream. */

import type { StreamControl, StreamOwner } from "../http/events.ts";
import { fail } from "../http/problem.ts";
import { type Database, isUnavailable, type Sql, type Tx } from "../database/connect.ts";
import { readSnapshot } from "../database/snapshot.ts";
import {
  EXPORT_TYPES,
  EXPORT_VERSION,
  type ExportEnd,
  type ExportError,
  type ExportHeader,
  type ExportQuery,
  type ExportType,
} from "../schema/exports.ts";
import {
  MAX_EXPORTS,
  MAX_PROJECT_EXPORTS,
  selectBugReportIds,
  selectSnapshotTime,
  takeExportSlot,
} from "../store/exports.ts";
import { createRouteReader, type RouteReader } from "./read_routes.ts";
import { StreamReply } from "./reply.ts";
import type { Route, Services } from "./route.ts";

const CHUNK_LENGTH = 65_536;
/** How often an export verifies that its reader still has access. */
const ACCESS_CHECK_MS = 3_000;
/** Until its end PostgreSQL keeps all versions of rows that the snapshot sees. */
const MAX_MINUTES = 60;
const BUG_REPORTS_PER_STATEMENT = 100;
const BUSY_RETRY_SECONDS = 30;

export type ExportServices = Pick<Services, "begin" | "log" | "retentionDays" | "eventStreams"> &
  Pick<Database, "openReader"> & { sql: Sql; publicUrl: string };

export type ExportRequest = {
  projectId: string;
  query: ExportQuery;
  owner: StreamOwner;
  /** Whether the reader still has access. */
  mayStay: () => Promise<boolean>;
  /** Further headers of the answer. */
  headers?: Record<string, string>;
};

/** The export ends without its last line, for a reason that its reader may know. */
class EndedError extends Error {
  override name = "EndedError";
}

type Line = readonly [type: ExportType, value: object];
type Lines = AsyncGenerator<Line, void>;
type Execution = { id: string; tasks: readonly { slug: string; attempt: number }[] };

const PROJECT = "GET /projects/:projectId";
const RUN = `${PROJECT}/executions/:executionId/test-runs/:taskSlug`;

/** Reads one statement's rows at a time, whatever the project holds. */
async function* linesOf(sql: Tx, reader: RouteReader, { projectId, query }: ExportRequest): Lines {
  const wants = (...types: ExportType[]) =>
    query.types === undefined || types.some((type) => query.types!.includes(type));
  if (wants("project")) yield ["project", await reader.one(PROJECT, { projectId })];
  if (wants("owners")) yield ["owners", await reader.one(`${PROJECT}/owners`, { projectId })];
  if (wants("testCase"))
    for await (const testCase of reader.all(`${PROJECT}/test-cases`, { projectId })) yield ["testCase", testCase];
  if (wants("execution", "testRun", "result", "attachment")) {
    const { created_after, created_before } = query;
    const between = { created_after, created_before };
    for await (const execution of reader.all<Execution>(`${PROJECT}/executions`, { projectId }, between)) {
      if (wants("execution")) yield ["execution", execution];
      for (const { slug, attempt } of execution.tasks)
        yield* linesOfTask(reader, wants, { projectId, executionId: execution.id, taskSlug: slug }, attempt > 0);
    }
  }
  if (wants("bugReport", "bugOccurrence")) yield* linesOfBugs(sql, reader, wants, projectId);
}

type Wants = (...types: ExportType[]) => boolean;

/** A task has a run, and results, from its first report on. */
async function* linesOfTask(
  reader: RouteReader,
  wants: Wants,
  run: { projectId: string; executionId: string; taskSlug: string },
  hasReported: boolean,
): Lines {
  const { projectId: _, ...of } = run;
  if (hasReported && wants("testRun")) yield ["testRun", await reader.one(RUN, run)];
  if (hasReported && wants("result"))
    for await (const result of reader.all(`${RUN}/cases`, run)) yield ["result", { ...of, ...result }];
  if (wants("attachment"))
    for await (const file of reader.all(`${RUN}/attachments`, run)) yield ["attachment", { ...of, ...file }];
}

async function* linesOfBugs(sql: Tx, reader: RouteReader, wants: Wants, projectId: string): Lines {
  let after = "00000000-0000-0000-0000-000000000000";
  for (;;) {
    const ids = await selectBugReportIds(sql, projectId, { after, limit: BUG_REPORTS_PER_STATEMENT });
    for (const bugReportId of ids) {
      const params = { projectId, bugReportId };
      if (wants("bugReport")) yield ["bugReport", await reader.one(`${PROJECT}/bug-reports/:bugReportId`, params)];
      if (wants("bugOccurrence"))
        for await (const occurrence of reader.all(`${PROJECT}/bug-reports/:bugReportId/occurrences`, params))
          yield ["bugOccurrence", { bugReportId, ...occurrence }];
    }
    if (ids.length < BUG_REPORTS_PER_STATEMENT) return;
    after = ids.at(-1)!;
  }
}

const busy = (what: "project" | "server"): string =>
  what === "project"
    ? `At most ${MAX_PROJECT_EXPORTS} exports of a project run at a time`
    : `At most ${MAX_EXPORTS} exports run at a time`;

const toLine = (value: ExportHeader | ExportEnd | ExportError | object): string => `${JSON.stringify(value)}\n`;

const readerOf = (sql: Sql, routes: readonly Route[], services: ExportServices): RouteReader =>
  createRouteReader(routes, { publicUrl: services.publicUrl, sql, services });

async function* readExport(
  sql: Tx,
  routes: readonly Route[],
  services: ExportServices,
  request: ExportRequest,
): AsyncGenerator<string, void> {
  const { projectId, query } = request;
  const full = await takeExportSlot(sql, projectId);
  if (full) throw new EndedError(busy(full));
  yield toLine({
    ...{ type: "header", format: "assay-export", version: EXPORT_VERSION, projectId },
    takenAt: await selectSnapshotTime(sql),
    types: query.types ?? EXPORT_TYPES,
    ...{ createdAfter: query.created_after ?? null, createdBefore: query.created_before ?? null },
  } satisfies ExportHeader);
  const counts: Partial<Record<ExportType, number>> = {};
  for await (const [type, value] of linesOf(sql, readerOf(sql, routes, services), request)) {
    counts[type] = (counts[type] ?? 0) + 1;
    yield toLine({ type, ...value });
  }
  yield toLine({ type: "end", counts } satisfies ExportEnd);
}

/** Joins lines, of which the first has been read, to chunks; ends the export when its time or the access of its reader is over. */
async function* writeExport(
  first: string,
  lines: AsyncGenerator<string, void>,
  services: ExportServices,
  request: ExportRequest,
  { signal }: StreamControl,
): AsyncGenerator<string, void> {
  const began = performance.now();
  let checkedAt = -Infinity;
  let chunk = first;

  async function requireMore(): Promise<void> {
    if (signal.aborted) throw new EndedError("The server is stopping");
    const now = performance.now();
    if (now - began > MAX_MINUTES * 60_000)
      throw new EndedError(
        `An export may take ${MAX_MINUTES} minutes: export a shorter time with created_after and created_before`,
      );
    if (now - checkedAt < ACCESS_CHECK_MS) return;
    checkedAt = now;
    if (!(await request.mayStay())) throw new EndedError("The access to this project was revoked");
  }

  try {
    for await (const line of lines) {
      chunk += line;
      if (chunk.length < CHUNK_LENGTH) continue;
      await requireMore();
      yield chunk;
      chunk = "";
    }
    await requireMore();
    yield chunk;
  } catch (error) {
    if (!(error instanceof EndedError)) services.log.error("An export failed", { projectId: request.projectId, error });
    const away = isUnavailable(error) ? "The database is not available" : "The export failed";
    const message = error instanceof EndedError ? error.message : `${away}, try again in a moment`;
    yield `${chunk}${toLine({ type: "error", message } satisfies ExportError)}`;
  }
}

/** Fails where too many exports run already. `routes` are all routes of the API. */
export async function exportReply(
  routes: readonly Route[],
  services: ExportServices,
  request: ExportRequest,
): Promise<StreamReply> {
  const { projectId, owner, headers } = request;
  const { eventStreams } = services;
  const refuse = (reason: string): never =>
    fail("RATE_LIMITED", `${reason}: try again later`, { "Retry-After": String(BUSY_RETRY_SECONDS) });
  const refusal = eventStreams.refusal(owner);
  if (refusal !== undefined) refuse(refusal);
  // Health that is pending is counted before the snapshot is taken, as for every list of test cases.
  await readerOf(services.sql, routes, services).all(`${PROJECT}/test-cases`, { projectId }).next();
  const lines = readSnapshot(services, (sql) => readExport(sql, routes, services, request));
  // The slot of the export is taken before the answer begins: of several that come at once, those that are too many are refused.
  const first = await lines.next().catch((error: unknown) => {
    if (error instanceof EndedError) refuse(error.message);
    throw error;
  });
  const write = (control: StreamControl) => writeExport(first.value!, lines, services, request, control);
  return new StreamReply(200, "application/x-ndjson", { "X-Accel-Buffering": "no", ...headers }, (hurry) =>
    eventStreams.open(owner, write, hurry, () => void lines.return()),
  );
}
