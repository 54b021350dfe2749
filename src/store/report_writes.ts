/** Writes the rows of reports, as one statement. */

import { hasEnded } from "../rules/execution.ts";
import type { DescribedCommit } from "../schema/commits.ts";
import type { NewEvent } from "../schema/events.ts";
import { compose, type Composed, type Given } from "../database/compose.ts";
import { type Fragment, joinWrites, type Sql, toRows, type Tx } from "../database/connect.ts";
import {
  insertDetails,
  portionsOfDetails,
  type RunBlock,
  type RunDetail,
  toBlockColumns,
  toDetailColumns,
  upsertBlocks,
} from "./case_results.ts";
import { insertCommits, toCommitRows } from "./commits.ts";
import { insertReferences, type RunReference } from "./attachments.ts";
import { insertSlowerResults, type SlowerResult } from "./slower.ts";
import { insertEventRows, toEventRows } from "./events.ts";
import { type ExecutionChange, toChangeRows, updateExecutions } from "./executions.ts";
import { discardDays, mayBePastDay } from "./past_days.ts";
import { insertUploadedExecutions, toExecutionRows, type UploadedExecution } from "./new_executions.ts";
import {
  type Attempt,
  type ChangedTestRun,
  insertAttempts,
  insertTestRuns,
  type NewTestRun,
  updateTestRuns,
} from "./test_runs.ts";

/** The rows to write for any number of reports. */
export type ReportWrites = {
  commits: DescribedCommit[];
  newExecutions: UploadedExecution[];
  /** `endedAt` is when the execution had ended before; null: it had not. */
  changedExecutions: (ExecutionChange & { id: string; endedAt: string | null })[];
  newRuns: NewTestRun[];
  changedRuns: ChangedTestRun[];
  attempts: (Attempt & { runId: string })[];
  blocks: RunBlock[];
  details: RunDetail[];
  references: RunReference[];
  slowerResults: (SlowerResult & { runId: string })[];
  events: NewEvent[];
};

export const noWrites = (): ReportWrites => ({
  commits: [],
  newExecutions: [],
  changedExecutions: [],
  newRuns: [],
  changedRuns: [],
  attempts: [],
  blocks: [],
  details: [],
  references: [],
  slowerResults: [],
  events: [],
});

type Part = keyof ReportWrites;

/** The statement of each part. */
const STATEMENTS: { [P in Part]: (sql: Sql, projectId: Given, given: (name: string) => Given) => Fragment } = {
  commits: (sql, projectId, given) => insertCommits(sql, projectId, given("rows")),
  newExecutions: (sql, projectId, given) => insertUploadedExecutions(sql, projectId, given("rows")),
  changedExecutions: (sql, projectId, given) => updateExecutions(sql, projectId, given("rows")),
  newRuns: (sql, projectId, given) => insertTestRuns(sql, projectId, given("rows")),
  changedRuns: (sql, projectId, given) => updateTestRuns(sql, projectId, given("rows")),
  attempts: (sql, projectId, given) => insertAttempts(sql, projectId, given("rows")),
  blocks: (sql, projectId, given) => upsertBlocks(sql, projectId, toColumns(NO_BLOCKS, given)),
  details: (sql, projectId, given) => insertDetails(sql, projectId, toColumns(NO_DETAILS, given)),
  references: (sql, projectId, given) => insertReferences(sql, projectId, given("rows")),
  slowerResults: (sql, projectId, given) => insertSlowerResults(sql, projectId, given("rows")),
  events: (sql, projectId, given) => insertEventRows(sql, projectId, given("rows")),
};

const PARAMETERS: { [P in Part]: (rows: ReportWrites[P]) => Record<string, string> } = {
  commits: (rows) => ({ rows: toCommitRows(rows) }),
  newExecutions: (rows) => ({ rows: toExecutionRows(rows) }),
  changedExecutions: (rows) => ({ rows: toChangeRows(rows) }),
  newRuns: (rows) => ({ rows: toRows(rows) }),
  changedRuns: (rows) => ({ rows: toRows(rows) }),
  attempts: (rows) => ({ rows: toRows(rows) }),
  blocks: toBlockColumns,
  details: toDetailColumns,
  references: (rows) => ({ rows: toRows(rows) }),
  slowerResults: (rows) => ({ rows: toRows(rows) }),
  events: (rows) => ({ rows: toEventRows(rows) }),
};

const NO_BLOCKS = toBlockColumns([]);
const NO_DETAILS = toDetailColumns([]);
const toColumns = <Columns extends Record<string, string>>(columns: Columns, given: (name: string) => Given) =>
  Object.fromEntries(Object.keys(columns).map((name) => [name, given(name)])) as Record<keyof Columns, Given>;

/** Caches statements by the parts that they write, because the driver would compose them each time. */
const composed = new Map<string, Composed<string, never>>();

function composeParts(parts: readonly Part[]): Composed<string, never> {
  const name = parts.join(" ");
  const known = composed.get(name);
  if (known) return known;
  const statement = compose<string, never>((sql, given) =>
    joinWrites(
      sql,
      parts.map((part) => STATEMENTS[part](sql, given("project"), (name) => given(`${part} ${name}`))),
    ),
  );
  composed.set(name, statement);
  return statement;
}

const hasEndedOnPastDay = ({ status, startedAt, runCompletedAt }: UploadedExecution): boolean =>
  hasEnded(status) && [startedAt, runCompletedAt].every((time) => time === null || mayBePastDay(time));

/**
 * Executes one statement for all parts, none of which sees the writes of another, and one for each further portion of long details. Later
 * statements see all of it.
 */
export async function writeReports(sql: Tx, projectId: string, writes: ReportWrites): Promise<void> {
  const [details = [], ...furtherDetails] = portionsOfDetails(writes.details);
  const first = { ...writes, details };
  const parts = (Object.keys(STATEMENTS) as Part[]).filter((part) => first[part].length > 0);
  if (parts.length === 0) return;
  const parameters: Record<string, string> = { project: projectId };
  for (const part of parts)
    for (const [name, value] of Object.entries(PARAMETERS[part](first[part] as never)))
      parameters[`${part} ${name}`] = value;
  // Sends everything at once, because a batch may send its commit as soon as this function has returned.
  await Promise.all([
    composeParts(parts)(sql, parameters),
    discardDays(sql, projectId, [
      ...writes.newExecutions.filter(hasEndedOnPastDay).map(({ id }) => id),
      ...writes.changedExecutions.filter(({ endedAt, now }) => mayBePastDay(endedAt ?? now)).map(({ id }) => id),
    ]),
  ]);
  for (const portion of furtherDetails) await insertDetails(sql, projectId, toDetailColumns(portion));
}
