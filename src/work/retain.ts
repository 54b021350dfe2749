/** Deletes data that is older than its project's retention. Runs without results keep their counts. */

import type { Log } from "../log.ts";
import type { Database } from "../database/connect.ts";
import { OPERATOR_COMMAND } from "../executable.ts";
import { createPartitions, dropPartitions } from "../database/partitions.ts";
import { selectIsBackupRunning } from "../database/snapshot.ts";
import { firstIdAt } from "../database/time_bounds.ts";
import {
  AGED_KINDS,
  type AgedKind,
  ANNOUNCED_MS,
  decideDeletion,
  type RetentionSettings,
  type ServerRetention,
  toCommonRetention,
  toKeptDays,
} from "../rules/retention.ts";
import {
  type AgedRows,
  deleteAged,
  deletePlan,
  deleteServerRetention,
  noteServerRetention,
  planDeletion,
  selectHasAged,
  selectIsDeletionDue,
  selectPlannedDeletions,
  selectRetentions,
  selectServerRetentions,
} from "../store/retention.ts";
import { toPlanRemedy, toPlanText, toRetentionDifferences } from "../wording/retention.ts";
import { always, eachOf, type GoOn, type OnDeleted, standardLog } from "./loop.ts";

const DAY_MS = 86_400_000;

type Servers = Pick<Database, "pool" | "begin">;
type Project = Awaited<ReturnType<typeof selectRetentions>>[number];

const ROUND_MS = 3_600_000;

/**
 * Returns the work that a server repeats each minute: it notes the server's settings and applies the common ones, once an hour, when they have
 * changed, and when a deletion is due. `leave` is for a server that stops.
 */
export function createRetention(
  database: Servers,
  { host, settings, log, onDeleted }: ServerRetention & { log: Log; onDeleted: OnDeleted },
) {
  const { pool } = database;
  const serverId = crypto.randomUUID();
  let [roundAt, applied, logged] = [-Infinity, "", ""];
  return {
    async repeat(now: Date, goOn: GoOn): Promise<void> {
      await noteServerRetention(pool, { serverId, host, settings });
      const servers = await selectServerRetentions(pool);
      const common = toCommonRetention(servers.map((server) => server.settings));
      const differences = toRetentionDifferences(servers);
      if (differences.join() !== logged) for (const difference of differences) log.warn(difference);
      logged = differences.join();
      const isSame = JSON.stringify(common) === applied;
      if (isSame && performance.now() - roundAt < ROUND_MS && !(await selectIsDeletionDue(pool))) return;
      [roundAt, applied] = [performance.now(), JSON.stringify(common)];
      await retain(database, common, now, goOn, log, onDeleted);
    },
    leave: async () => void (await deleteServerRetention(pool, serverId)),
  };
}

/** A project whose data cannot be deleted keeps no other waiting. */
export async function retain(
  database: Servers,
  settings: RetentionSettings,
  now: Date,
  goOn: GoOn = always,
  log: Log = standardLog,
  onDeleted: OnDeleted = () => {},
): Promise<void> {
  const { pool, begin } = database;
  // Partitions are made and dropped under locks that a backup holds up.
  if (await selectIsBackupRunning(pool)) return;
  const months = { failing: "Cannot make or drop the months of results", about: () => ({}) };
  await eachOf([now], months, (now) => createPartitions(database, now, log.warn), log);
  const projects = await selectRetentions(pool);
  const due: AgedRows[] = [];
  const cleared = new Set<string>();
  const items = projects.flatMap((project) => AGED_KINDS.map((kind) => ({ project, kind })));
  const about = ({ projectId, kind }: Pick<AgedRows, "projectId" | "kind">) => ({ projectId, kind });
  await eachOf(
    items,
    { failing: "Cannot decide what to delete", about: ({ project, kind }) => about({ projectId: project.id, kind }) },
    async ({ project, kind }) => {
      const days = toKeptDays(kind, settings, project.days);
      if (days === 0) return;
      // An execution would take results and attachments along that are kept, or wait.
      const takesAlong = kind === "executions" ? (["results", "attachments"] as const) : [];
      const isLeft = (other: AgedKind) =>
        project.planned[other]?.beginsAt === null ||
        (toKeptDays(other, settings, project.days) > 0 && !cleared.has(`${other} ${project.id}`));
      if (takesAlong.some(isLeft)) return;
      const rows = { projectId: project.id, kind, before: new Date(now.getTime() - days * DAY_MS) };
      if (!(await mayDelete(database, project, { rows, days }, now, log))) return;
      cleared.add(`${kind} ${project.id}`);
      due.push(rows);
    },
    log,
    goOn,
  );
  const report = createReport(log, onDeleted);
  // A month that no project keeps is dropped as a whole, which returns its disk space.
  const bounds = due.filter(({ kind }) => kind === "results").map(({ before }) => before.getTime());
  if (bounds.length === projects.length && bounds.length > 0)
    await eachOf(
      [new Date(Math.min(...bounds))],
      months,
      async (before) => {
        const dropped = await dropPartitions(database, firstIdAt(before.getTime()), log.warn);
        for (const { name, rows } of dropped) report.add(name, rows, before);
      },
      log,
    );
  await eachOf(
    due,
    { failing: "Cannot delete the old data of a project", about },
    async (rows) => {
      await deleteAged(begin, rows, goOn, (table, count) => report.add(table, count, rows.before));
      if (goOn() && projects.some(({ id, planned }) => id === rows.projectId && planned[rows.kind]))
        await deletePlan(pool, rows);
    },
    log,
    goOn,
  ).finally(report.write);
}

/** Announces a deletion of more than a day's worth. */
async function mayDelete(
  { pool }: Servers,
  { planned, id }: Project,
  { rows, days }: { rows: AgedRows; days: number },
  now: Date,
  log: Log,
): Promise<boolean> {
  const hasMore = await selectHasAged(pool, { ...rows, before: new Date(rows.before.getTime() - DAY_MS) });
  const decision = decideDeletion({ days, hasMore }, planned[rows.kind], now);
  if (decision === "announce") {
    await planDeletion(pool, rows, days, new Date(now.getTime() + ANNOUNCED_MS));
    for (const plan of await selectPlannedDeletions(pool, id))
      if (plan.kind === rows.kind)
        log.warn(`${toPlanText(plan)}. ${toPlanRemedy(OPERATOR_COMMAND)}`, { projectId: id, days });
  }
  return decision === "delete";
}

/** Sums up a round: a line for each table and bound, however many projects there are. */
function createReport(log: Log, onDeleted: OnDeleted) {
  const deleted = new Map<string, { table: string; before: string; rows: number }>();
  return {
    add(table: string, rows: number, at: Date): void {
      const before = at.toISOString();
      const entry = deleted.get(`${table} ${before}`) ?? { table, before, rows: 0 };
      deleted.set(`${table} ${before}`, { ...entry, rows: entry.rows + rows });
      onDeleted(table, rows);
    },
    write(): void {
      for (const entry of deleted.values()) log.info("Deleted rows for their age", entry);
    },
  };
}
