/** Loads the failures of an execution by cause, with the evidence of each cause. */

import type { Sql } from "../../../database/connect.ts";
import { type CaseAttachments, readCaseFiles } from "../../../operations/attachments/read.ts";
import { type CausePage, readCauses } from "../../../operations/executions/failures.ts";
import type { CaseAttachmentRow } from "../../../store/attachments.ts";
import type { ListedCommit } from "../../../store/commits.ts";
import { type FailureEvidence, selectFailureEvidence } from "../../../store/failures.ts";
import { type PassAtCommit, selectPassesAtCommit } from "../../../store/same_commit.ts";
import { readCommitRanges } from "../../components/commit_ranges.ts";
import { readCauseCursor, writeCauseCursor } from "../../components/causes.ts";

/** Number of causes on a page. */
const CAUSES_PER_PAGE = 25;

/** Number of causes with their history. */
const CAUSES_WITH_HISTORY = 20;

/** Number of causes with their attachments. */
const CAUSES_WITH_FILES = 12;

/** Number of tests that are listed for one cause. */
const TESTS_PER_CAUSE = 10;

export type Failures = Pick<CausePage, "causes" | "totals"> & {
  evidence: ReadonlyMap<string, FailureEvidence>;
  filesOf: CaseAttachments<CaseAttachmentRow>;
  next: string | undefined;
};

/** Facts that explain the failures of the first cause pages, besides their judgement. */
export type Background = {
  /** Passes at the commit, by `keyOf` of the failure. */
  passes: ReadonlyMap<string, PassAtCommit>;
  /** Returns the commits between the last pass and the first failure, newest first; empty: unknown. */
  commitsOf: (failure: { runId: string; number: number }) => readonly ListedCommit[];
};

type Tested = { id: string; commit: string | null; untrusted: boolean };

export async function readBackground(
  sql: Sql,
  projectId: string,
  execution: Tested,
  { causes, evidence }: Pick<Failures, "causes" | "evidence">,
): Promise<Background> {
  const heads = causes.map(({ failures }) => failures[0]);
  const brokenOf = (failure: { runId: string; number: number }) => {
    const { goodCommit = null, sinceExecutionId = null, sinceCommit = null } = evidence.get(keyOf(failure)) ?? {};
    return { goodCommit, sinceCommit: sinceExecutionId === null ? null : sinceCommit };
  };
  const [passes, commitsOf] = await Promise.all([
    // Results of forks are stored apart.
    execution.untrusted ? [] : selectPassesAtCommit(sql, projectId, execution, heads),
    readCommitRanges(sql, projectId, heads.map(brokenOf)),
  ]);
  return {
    passes: new Map(passes.map((pass) => [keyOf(pass.failed), pass])),
    commitsOf: (failure) => commitsOf(brokenOf(failure)),
  };
}

export const keyOf = ({ runId, number }: { runId: string; number: number }) => `${runId} ${number}`;

export async function readFailures(
  sql: Sql,
  projectId: string,
  executionId: string,
  cursor: string | undefined,
): Promise<Failures> {
  const query = {
    limit: CAUSES_PER_PAGE,
    members: TESTS_PER_CAUSE,
    total: CAUSES_PER_PAGE * TESTS_PER_CAUSE,
    after: readCauseCursor(cursor),
  };
  const { causes, totals, last } = await readCauses(sql, projectId, executionId, query);
  const heads = causes.map(({ failures }, index) => ({ ...failures[0], deep: index < CAUSES_WITH_HISTORY }));
  const [found, filesOf] = await Promise.all([
    heads.length === 0 ? [] : selectFailureEvidence(sql, projectId, executionId, heads),
    readCaseFiles(sql, projectId, heads.slice(0, CAUSES_WITH_FILES)),
  ]);
  const evidence = new Map(found.map((row) => [keyOf(row), row]));
  return { causes, totals, evidence, filesOf, next: writeCauseCursor(last) };
}
