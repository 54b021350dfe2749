/** The facts of a bug: when it was seen, where it was fixed, and its labels. */

import { executionName } from "../../../wording/execution_name.ts";
import { type Html, safeUrl } from "../../../http/html.ts";
import type { BugReportDetail } from "../../../schema/bug_reports.ts";
import type { DescribedExecution } from "../../../store/execution_list.ts";
import { Tag } from "../../components/status.tsx";
import { Ago, Commit, CommitText } from "../../components/text.tsx";
import { executionPath } from "../../site/paths.ts";

const fact = (name: string, value: Html | string | null): Html | null =>
  value === null ? null : (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );

const commitOf = (build: DescribedExecution): Html | null =>
  build.commit === null ? null : (
    <>
      {" "}
      <Commit hash={build.commit} /> <CommitText of={build} />
    </>
  );

export function factsOf(
  projectId: string,
  bug: BugReportDetail,
  { builds }: { builds: ReadonlyMap<string, DescribedExecution> },
  now: Date,
): Html {
  const external = safeUrl(bug.externalUrl);
  const at = (when: string | null, execution: string | null) =>
    when === null ? null : (
      <>
        <Ago at={when} now={now} />
        {execution === null ? null : builds.has(execution) ? (
          <>
            , <a href={executionPath(projectId, execution)}>in {executionName(builds.get(execution)!)}</a>
            {commitOf(builds.get(execution)!)}
          </>
        ) : (
          ", in an execution that has been deleted"
        )}
      </>
    );
  return (
    <dl class="facts card padded">
      {fact("Owners", bug.owners.join(", ") || null)}
      {fact("First seen", at(bug.firstSeenAt, bug.firstExecutionId))}
      {fact(
        "Last seen",
        bug.lastSeenAt === null ? null : (
          <>
            {at(bug.lastSeenAt, bug.lastExecutionId)}
            {builds.has(bug.lastExecutionId ?? "") || bug.commit === null ? null : [" ", <Commit hash={bug.commit} />]}
          </>
        ),
      )}
      {fact("Resolved", bug.resolvedAt === null ? null : <Ago at={bug.resolvedAt} now={now} />)}
      {fact("Fixed in", bug.fixedInCommit === null ? null : <Commit hash={bug.fixedInCommit} />)}
      {fact("Tasks", bug.taskSlugs.length === 0 ? null : bug.taskSlugs.join(", "))}
      {fact("Labels", bug.labels.length === 0 ? null : <>{bug.labels.map((label) => [<Tag>{label}</Tag>, " "])}</>)}
      {fact(
        "External link",
        bug.externalUrl === null ? null : external ? (
          <a class="long" href={external} rel="noopener noreferrer">
            {bug.externalUrl}
          </a>
        ) : (
          bug.externalUrl
        ),
      )}
      {fact(
        "Opened",
        <>
          {bug.source === "manual" ? "manual" : "automatic"}, <Ago at={bug.createdAt} now={now} />
        </>,
      )}
    </dl>
  );
}
