/** The packed results of runs, and details of some results. */

import { blockOf, type Counts, countStatuses, type ResultBlock, toStatus } from "../rules/merge.ts";
import { toStoredBlock, UNTRUSTED_BLOCKS } from "../rules/untrusted.ts";
import type { CaseStatus } from "../schema/fields.ts";
import type { CaseResult } from "../schema/test_runs.ts";
import type { Given } from "../database/compose.ts";
import { type Sql, toNumberArray, toTextArray, type Tx } from "../database/connect.ts";
import { blockOfCase, caseOfResult } from "./packing.ts";
import { isActiveQuarantine } from "./predicates.ts";

/** A run, with the field that determines where its results are stored. */
type StoredRun = { id: string; untrusted: boolean };

export const selectBlocks = (sql: Sql, projectId: string, run: StoredRun, blocks: readonly number[]) => sql<
  ResultBlock[]
>`
  select block % ${UNTRUSTED_BLOCKS}::int as block, to_json(test_cases) as "testCases", statuses, to_json(attempts) as attempts,
    to_json(durations) as durations
  from case_result where project_id = ${projectId} and run_id = ${run.id}
    and block = any(${toNumberArray(storedBlocks(run, blocks))}::int[])`;

const storedBlocks = ({ untrusted }: StoredRun, blocks: readonly number[]): number[] =>
  blocks.map((block) => toStoredBlock(block, untrusted));

/** Results of a run as they are stored. */
export type RunBlock = ResultBlock & { runId: string; untrusted: boolean };

/** Blocks as parameters of a statement. */
type BlockColumns<Value = string> = {
  runIds: Value;
  blocks: Value;
  testCases: Value;
  statuses: Value;
  attempts: Value;
  durations: Value;
};

export const toBlockColumns = (blocks: readonly RunBlock[]): BlockColumns => ({
  runIds: toTextArray(blocks.map(({ runId }) => runId)),
  blocks: toNumberArray(blocks.map(({ block, untrusted }) => toStoredBlock(block, untrusted))),
  testCases: toTextArray(blocks.map(({ testCases }) => toNumberArray(testCases))),
  statuses: toTextArray(blocks.map(({ statuses }) => statuses)),
  attempts: toTextArray(blocks.map(({ attempts }) => (attempts === null ? null : toNumberArray(attempts)))),
  durations: toTextArray(blocks.map(({ durations }) => toNumberArray(durations))),
});

/** Inserts or replaces blocks. */
export const upsertBlocks = (sql: Sql, projectId: Given, columns: BlockColumns<Given>) => sql`
  insert into case_result (project_id, run_id, block, test_cases, statuses, attempts, durations)
  select ${projectId}, run_id, block, test_cases::int[], statuses, attempts::smallint[], durations::int[]
  from unnest(
    ${columns.runIds}::uuid[], ${columns.blocks}::int[], ${columns.testCases}::text[], ${columns.statuses}::text[],
    ${columns.attempts}::text[], ${columns.durations}::text[]
  ) as fresh (run_id, block, test_cases, statuses, attempts, durations)
  on conflict (project_id, run_id, block) do update set
    test_cases = excluded.test_cases, statuses = excluded.statuses, attempts = excluded.attempts,
    durations = excluded.durations`;

export const deleteBlock = (sql: Tx, projectId: string, { id, untrusted }: StoredRun, block: number) => sql`
  delete from case_result
  where project_id = ${projectId} and run_id = ${id} and block = ${toStoredBlock(block, untrusted)}`;

/** Counts of all results of a run but those in `blocks`; `quarantined` are failed ones that the verdict does not count. */
export const selectOtherCounts = async (
  sql: Sql,
  projectId: string,
  run: StoredRun,
  blocks: readonly number[],
): Promise<Counts & { quarantined: number }> => {
  const isOther = sql`
    project_id = ${projectId} and run_id = ${run.id} and block <> all(${toNumberArray(storedBlocks(run, blocks))}::int[])`;
  const [row] = await sql<{ statuses: string | null; quarantined: number }[]>`
    select
      (select string_agg(statuses, '') from case_result where ${isOther}) as statuses,
      (select count(*)::int from quarantine q
        cross join lateral (
          select * from case_result where ${isOther} and block = ${blockOfCase(sql, sql`q.test_case`)} + ${toStoredBlock(0, run.untrusted)}::int offset 0) b
        where q.project_id = ${projectId} and ${isActiveQuarantine(sql, sql`q`)}
          and upper(substr(b.statuses, array_position(b.test_cases, q.test_case), 1)) = 'F') as quarantined`;
  return { ...countStatuses(row!.statuses ?? ""), quarantined: row!.quarantined };
};

