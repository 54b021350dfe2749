/** The results of a task, a test each. */

import type { Html } from "../../../http/html.ts";
import { machineText } from "../../../rules/ran_on.ts";
import type { RanOn } from "../../../schema/test_runs.ts";
import type { CaseResultRow } from "../../../store/case_results.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { counted, toDuration } from "../../../wording/numbers.ts";
import { Evidence, FULL, type Measure, firstPlainLine } from "../../components/failure.tsx";
import { Mark, Tag } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";
import { taskPath, testPath, toAddress } from "../../site/paths.ts";
import type { TaskPlace } from "../../../operations/executions/logs.ts";

/** Of one result, which has a page for itself. */
const WHOLE: Measure = { isWhole: true, message: 1_000_000, stackLines: 200, diffLines: 200, output: 1_000_000 };

const letterOf = ({ status, flaky }: CaseResultRow) => (flaky ? "flaky" : status);

/** A result that failed opens in place; the others are a line. */
export function caseItem(place: TaskPlace, row: CaseResultRow, isAlone: boolean): Html {
  const { projectId, executionId, taskSlug } = place;
  const said = firstPlainLine(row.message) || firstPlainLine(row.stack);
  const hasMore = said !== "" || (row.output ?? "") !== "";
  const status = letterOf(row);
  const took = row.durationMs === null ? "–" : toDuration(row.durationMs);
  const file =
    row.file === null ? null : (
      <span>
        <Breakable text={row.file} />
        {row.line === null ? null : `:${row.line}`}
      </span>
    );
  // Where a passing test ran is not worth a line.
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
        </span>{" "}
        <span class="long">
          <Breakable text={shownCaseTitle(row)} />
          <span class="small soft dots">
            {said === "" ? null : <span>{said}</span>}
            {file}
            {host}
          </span>
        </span>{" "}
        <span>
          {row.attempt > 1 ? <Tag>{`attempt ${row.attempt}`}</Tag> : null}{" "}
          {row.kind === null || row.kind === "failure" ? null : <Tag kind="failed">{row.kind}</Tag>}
        </span>
        <span class="small soft">{took}</span>
      </summary>
      <div class="evidence">
        <Evidence said={row} measure={isAlone ? WHOLE : FULL} title="" />

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

/** Where the latest uploads ran: a single machine is named, several are counted, and the table of uploads names each. */
export function machineFact(ranOn: readonly RanOn[]): Html | null {
  const names = [...new Set(ranOn.map(machineText))].filter(Boolean);
  if (names.length === 0) return null;
  return <span>ran on {names.length === 1 ? <Breakable text={names[0]!} /> : counted(names.length, "machine")}</span>;
}
