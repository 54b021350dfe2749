/** The newest failure of a bug and how often it occurred. */

import type { Html } from "../../../http/html.ts";
import type { NewestFailure, OccurrenceDay } from "../../../store/bug_evidence.ts";
import { shownTaskTitle } from "../../../wording/case_title.ts";
import { counted } from "../../../wording/numbers.ts";
import { onlyWithWords } from "../../../wording/why.ts";
import { Attachments, type ShownAttachment } from "../../components/attachments.tsx";
import { DayBars } from "../../components/day_bars.tsx";
import { Evidence, FULL } from "../../components/failure.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { executionPath, taskPath, testPath, toAddress } from "../../site/paths.ts";

/** Number of days of the chart. */
export const DAYS = 30;

type NewestProperties = {
  projectId: string;
  failure: NewestFailure;
  files: readonly ShownAttachment[];
  onlyWith: readonly string[];
  now: Date;
};

export function NewestFailureCard({ projectId, failure, files, onlyWith, now }: NewestProperties): Html {
  const variants = onlyWithWords([{ onlyWith }]);
  const { executionId, taskSlug, testCaseId, message, stack, output, seenAt } = failure;
  return (
    <>
      <h2>
        Newest failure{" "}
        <small>
          <a href={executionPath(projectId, executionId)}>
            <Ago at={seenAt} now={now} />
          </a>
          {variants === null ? null : `, ${variants}`}
        </small>
      </h2>
      <section class="card padded newest">
        <p>
          <a href={testPath(projectId, testCaseId)}>
            <Breakable text={shownTaskTitle(failure)} />
          </a>
        </p>
        <div class="evidence">
          <Evidence failure={{ message, stack, output }} measure={FULL} title="" />
          <Attachments projectId={projectId} files={files} />
        </div>
        <p class="small">
          <a href={toAddress(taskPath(projectId, executionId, taskSlug), { case: testCaseId })}>Open full result</a>
        </p>
      </section>
    </>
  );
}

type ChartProperties = { days: readonly OccurrenceDay[]; now: Date };

export function OccurrenceChart({ days, now }: ChartProperties): Html {
  const failures = days.reduce((sum, day) => sum + day.failures, 0);
  const figures = new Map(days.map((day) => [day.day, day.failures]));
  return (
    <section class="card padded occurrences-by-day">
      <h2 class="label">
        Occurrences per day: {counted(failures, "failure")} in the last {DAYS} days
      </h2>
      <DayBars figures={figures} days={DAYS} now={now} height={48} noun="failure" />
    </section>
  );
}

/** The days of the small chart in the list. */
export const LIST_DAYS = 14;

type ActivityProperties = { days: readonly OccurrenceDay[]; now: Date };

/** Shows how many executions the bug failed recently, or nothing if it did not occur. */
export function Activity({ days, now }: ActivityProperties): Html | null {
  if (days.length === 0) return null;
  const executions = days.reduce((sum, day) => sum + day.executions, 0);
  const figures = new Map(days.map((day) => [day.day, day.failures]));
  return (
    <>
      <DayBars figures={figures} days={LIST_DAYS} now={now} height={18} noun="failure" />
      <span class="small soft">{counted(executions, "failed execution")}</span>
    </>
  );
}
