/** The branches of a project besides the default one, each with its newest execution and the new failures of its executions. */

import type { Html, Path, Piece } from "../../../http/html.ts";
import type { ExecutionSummary } from "../../../store/execution_list.ts";
import type { LiveItemRow } from "../../../store/overview.ts";
import { executionNumber, lineName } from "../../../wording/execution_name.ts";
import { firstPlainLine } from "../../../wording/first_line.ts";
import { counted } from "../../../wording/numbers.ts";
import { outcomeText } from "../../components/execution_table.tsx";
import { AgoCell, CardTable, MarkCell } from "../../components/list.tsx";
import { CommitText } from "../../components/text.tsx";
import { executionPath } from "../../site/paths.ts";

const DAY_MS = 86_400_000;
/** Branches without an execution for longer are stale. */
const STALE_DAYS = 7;
/** Maximum number of branches that are not folded. */
const MAX_BRANCHES = 6;
/** Maximum number of branches. */
export const MAX_BRANCH_HEADS = 10;

type BranchRow = {
  /** A branch, or a merge queue. */
  name: string | null;
  /** Null if its newest execution is not among the newest ones of the project. */
  head: ExecutionSummary | null;
  news: readonly LiveItemRow[];
};

type Properties = {
  projectId: string;
  heads: readonly ExecutionSummary[];
  news: readonly LiveItemRow[];
  now: Date;
};

/** An execution of the branch, and what is to be said about it. */
const Line = ({ to, name, children }: { to: Path; name: string; children?: Piece }): Html => (
  <div>
    <a href={to}>{name}</a>: {children}
  </div>
);

function Row({ projectId, row: { name, head, news }, now }: { projectId: string; row: BranchRow; now: Date }): Html {
  const isNews = head !== null && news.some(({ executionId }) => executionId === head.id);
  return (
    <tr>
      <MarkCell status={head === null ? "failed" : (head.repeatedStatus ?? head.status)} />
      <td class="long">
        <code>{name}</code> {head === null ? null : <CommitText of={head} />}
      </td>
      <td class="long">
        {head === null || isNews ? null : (
          <Line to={executionPath(projectId, head.id)} name={executionNumber(head)}>
            {outcomeText(head)}
          </Line>
        )}
        {news.map((row) => (
          <Line to={executionPath(projectId, row.executionId)} name={executionNumber(row)}>
            {counted(row.failures, "new failure")}
            <span class="small soft">{firstPlainLine(row.message ?? row.test)}</span>
          </Line>
        ))}
      </td>
      <AgoCell at={head === null ? news[0]!.createdAt : (head.completedAt ?? head.createdAt)} now={now} />
    </tr>
  );
}

/** Branches with new failures come first. */
function toRows({ heads, news }: Pick<Properties, "heads" | "news">): BranchRow[] {
  const byName = Map.groupBy(news, lineName);
  const known = heads.map((head) => ({ name: head.branch, head, news: byName.get(head.branch) ?? [] }));
  for (const { branch } of heads) byName.delete(branch);
  const others = [...byName].map(([name, news]) => ({ name, head: null, news }));
  return [...others, ...known].toSorted((a, b) => Number(a.news.length === 0) - Number(b.news.length === 0));
}

const COLUMNS = [["Status", "hidden"], "Branch", "Newest execution", ["When", "number"]] as const;

export function Branches({ projectId, heads, news, now }: Properties): Html | null {
  const rows = toRows({ heads, news });
  const isFresh = ({ head }: BranchRow) =>
    head === null || now.getTime() - Date.parse(head.completedAt ?? head.createdAt) < STALE_DAYS * DAY_MS;
  const shown = rows.filter(isFresh).slice(0, MAX_BRANCHES);
  const folded = rows.filter((row) => !shown.includes(row));
  const table = (caption: string, rows: readonly BranchRow[]) => (
    <CardTable caption={caption} columns={COLUMNS} hidesHead kind="builds">
      {rows.map((row) => (
        <Row projectId={projectId} row={row} now={now} />
      ))}
    </CardTable>
  );
  if (rows.length === 0) return null;
  return (
    <>
      <h2>Other branches</h2>
      {shown.length === 0 ? null : table("Other branches", shown)}
      {folded.length === 0 ? null : (
        <details class="bare">
          <summary>
            {counted(folded.length, "more branch", "more branches")}
            {folded.some(isFresh) ? "" : `, without an execution for ${STALE_DAYS} days`}
          </summary>
          {table("More branches", folded)}
        </details>
      )}
    </>
  );
}
