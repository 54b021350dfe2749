/** The results of a task, one per test. */

import type { Html } from "../../../http/html.ts";
import { machineText } from "../../../rules/ran_on.ts";
import type { RanOn } from "../../../schema/test_runs.ts";
import type { CaseResultRow } from "../../../store/case_results.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { counted, toDuration } from "../../../wording/numbers.ts";
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

/** Shows a failed result as an expandable row, and any other result as a line. */
export function caseItem(key: TaskAddress, row: CaseResultRow, isAlone: boolean): Html {
  const { projectId, executionId, taskSlug } = key;
  const firstLine = firstPlainLine(row.message) || firstPlainLine(row.stack);
  const hasMore = firstLine !== "" || (row.output ?? "") !== "";
  const status = letterOf(row);
  const took = row.durationMs === null ? "–" : toDuration(row.durationMs);
  const file =
    row.file === null ? null : (
      <span>
        <Breakable text={row.file} />
        {row.line === null ? null : `:${row.line}`}
      </span>
    );
  // The machine of a passing test is not worth a line.
  const host =
    row.host === null || letterOf(row) === "passed" ? null : (
      <span>
        on <Breakable text={row.host} />
      </span>
    );
  const whole = toAddress(taskPath(projectId, executionId, taskSlug), { case: row.testCaseId });
  const properties = Object.entries(row.properties ?? {});
  const links = (
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
  if (!hasMore && !isAlone)
    return (
      <div class="failure-line">
        <span>
          <Mark status={status} />
        </span>
        <span class="long">
          <a href={testPath(projectId, row.testCaseId)}>
            <Breakable text={shownCaseTitle(row)} />
          </a>
          {host === null ? null : (
            <>
              {" "}
              <span class="small soft">{host}</span>
            </>
          )}
        </span>
        <span class="small soft">{took}</span>
      </div>
    );
  return (
    <details class="failure" id={`r${row.number}`} open={isAlone}>
      <summary>
        <span>
          <Mark status={status} />
        </span>
        <span class="long">
          <Breakable text={shownCaseTitle(row)} />
          <span class="small soft dots">
            {firstLine === "" ? null : <span>{firstLine}</span>}
            {file}
            {host}
          </span>
        </span>
        <span>
          {row.attempt > 1 ? <Tag>{`attempt ${row.attempt}`}</Tag> : null}{" "}
          {row.kind === null || row.kind === "failure" ? null : <Tag kind="failed">{row.kind}</Tag>}
        </span>
        <span class="small soft">{took}</span>
      </summary>
      <div class="evidence">
        <Evidence failure={row} measure={isAlone ? SINGLE_RESULT : FULL} title="" />

        {isAlone && properties.length > 0 ? (
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
        ) : null}
        <div>{links}</div>
      </div>
    </details>
  );
}

/** Names the machine of the latest uploads, or counts several machines. */
export function machineFact(ranOn: readonly RanOn[]): Html | null {
  const names = [...new Set(ranOn.map(machineText))].filter(Boolean);
  if (names.length === 0) return null;
  return <span>ran on {names.length === 1 ? <Breakable text={names[0]!} /> : counted(names.length, "machine")}</span>;
}