/** Returns those of the test cases (by number) that are quarantined now. */
export const selectQuarantined = async (
  sql: Sql,
  projectId: string,
  testCases: readonly number[],
): Promise<Set<number>> => {
  if (testCases.length === 0) return new Set();
  const rows = await sql<{ number: number }[]>`
    select test_case as number from quarantine q
    where project_id = ${projectId} and ${isActiveQuarantine(sql, sql`q`)}
      and test_case = any(${toNumberArray(testCases)}::int[])`;
  return new Set(rows.map(({ number }) => number));
};

export type CaseDetail = {
  testCase: number;
  kind: string | null;
  line: number | null;
  runs: number;
  message: string | null;
  stack: string | null;
  output: string | null;
  properties: Record<string, string> | null;
  /** The fingerprint of a failure by its message, hexadecimal; null for a result that did not fail. */
  cause: string | null;
};

/** The details of a case in one attempt of a run. */
export type RunDetail = CaseDetail & {
  runId: string;
  attempt: number;
  /** Null for an upload that is not one of a shard. */
  shard: number | null;
};

/** Details as parameters of a statement: arrays in step. */
type DetailColumns<Value = string> = Record<
  | "runIds"
  | "attempts"
  | "shards"
  | "cases"
  | "kinds"
  | "lines"
  | "runs"
  | "messages"
  | "stacks"
  | "outputs"
  | "properties"
  | "causes",
  Value
>;

export const toDetailColumns = (details: readonly RunDetail[]): DetailColumns => ({
  runIds: toTextArray(details.map(({ runId }) => runId)),
  attempts: toNumberArray(details.map(({ attempt }) => attempt)),
  shards: toNumberArray(details.map(({ shard }) => shard)),
  cases: toNumberArray(details.map(({ testCase }) => testCase)),
  kinds: toTextArray(details.map(({ kind }) => kind)),
  lines: toNumberArray(details.map(({ line }) => line)),
  runs: toNumberArray(details.map(({ runs }) => runs)),
  messages: toTextArray(details.map(({ message }) => message)),
  stacks: toTextArray(details.map(({ stack }) => stack)),
  outputs: toTextArray(details.map(({ output }) => output)),
  properties: toTextArray(details.map(({ properties }) => (properties === null ? null : JSON.stringify(properties)))),
  causes: toTextArray(details.map(({ cause }) => cause)),
});

/** Details that are stored already stay as they are. */
export const insertDetails = (sql: Sql, projectId: Given, columns: DetailColumns<Given>) => sql`
  insert into case_detail (project_id, run_id, test_case, attempt, shard, kind, line, runs, message, stack, output, properties,
    cause)
  select ${projectId}, run_id, test_case, attempt, shard, kind, line, runs, message, stack, output, properties::json, cause
  from unnest(
    ${columns.runIds}::uuid[], ${columns.attempts}::int[], ${columns.shards}::smallint[], ${columns.cases}::int[],
    ${columns.kinds}::text[], ${columns.lines}::int[], ${columns.runs}::int[], ${columns.messages}::text[],
    ${columns.stacks}::text[], ${columns.outputs}::text[], ${columns.properties}::text[], ${columns.causes}::uuid[]
  ) as fresh (run_id, attempt, shard, test_case, kind, line, runs, message, stack, output, properties, cause)
  on conflict (project_id, run_id, test_case, attempt) do nothing`;

const PORTION_CHARACTERS = 4_000_000;
const PORTION_ROWS = 5_000;

