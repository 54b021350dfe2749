/** Explains why the default branch is red: its red tasks and their failing tests, each with its first failure, owner and bug. */

import type { Html, Piece } from "../../../http/html.ts";
import type { BranchTask } from "../../../rules/branch_state.ts";
import { sourceLinks } from "../../../rules/source_links.ts";
import type { ListedCommit } from "../../../store/commits.ts";
import type { BrokenTest } from "../../../store/broken_tests.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { firstPlainLine } from "../../../wording/first_line.ts";
import { counted } from "../../../wording/numbers.ts";
import { redTaskWords } from "../../../wording/task.ts";
import type { CommitRanges } from "../../components/commit_ranges.ts";
import { MarkCell, TableHead } from "../../components/list.tsx";
import { Tag } from "../../components/status.tsx";
import { Ago, Breakable, Commit, External, toStateSpan } from "../../components/text.tsx";
import { bugPath, executionPath, taskPath, testPath } from "../../site/paths.ts";

/** Maximum number of listed red tasks. */
export const MAX_RED_TASKS = 5;
/** Maximum number of listed tests of a task. */
export const MAX_BROKEN_TESTS = 5;

type WhyRedProperties = {
  projectId: string;
  branch: string;
  /** The red tasks, at most `MAX_RED_TASKS`. */
  tasks: readonly BranchTask[];
  /** The number of red tasks that are not listed. */
  moreTasks: number;
  tests: readonly BrokenTest[];
  commitsOf: CommitRanges;
  /** The names of the visitor as an owner. */
  me: readonly string[];
  now: Date;
};

export function WhyRed({
  projectId,
  branch,
  tasks,
  moreTasks,
  tests,
  commitsOf,
  me,
  now,
}: WhyRedProperties): Html | null {
  if (tasks.length === 0) return null;
  const byTask = Map.groupBy(tests, ({ taskSlug }) => taskSlug);
  return (
    <>
      <h2>Why {branch} is red</h2>
      <div class="card">
        <table class="why">
          <TableHead
            caption={`Red tasks of ${branch} and their failing tests`}
            columns={[["Status", "hidden"], "Test", "Failing since", ["Owner", "wide"], ["Bug", "number"]]}
          />
          {tasks.map((task) => (
            <tbody>
              <TaskRow projectId={projectId} task={task} now={now} />
              {(byTask.get(task.slug) ?? []).map((test) => (
                <TestRow
                  projectId={projectId}
                  test={test}
                  isMine={test.owners.some((owner) => me.includes(owner))}
                  commits={commitsOf(test)}
                  now={now}
                />
              ))}
              <MoreRow projectId={projectId} task={task} shown={byTask.get(task.slug)?.length ?? 0} />
            </tbody>
          ))}
        </table>
        {moreTasks === 0 ? null : <p class="padded small soft">{counted(moreTasks, "more red task")}</p>}
      </div>
    </>
  );
}

type TaskProperties = { projectId: string; task: BranchTask; now: Date };

const TaskRow = ({
  projectId,
  task: { slug, status, failed, since, isLonger, lastExecutionId },
  now,
}: TaskProperties) => (
  <tr>
    <MarkCell status="failed" />
    <td class="long">
      <a href={taskPath(projectId, lastExecutionId, slug)}>
        <b>{slug}</b>
      </a>
      : {redTaskWords({ status, failed })}
    </td>
    <td colspan={3} class="soft">
      red for {toStateSpan(now.getTime() - Date.parse(since), isLonger)}
    </td>
  </tr>
);

type MoreProperties = { projectId: string; task: BranchTask; shown: number };

function MoreRow({ projectId, task: { slug, failed, lastExecutionId }, shown }: MoreProperties): Html | null {
  if (shown === 0 || failed <= shown) return null;
  return (
    <tr>
      <td></td>
      <td colspan={4} class="small">
        <a href={taskPath(projectId, lastExecutionId, slug)}>{counted(failed - shown, "more failing test")}</a>
      </td>
    </tr>
  );
}

const TAGS: Partial<Record<BrokenTest["blame"], string>> = {
  new: "new",
  unclear: "unclear",
  flaky: "flaky",
  incident: "incident",
  quarantined: "quarantined",
};

type TestProperties = {
  projectId: string;
  test: BrokenTest;
  isMine: boolean;
  commits: readonly ListedCommit[];
  now: Date;
};

function TestRow({ projectId, test, isMine, commits, now }: TestProperties): Html {
  const { testCaseId, blame, message, owners, bugId, bugNumber, bugAssignee } = test;
  const tag = TAGS[blame];
  return (
    <tr>
      <td></td>
      <td class="long">
        <a href={testPath(projectId, testCaseId)}>
          <Breakable text={shownCaseTitle(test)} />
        </a>{" "}
        {tag === undefined ? null : <Tag>{tag}</Tag>} {isMine ? <Tag>yours</Tag> : null}
        {message === null ? null : <div class="small soft">{firstPlainLine(message)}</div>}
      </td>
      <td class="long">
        {sinceWhen(projectId, test, now)}
        <Changes commits={commits} />
      </td>
      <td class="wide">{owners.join(", ") || bugAssignee || <span class="soft">–</span>}</td>
      <td class="number">
        {bugId === null ? <span class="soft">–</span> : <a href={bugPath(projectId, bugId)}>#{bugNumber}</a>}
      </td>
    </tr>
  );
}

/** Maximum number of authors that a row names. */
const MAX_AUTHORS = 3;

/** Shows the commit that broke the test, or how many there are and who made them. */
function Changes({ commits }: { commits: readonly ListedCommit[] }): Html | null {
  const [first] = commits;
  if (first === undefined) return null;
  const authors = [...new Set(commits.map(({ author }) => author))].filter(Boolean);
  const more = authors.length - MAX_AUTHORS;
  const named = authors.slice(0, MAX_AUTHORS).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return (
    <div class="small soft">
      {commits.length === 1 ? first.subject : counted(commits.length, "commit")}
      {named === "" ? "" : ` by ${named}`}
    </div>
  );
}

/** Shows the execution and the commits between which the test broke. */
function sinceWhen(projectId: string, test: BrokenTest, now: Date): Piece {
  const { sinceExecutionId, sinceCommit, sinceAt, goodCommit, buildUrl } = test;
  if (sinceExecutionId === null || sinceAt === null) return <span class="soft">unknown</span>;
  const { comparison } = sourceLinks({ buildUrl, commit: sinceCommit, since: goodCommit });
  return (
    <>
      <a href={executionPath(projectId, sinceExecutionId)}>
        <Ago at={sinceAt} now={now} />
      </a>
      {sinceCommit === null ? null : (
        <div class="small range">
          <External
            href={comparison}
            of={
              goodCommit === null || goodCommit === sinceCommit ? (
                <Commit hash={sinceCommit} />
              ) : (
                [<Commit hash={goodCommit} />, "…", <Commit hash={sinceCommit} />]
              )
            }
          />
        </div>
      )}
    </>
  );
}
