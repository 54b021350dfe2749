/** The results of one test: the strip of the last ones, durations, the last failure and the history. */

import type { Href, Html } from "../../../http/html.ts";
import type { Slower } from "../../../rules/slower.ts";
import type { BugOfCase } from "../../../store/bug_cases.ts";
import type { CaseMessage } from "../../../store/case_record.ts";
import type { DescribedExecution } from "../../../store/execution_list.ts";
import type { HistoryRow, TestCaseRow } from "../../../store/test_cases.ts";
import { firstLineOf, messageLineOf } from "../../../wording/first_line.ts";
import { counted, toCount, toDuration } from "../../../wording/numbers.ts";
import { slowerWords } from "../../../wording/slower.ts";
import { onlyWithWords } from "../../../wording/why.ts";
import { AgoCell, MarkCell, CardTable } from "../../components/list.tsx";
import { Attachments, type ShownAttachment } from "../../components/attachments.tsx";
import { Bars } from "../../components/bars.tsx";
import { executionName } from "../../../wording/execution_name.ts";
import { Tag } from "../../components/status.tsx";
import { Ago, Commit, CommitText } from "../../components/text.tsx";
import { bugPath, executionPath } from "../../site/paths.ts";

export const HISTORY_ROWS = 15;

export const STRIP_LENGTH = 50;

export const MAX_STACK_LENGTH = 6_000;

/** Whether a result indicates a problem, even if it passed on retry. Failures of an outage do not count. */
export const isFailure = ({ status, flaky, outage }: HistoryRow): boolean => (status === "failed" || flaky) && !outage;

export const isCounted = ({ status, outage }: HistoryRow): boolean => status !== "skipped" && !outage;

const statusOf = ({ status, flaky }: HistoryRow): string => (flaky ? "flaky" : status);

/** Returns the displayed status. An outage is not a result of the test. */
const shownAs = (row: HistoryRow): string => (row.outage ? "outage" : statusOf(row));

/** Counts results such as "2 flaky, 1 failed"; each result counts once. */
export const tallyOf = (rows: readonly HistoryRow[]): string =>
  ["passed", "flaky", "failed", "skipped", "outage"]
    .flatMap((shown) => {
      const number = rows.filter((row) => shownAs(row) === shown).length;
      return number === 0 ? [] : [shown === "outage" ? counted(number, "outage") : `${toCount(number)} ${shown}`];
    })
    .join(", ");

/** Returns a relative link, because the page of a test contains very many of them. */
const near = ({ executionId }: { executionId: string }): Href => `../executions/${executionId}`;

export type TestHistory = {
  projectId: string;
  rows: readonly HistoryRow[];
  names: ReadonlyMap<string, DescribedExecution>;
  /** Returns with what the duration of a result is compared, if it was longer than usual. */
  slowerOf: (row: HistoryRow) => Slower | undefined;
};

const buildNameOf = ({ executionId }: HistoryRow, names: TestHistory["names"]): string => {
  const name = names.get(executionId);
  return name ? executionName(name) : "";
};

const durationWords = (ms: number, slower: Slower | undefined): string =>
  slower ? `slower than usual: ${slowerWords(ms, slower)}` : toDuration(ms);

/** Shows the last results as bars whose height is the duration. */
export function LastResults({
  testHistory: { rows, names, slowerOf },
  test,
}: {
  testHistory: TestHistory;
  test: TestCaseRow;
}): Html | null {
  if (rows.length === 0) return null;
  const bars = rows.toReversed().map((row) => {
    const name = [buildNameOf(row, names), row.branch].filter(Boolean).join(" ");
    const duration = row.durationMs === null ? [] : [durationWords(row.durationMs, slowerOf(row))];
    return {
      status: statusOf(row),
      value: row.durationMs,
      href: near(row),
      name,
      label: [shownAs(row), ...duration, name].join(", "),
    };
  });
  const facts = [
    test.averageMs !== null && `${toDuration(test.averageMs)} on average`,
    test.p95Ms !== null && `95th percentile ${toDuration(test.p95Ms)}`,
  ].filter(Boolean);
  return (
    <section class="card padded">
      <h2 class="first">
        The last {counted(rows.length, "result")}{" "}
        <small>
          on all branches: {tallyOf(rows)}; newest right{facts.length > 0 ? `. Duration: ${facts.join(", ")}` : null}
        </small>
      </h2>
      <Bars
        title={`The last ${counted(rows.length, "result")} with their durations, newest right`}
        bars={bars}
        show={toDuration}
        columns={["Execution", "Result", "Duration"]}
      />
    </section>
  );
}