/** Yields portions, so that neither a parameter nor the server's memory grows with a report's output. */
export function* portionsOfDetails(details: readonly RunDetail[]): Generator<RunDetail[]> {
  for (let start = 0; start < details.length;) {
    let end = start;
    for (let size = 0; end < details.length && end - start < PORTION_ROWS && size < PORTION_CHARACTERS; end++) {
      const { message, stack, output } = details[end]!;
      size += (message?.length ?? 0) + (stack?.length ?? 0) + (output?.length ?? 0);
    }
    yield details.slice(start, end);
    start = end;
  }
}

type CaseResultQuery = {
  limit: number;
  status?: CaseStatus | undefined;
  flaky?: boolean | undefined;
  /** Part of suite, name or file. */
  q?: string | undefined;
  /** The test_case.number of the only case to read. */
  testCase?: number | undefined;
  /** The place of the page before: rank and test_case.number of its last result. */
  after?: string[] | undefined;
};

export type CaseResultRow = Omit<CaseResult, "attachments"> & {
  rank: number;
  number: number;
  /** The machine that it ran on; null: unknown. */
  host: string | null;
};

type Unpacked = Omit<CaseResultRow, "status" | "flaky"> & { letter: string };

/** Failed first, then by test case in the order in which they were first seen; one row more than `limit`. */
export async function selectCaseResults(
  sql: Sql,
  projectId: string,
  run: StoredRun,
  { limit, status, flaky, q, testCase, after }: CaseResultQuery,
): Promise<CaseResultRow[]> {
  const storedBlock = (number: number) => toStoredBlock(blockOf(number), run.untrusted);
  const rank = Number(after?.[0] ?? 0);
  const number = Number(after?.[1] ?? -1);
  const first = rank === 0 ? await selectRanked(0, number, limit + 1) : [];
  if (first.length > limit || status === "failed") return first;
  return [...first, ...(await selectRanked(1, rank === 1 ? number : -1, limit + 1 - first.length))];

  /** Rank 0 holds the failed results, rank 1 all others: within a rank a page reads only the blocks that it needs. */
  async function selectRanked(rank: 0 | 1, after: number, limit: number): Promise<CaseResultRow[]> {
    const letters = [...(rank === 0 ? "fFcC" : "psPS")].filter(
      (letter) =>
        (status === undefined || toStatus(letter) === status) && (flaky === undefined || (letter === "P") === flaky),
    );
    if (letters.length === 0) return [];
    const rows = await sql<Unpacked[]>`
      select ${rank}::int as rank, r.number, c.id as "testCaseId", c.suite, c.name, c.file, d.line, r.letter, d.kind,
        r.attempt, r.duration as "durationMs", d.message, d.stack, right(d.output, 16384) as output, d.properties,
        a.host
      from (
        select result.number, result.letter, coalesce(result.attempt, 1) as attempt, result.duration
        from case_result b, lateral unnest(b.test_cases, string_to_array(b.statuses, null), b.attempts, b.durations)
          as result (number, letter, attempt, duration)
        ${q === undefined ? sql`` : sql`cross join lateral ${caseOfResult(sql, projectId, sql`result.number`)} c`}
        where b.project_id = ${projectId} and b.run_id = ${run.id} and b.block >= ${storedBlock(after)}
          and b.statuses ~ ${`[${letters.join("")}]`} and result.number > ${after}
          and result.letter = any(${toTextArray(letters)}::text[])
          ${q === undefined ? sql`` : sql`and position(lower(${q}) in lower(concat_ws(' ', c.suite, c.name, c.file))) > 0`}
          ${testCase === undefined ? sql`` : sql`and b.block = ${storedBlock(testCase)} and result.number = ${testCase}`}
        order by b.block, result.number limit ${limit}
      ) r
      cross join lateral ${caseOfResult(sql, projectId, sql`r.number`)} c
      left join case_detail d on d.project_id = ${projectId} and d.run_id = ${run.id} and d.test_case = r.number
        and d.attempt = r.attempt
      left join lateral (
        select host from attempt
        where project_id = ${projectId} and run_id = ${run.id} and shard = coalesce(d.shard, 0) and number = r.attempt
        offset 0) a on true
      order by r.number`;
    return rows.map(({ letter, ...row }) => ({ ...row, status: toStatus(letter), flaky: letter === "P" }));
  }
}
