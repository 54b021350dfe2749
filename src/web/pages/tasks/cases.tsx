/** The results of a task, one per test. */

import type { Html } from "../../../http/html.ts";
import { machineText } from "../../../rules/ran_on.ts";
import type { Slower } from "../../../rules/slower.ts";
import type { RanOn } from "../../../schema/test_runs.ts";
import type { CaseResultRow } from "../../../store/case_results.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { counted, toDuration } from "../../../wording/numbers.ts";
import { slowerWords } from "../../../wording/slower.ts";
import { Attachments, type ShownAttachment } from "../../components/attachments.tsx";
import { Evidence, FULL, type Measure } from "../../components/failure.tsx";
import { firstPlainLine } from "../../../wording/first_line.ts";
import { Mark, Tag } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";
import { taskPath, testPath, toAddress } from "../../site/paths.ts";
import type { TaskAddress } from "../../../operations/executions/logs.ts";

/** Limits for the page of a single result. */
const SINGLE_RESULT: Measure = {
  isWhole: true,
  message: 1_000_000,
  stackLines: 200,
  diffLines: 200,
  output: 1_000_000,
};

const letterOf = ({ status, flaky }: CaseResultRow) => (flaky ? "flaky" : status);

type CaseItem = {
  address: TaskAddress;
  row: CaseResultRow;
  files: readonly ShownAttachment[];
  /** The usual durations, if it took longer. */
  slower: Slower | undefined;
  isAlone: boolean;
  firstLine: string;
};

function durationOf({ row: { durationMs }, slower }: Pick<CaseItem, "row" | "slower">): string {
  if (durationMs === null) return "–";
  return slower ? slowerWords(durationMs, slower) : toDuration(durationMs);
}

/** The machine of a passing test is not worth a line. */
const hostOf = (row: CaseResultRow): Html | null =>
  row.host === null || letterOf(row) === "passed" ? null : (
    <span>
      on <Breakable text={row.host} />
    </span>
  );

/** Shows a result with a message, output or files as an expandable row, and any other result as a line. */
export function caseItem(
  address: TaskAddress,
  row: CaseResultRow,
  { files, slower, isAlone }: Pick<CaseItem, "files" | "slower" | "isAlone">,
): Html {
  const firstLine = firstPlainLine(row.message) || firstPlainLine(row.stack);
  const hasMore = firstLine !== "" || (row.output ?? "") !== "" || files.length > 0;
  const item: CaseItem = { address, row, files, slower, isAlone, firstLine };
  return hasMore || isAlone ? <CaseDetails {...item} /> : <CaseLine {...item} />;
}

function CaseLine({ address, row, slower }: CaseItem): Html {
  const host = hostOf(row);
  return (
    <div class="failure-line">
      <span>
        <Mark status={letterOf(row)} />
      </span>
      <span class="long">
        <a href={testPath(address.projectId, row.testCaseId)}>
          <Breakable text={shownCaseTitle(row)} />
        </a>
        {host === null ? null : [" ", <span class="small soft">{host}</span>]}
      </span>
      <span class="small soft">{durationOf({ row, slower })}</span>
    </div>
  );
}

const CaseDetails = (item: CaseItem): Html => (
  <details class="failure" id={`r${item.row.number}`} open={item.isAlone}>
    <CaseSummary {...item} />
    <div class="evidence">
      <Evidence failure={item.row} measure={item.isAlone ? SINGLE_RESULT : FULL} title="" />
      <Attachments projectId={item.address.projectId} files={item.files} />
      {item.isAlone ? <Properties row={item.row} /> : null}
      <div>
        <CaseLinks {...item} />
      </div>
    </div>
  </details>
);

const CaseSummary = ({ row, slower, firstLine }: CaseItem): Html => (
  <summary>
    <span>
      <Mark status={letterOf(row)} />
    </span>
    <span class="long">
      <Breakable text={shownCaseTitle(row)} />
      <span class="small soft dots">
        {firstLine === "" ? null : <span>{firstLine}</span>}
        {row.file === null ? null : (
          <span>
            <Breakable text={row.file} />
            {row.line === null ? null : `:${row.line}`}
          </span>
        )}
        {hostOf(row)}
      </span>
    </span>
    <span>
      {row.attempt > 1 ? <Tag>{`attempt ${row.attempt}`}</Tag> : null}{" "}
      {row.kind === null || row.kind === "failure" ? null : <Tag kind="failed">{row.kind}</Tag>}
    </span>
    <span class="small soft">{durationOf({ row, slower })}</span>
  </summary>
);

function Properties({ row }: { row: CaseResultRow }): Html | null {
  const properties = Object.entries(row.properties ?? {});
  if (properties.length === 0) return null;
  return (
    <div>
      <h3>Properties</h3>
      <dl class="facts">
        {properties.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd class="long">{value}</dd>
          </>
        ))}
      </dl>
    </div>
  );
}

function CaseLinks({ address: { projectId, executionId, taskSlug }, row, isAlone }: CaseItem): Html {
  const whole = toAddress(taskPath(projectId, executionId, taskSlug), { case: row.testCaseId });
  return (
    <p class="small">
      <a href={testPath(projectId, row.testCaseId)}>Test history</a>
      {isAlone ? null : (
        <>
          {" "}
          · <a href={whole}>Open full result</a>
        </>
      )}
    </p>
  );
}

/** Names the machine of the latest uploads, or counts several machines. */
export function machineFact(ranOn: readonly RanOn[]): Html | null {
  const names = [...new Set(ranOn.map(machineText))].filter(Boolean);
  if (names.length === 0) return null;
  return <span>ran on {names.length === 1 ? <Breakable text={names[0]!} /> : counted(names.length, "machine")}</span>;
}