export type LastFailure = {
  row: HistoryRow;
  failure: CaseMessage | undefined;
  files: readonly ShownAttachment[];
  onlyWith: readonly string[];
};

export function lastFailure(
  { projectId, names }: TestHistory,
  { row, failure, files, onlyWith }: LastFailure,
  now: Date,
): Html {
  const variants = onlyWithWords([{ onlyWith }]);
  const { message = null, stack = null } = failure ?? {};
  const holds = message !== null && stack?.startsWith(message);
  return (
    <>
      <h2>
        Last failure{" "}
        <small>
          <a href={executionPath(projectId, row.executionId)}>{buildNameOf(row, names) || "its execution"}</a>
          {row.branch === null ? null : [" ", <code>{row.branch}</code>]}
          {row.commit === null ? null : [" ", <Commit hash={row.commit} />]}{" "}
          {row.completedAt === null ? null : <Ago at={row.completedAt} now={now} />}
          {row.flaky ? ", and passed on retry" : ""}
          {variants === null ? "" : `, ${variants}`}
        </small>
      </h2>
      {message === null && stack === null ? <p class="soft">No output.</p> : null}
      {message === null || holds ? null : <pre>{message}</pre>}
      {stack === null ? null : <pre>{stack}</pre>}
      <Attachments projectId={projectId} files={files} />
      {(stack ?? message ?? "").length >= MAX_STACK_LENGTH ? (
        <p class="hint">Truncated. Open the execution for the full result.</p>
      ) : null}
    </>
  );
}

const severityOf = (severity: string): Html => <span class="nowrap">{severity}</span>;

export const bugsOfCase = (projectId: string, bugs: readonly BugOfCase[]): Html | null =>
  bugs.length === 0 ? null : (
    <>
      <h2>Open bugs</h2>
      <CardTable caption="Open bugs of this test">
        {bugs.map((bug) => (
          <tr>
            <MarkCell status={bug.regressed ? "regressed" : bug.status} />
            <td class="long">
              <a href={bugPath(projectId, bug.id)}>
                <b>Bug {bug.number}</b> {bug.title}
              </a>
            </td>
            <td class="number">{severityOf(bug.severity)}</td>
          </tr>
        ))}
      </CardTable>
    </>
  );

/** Marks a result that took longer than usual. */
const UsualDuration = ({ slower }: { slower: Slower | undefined }): Html | null =>
  slower ? <span class="small soft wide">slower, usually {toDuration(slower.usualMs)}</span> : null;

export function history({ rows, names, slowerOf }: TestHistory, now: Date): Html {
  return (
    <CardTable
      caption="Results, newest first"
      kind="case-history"
      columns={[["Status", "hidden"], "Execution", ["Message", "wide"], ["Duration", "number"], ["When", "number"]]}
    >
      {rows.map((row) => (
        <tr>
          <MarkCell status={statusOf(row)} />
          <td class="long">
            <a href={near(row)}>{buildNameOf(row, names)}</a>
            {row.branch === null ? null : [" ", <code>{row.branch}</code>]}
            {row.commit === null
              ? null
              : [
                  " ",
                  <span class="soft">
                    <Commit hash={row.commit} />
                  </span>,
                  " ",
                  <span class="wide">
                    {names.has(row.executionId) ? <CommitText of={names.get(row.executionId)!} /> : null}
                  </span>,
                ]}
            {row.outage ? [" ", <Tag>outage</Tag>] : null}
            {row.attempt > 1 ? [" ", <Tag>{`attempt ${row.attempt}`}</Tag>] : null}
          </td>
          <td class="wide long small">{firstLineOf(messageLineOf(row.message), MAX_MESSAGE_LENGTH)}</td>
          <td class="number">
            {row.durationMs === null ? "–" : toDuration(row.durationMs)}
            <UsualDuration slower={slowerOf(row)} />
          </td>
          <AgoCell at={row.completedAt ?? names.get(row.executionId)?.createdAt ?? null} now={now} never="–" />
        </tr>
      ))}
    </CardTable>
  );
}

/** Maximum length of the first line of a message. */
const MAX_MESSAGE_LENGTH = 140;
