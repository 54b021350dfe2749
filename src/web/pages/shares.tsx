/** Sharing: links and badges are made and revoked, and what those see who have one. */

import * as v from "valibot";
import { escapeText, type Html, type Path, type Piece } from "../../http/html.ts";
import { getBranchDays } from "../../operations/health/branch_days.ts";
import { type CauseFailures, type CausePage, readCauses } from "../../operations/executions/failures.ts";
import { createShare, findShared, revokeShare } from "../../operations/people/shares.ts";
import { Reply } from "../../request/reply.ts";
import { type Badge, drawBadge } from "../../wording/badge.ts";
import { hasEnded } from "../../rules/execution.ts";
import type { Blame } from "../../schema/failures.ts";
import { uuid } from "../../schema/fields.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import { newBadge, type SharedPlace } from "../../schema/shares.ts";
import { maskKeys } from "../../secrets/keys.ts";
import type { Database, Sql } from "../../database/connect.ts";
import { type ExecutionRow, type TaskRow } from "../../store/executions.ts";
import { selectBuild, selectLastBuild } from "../../store/overview.ts";
import { selectBranch, selectBranchState } from "../../store/state.ts";
import { shownCaseTitle } from "../../wording/case_title.ts";
import { executionOutcome } from "../../wording/execution.ts";
import { selectExecution, type ExecutionSummary, selectSummaries } from "../../store/execution_list.ts";
import { executionPath } from "../site/paths.ts";
import { executionName } from "../components/execution_table.tsx";
import { causeCursor, readCauseCursor, writeCauseCursor } from "../components/causes.ts";
import { BRIEF, Evidence, FULL, firstPlainLine } from "../components/failure.tsx";
import { type Page, SeeOther, type View, form, page } from "../site/page.ts";
import { Ago, Breakable, Commit } from "../components/text.tsx";
import { counted, toCount, toDuration } from "../../wording/numbers.ts";
import { Mark, Tag, wordOf } from "../components/status.tsx";
import { Pager } from "../components/pager.tsx";
import { branchHeadline } from "../components/project_state.tsx";
import { shareName, shareSection } from "../components/share_parts.tsx";
import { TREND_DAYS, trendCharts } from "../components/trends.tsx";

// ── Made, shown once, revoked

const onceMore = (projectId: string): Html => (
  <p class="actions">
    <a class="button" href={`/projects/${projectId}/shares`}>
      All links and badges
    </a>
  </p>
);

function madeLink(projectId: string, what: Html, url: string, sees: string, back: Html): View {
  const body = (
    <>
      <h1>A link for whoever has it</h1>
      <div class="message good" role="status">
        <p>
          <b>Copy it now: it is shown this once.</b> {what}
        </p>
      </div>
      <div class="copied">
        <pre data-copy>{url}</pre>
      </div>
      <div class="prose">
        <p>{sees}</p>
        <p>It opens without signing in, until somebody revokes it.</p>
      </div>
      <p class="actions">
        {back}
        <a class="button" href={`/projects/${projectId}/shares`}>
          All links and badges
        </a>
      </p>
    </>
  );
  return { title: "A link for whoever has it", body, section: "settings" };
}

/** Of Markdown, where brackets would end it. */
const inBrackets = (text: string): string => text.replace(/[[\]\\`*_<>\n]/g, " ").trim();

function madeBadge(
  { projectId, publicUrl }: { projectId: string; publicUrl: string },
  { what, alt, badge, token }: { what: Html; alt: string; badge: Badge; token: string },
): View {
  const image = `${publicUrl}/badge/${token}.svg`;
  const target = `${publicUrl}/projects/${projectId}`;
  const text = inBrackets(alt);
  const body = (
    <>
      <h1>A badge</h1>
      <div class="message good" role="status">
        <p>
          <b>Copy it now: its address is shown this once.</b> {what}.
        </p>
      </div>
      <p>
        <img src={`/badge/${token}.svg`} alt={badge.title} height="20" />
      </p>
      <h2>Markdown</h2>
      <div class="copied">
        <pre data-copy>{`[![${text}](${image})](${target})`}</pre>
      </div>
      <h2>HTML</h2>
      <div class="copied">
        <pre data-copy>{`<a href="${target}"><img src="${image}" alt="${escapeText(text)}" height="20"></a>`}</pre>
      </div>
      <h2>Its address</h2>
      <div class="copied">
        <pre data-copy>{image}</pre>
      </div>
      <p class="hint">The picture is for everybody; what it links to is for members of the team, who sign in.</p>
      {onceMore(projectId)}
    </>
  );
  return { title: "A badge", body, section: "settings" };
}

const SEES_EXECUTION =
  "Whoever has it sees the outcome, the counts, the tasks, and the failures by cause with their messages and stacks; no logs, no output of tests, no variables, no runners or machines, no names of people, and nothing of other executions.";
const SEES_PROJECT =
  "Whoever has it sees the state of the default branch, how it has been going, and how the newest executions ended; nothing behind them.";

// ── What those see who have a link

/** Without what only members may know; keys that somebody has put into a text are cut. */
const told = <Row extends { message: string | null; stack: string | null }>({ message, stack }: Row) => ({
  message: message === null ? null : maskKeys(message),
  stack: stack === null ? null : maskKeys(stack),
});

const BLAMES: Record<Blame | "none", readonly [mark: string, tag: string]> = {
  new: ["failed", "new"],
  main: ["failed", "known"],
  still: ["failed", "known"],
  flaky: ["flaky", "flaky"],
  incident: ["failed", "incident"],
  quarantined: ["skipped", "quarantined"],
  none: ["failed", "failed"],
};

/** Causes on a page, those with everything that they say, and tests that are listed for one. */
const CAUSES = 40;
const WHOLE = 12;
const TESTS = 20;

function causeItem({ failed, failures }: CauseFailures, index: number): Html {
  const [first] = failures;
  const said = told(first);
  const title = firstPlainLine(said.message) || firstPlainLine(said.stack) || shownCaseTitle(first);
  const [shape, word] = BLAMES[first.blame ?? "none"];
  const isOne = failed === 1;
  const more = failed - failures.length;
  return (
    <details class="failure" id={`c${index}`} open={index === 0}>
      <summary>
        <span>
          <Mark status={shape} word={false} />
        </span>{" "}
        <span class="long">
          {title}
          <span class="small soft">
            {isOne ? <Breakable text={shownCaseTitle(first)} /> : counted(failed, "test")} ·{" "}
            <Breakable text={first.taskSlug} />
          </span>
        </span>{" "}
        <span class="wide" />
        <span>
          <Tag kind={shape === "skipped" ? "" : shape}>{word}</Tag>
        </span>
      </summary>
      <div class="evidence">
        <Evidence said={said} measure={index < WHOLE ? FULL : BRIEF} title={title} />
        <div>
          <h3>{isOne ? "Test" : counted(failed, "test")}</h3>
          <ul class="reasons small">
            {failures.map((failure) => (
              <li class="long">
                <Breakable text={[failure.taskSlug, shownCaseTitle(failure)].join(" › ")} />
                {failure.file === null ? null : (
                  <>
                    {" "}
                    <code class="soft">
                      <Breakable text={failure.file} />
                      {failure.line === null ? null : `:${failure.line}`}
                    </code>
                  </>
                )}
              </li>
            ))}
            {more > 0 ? <li class="soft">and {toCount(more)} more</li> : null}
          </ul>
        </div>
      </div>
    </details>
  );
}

const ORDER = ["timed_out", "incomplete", "failed", "running", "queued", "cancelled", "passed"];
const TASKS = 100;

function taskTable(tasks: readonly TaskRow[]): Html | null {
  if (tasks.length === 0) return null;
  const worstFirst = tasks.toSorted((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || b.failed - a.failed);
  const more = tasks.length - TASKS;
  return (
    <>
      <h2>
        Tasks{" "}
        <small>
          {counted(tasks.length, "task")}
          {more > 0 ? `, the first ${TASKS}` : null}
        </small>
      </h2>
      <div class="card">
        <table>
          <caption class="visually-hidden">Tasks, the worst first</caption>
          <thead>
            <tr>
              <th scope="col">
                <span class="visually-hidden">Status</span>
              </th>
              <th scope="col">Task</th>
              <th scope="col" class="number">
                Passed
              </th>
              <th scope="col" class="number">
                Failed
              </th>
              <th scope="col" class="number wide">
                Skipped
              </th>
              <th scope="col" class="number">
                Duration
              </th>
            </tr>
          </thead>
          <tbody>
            {worstFirst.slice(0, TASKS).map(({ slug, status, passed, failed, skipped, durationMs }) => (
              <tr>
                <td class="mark-cell">
                  <Mark status={status} />
                </td>
                <td class="long">
                  <Breakable text={slug} />
                  {["passed", "failed"].includes(status) ? null : (
                    <>
                      {" "}
                      <Tag kind={status === "running" ? "running" : "failed"}>{wordOf(status)}</Tag>
                    </>
                  )}
                </td>
                <td class="number">{toCount(passed)}</td>
                <td class={`number${failed > 0 ? " failed" : ""}`}>{toCount(failed)}</td>
                <td class="number soft wide">{toCount(skipped)}</td>
                <td class="number">{durationMs > 0 ? toDuration(durationMs) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** What came of it, without what runners and pipelines have said: that names them. */
const publicOutcomeOf = (build: ExecutionSummary): string =>
  executionOutcome({
    ...build,
    redTasks: build.redTasks.map((task) => ({
      ...task,
      reason: null,
      flaws: task.flaws && { ...task.flaws, says: null },
    })),
  });

const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function countsOf({ passed, failed, skipped, flaky, durationMs }: ExecutionSummary): string | null {
  const parts = [
    `${toCount(passed)} passed`,
    failed > 0 && `${toCount(failed)} failed`,
    skipped > 0 && `${toCount(skipped)} skipped`,
    flaky > 0 && `${toCount(flaky)} flaky`,
  ].filter(Boolean);
  return passed + failed + skipped === 0
    ? null
    : `${parts.join(", ")}${durationMs > 0 ? ` in ${toDuration(durationMs)}` : ""}`;
}

const sharedQuery = v.strictObject({ cursor: causeCursor });

type Showing = Pick<Database, "begin"> & { sql: Sql; path: Path; now: Date; cursor: string | undefined };

async function sharedExecution({ projectId, projectName, executionId }: SharedPlace, showing: Showing): Promise<View> {
  const { sql, path, now, cursor } = showing;
  const query = { limit: CAUSES, members: TESTS, total: CAUSES * TESTS, after: readCauseCursor(cursor) };
  const [build, execution, page] = await Promise.all([
    selectBuild(sql, projectId, executionId!),
    selectExecution(sql, projectId, executionId!),
    readCauses(sql, projectId, executionId!, query),
  ]);
  if (!build || !execution) return refuseAbsent();
  const title = upper(publicOutcomeOf(build));
  const body = (
    <>
      <h1>
        <Mark status={build.status} word={false} /> {title}
      </h1>
      {executionMeta(projectName, build, execution, now)} {failureList(page, build)}{" "}
      <Pager path={path} query={{ cursor }} cursor={writeCauseCursor(page.last)} /> {taskTable(execution.tasks)}
    </>
  );
  return { title: `${title} · ${projectName}`, body, isShared: true };
}

function executionMeta(projectName: string, build: ExecutionSummary, { pullRequest }: ExecutionRow, now: Date): Html {
  const at = build.completedAt ?? build.startedAt ?? build.createdAt;
  return (
    <div class="meta">
      <span>
        <b>{projectName}</b> {executionName(build)}
      </span>{" "}
      {build.branch === null ? null : <code>{build.branch}</code>}
      {build.commit === null ? null : <Commit hash={build.commit} />}{" "}
      {pullRequest === null ? null : <span>pull request {pullRequest}</span>}{" "}
      {countsOf(build) === null ? null : <span>{countsOf(build)}</span>}{" "}
      <span>
        {hasEnded(build.status as ExecutionRow["status"]) ? "ended" : "began"} <Ago at={at} now={now} />
      </span>
    </div>
  );
}

function failureList({ causes, totals }: CausePage, { failed }: ExecutionSummary): Piece {
  if (causes.length === 0) return null;
  const all = Object.values(totals).reduce((sum, number) => sum + number, 0);
  const part = all > causes.length ? `${toCount(causes.length)} of ` : "";
  return (
    <>
      <h2>
        Failures by cause{" "}
        <small>
          {part}
          {counted(all, "cause")}, {counted(failed, "failure")}
        </small>
      </h2>
      <div class="card">{causes.map(causeItem)}</div>
    </>
  );
}

const NEWEST = 20;

async function sharedProject(
  { projectId, projectName, defaultBranch }: SharedPlace,
  { sql, begin, now }: Showing,
): Promise<View> {
  const branch = await selectBranch(sql, projectId, defaultBranch, defaultBranch);
  const [state, last, days, builds] = await Promise.all([
    selectBranchState(sql, projectId, branch),
    selectLastBuild(sql, projectId, branch),
    getBranchDays(sql, begin, projectId, branch, { now, count: TREND_DAYS }),
    selectSummaries(sql, projectId, NEWEST),
  ]);
  const headline = branchHeadline(branch, state, now);
  const body = (
    <>
      <h1>
        <Mark status={headline.status} word={false} /> {headline.text}
      </h1>
      <div class="meta">
        <span>
          <b>{projectName}</b>
        </span>
        {last ? (
          <span>
            {executionName(last)} {last.commit === null ? null : <Commit hash={last.commit} />} {publicOutcomeOf(last)}
            {last.durationMs > 0 ? ` in ${toDuration(last.durationMs)}` : null}
          </span>
        ) : null}
      </div>
      {days.length === 0 ? null : (
        <>
          <h2>How it has been going</h2>
          {trendCharts(defaultBranch, days, now)}
        </>
      )}{" "}
      {builds.length === 0 ? null : (
        <>
          <h2>Newest executions</h2>
          <div class="card scroll">
            <table>
              <caption class="visually-hidden">The newest executions</caption>
              <thead class="visually-hidden">
                <tr>
                  <th scope="col">Status</th>
                  <th scope="col">Execution</th>
                  <th scope="col">Outcome</th>
                  <th scope="col">Duration</th>
                  <th scope="col">When</th>
                </tr>
              </thead>
              <tbody>
                {builds.slice(0, NEWEST).map((build) => (
                  <tr>
                    <td class="mark-cell">
                      <Mark status={build.status} />
                    </td>
                    <td>
                      <b>{executionName(build)}</b>{" "}
                      {build.branch === null ? null : (
                        <code>
                          <Breakable text={build.branch} />
                        </code>
                      )}
                    </td>
                    <td>{publicOutcomeOf(build)}</td>
                    <td class="number wide">{build.durationMs > 0 ? toDuration(build.durationMs) : "–"}</td>
                    <td class="number soft">
                      <Ago at={build.completedAt ?? build.createdAt} now={now} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </>
  );
  return { title: `${headline.text} · ${projectName}`, body, isShared: true };
}

// ── Badges

const UNKNOWN: Badge = { label: "tests", message: "unknown", tone: "none", title: "Tests: unknown" };

async function readBadge(
  sql: Sql,
  { projectId, defaultBranch, branch, shows }: Omit<SharedPlace, "kind">,
): Promise<Badge> {
  const of = branch ?? defaultBranch;
  const { state, tasks } = await selectBranchState(
    sql,
    projectId,
    await selectBranch(sql, projectId, of, defaultBranch),
  );
  const label = shows === "status" ? of : branch === null ? "tests" : `tests on ${branch}`;
  if (state === null) return { label, message: "no results", tone: "none", title: `${of}: no results yet` };
  const sumOf = (name: "passed" | "failed") => tasks.reduce((sum, task) => sum + task[name], 0);
  const [passed, failed] = [sumOf("passed"), sumOf("failed")];
  const tests = failed > 0 ? `${toCount(failed)} failed, ${toCount(passed)} passed` : `${toCount(passed)} passed`;
  const isGood = state === "passed";
  // A red badge that says "54 passed" would not say why it is red.
  const saysTests = shows === "tests" && (isGood ? passed + failed > 0 : failed > 0);
  const message = saysTests ? tests : wordOf(state);
  return { label, message, tone: isGood ? "good" : "bad", title: `${of}: ${wordOf(state)}, ${tests}` };
}

const BADGE_HEADERS = {
  "Cache-Control": "max-age=60",
  "Content-Security-Policy": "default-src 'none'",
  "Cross-Origin-Resource-Policy": "cross-origin",
};

function badgeReply(request: Request, status: number, badge: Badge): Reply {
  const text = drawBadge(badge);
  const etag = `W/"${Bun.SHA256.hash(text, "hex").slice(0, 20)}"`;
  const known = (request.headers.get("if-none-match") ?? "").split(",").map((one) => one.trim());
  const headers = { ...BADGE_HEADERS, ETag: etag };
  if (status === 200 && known.includes(etag)) return new Reply(304, null, null, headers);
  return new Reply(status, text, "image/svg+xml", headers);
}

export const shares: Page[] = [
  page(
    "/projects/:projectId/shares",
    { access: "viewer", query: v.strictObject({ cursor: v.optional(uuid) }) },
    async (context) => {
      const { sql, csrf, role, project, now, query } = context;
      const body = (
        <>
          <h1>Sharing</h1>
          <div class="meta">
            <span>What is open to people who do not sign in. An execution is shared from its own page.</span>
          </div>
          {await shareSection({ sql, csrf, role, project, now }, query.cursor)}
        </>
      );
      return { title: "Sharing", body, section: "settings" };
    },
  ),

  form("/projects/:projectId/executions/:executionId/share", { access: "member" }, async (context) => {
    const { begin, visitor, project, params, publicUrl } = context;
    const what = { kind: "execution", executionId: params.executionId } as const;
    const { share, token } = await createShare({ begin }, visitor, project, what);
    const name = shareName(project.id, share, project.defaultBranch);
    const back = (
      <a class="button main" href={executionPath(project.id, params.executionId)}>
        Back to the execution
      </a>
    );
    return madeLink(project.id, name, `${publicUrl}/shared/${token}`, SEES_EXECUTION, back);
  }),

  form("/projects/:projectId/shares", { access: "member" }, async ({ begin, visitor, project, publicUrl }) => {
    const { share, token } = await createShare({ begin }, visitor, project, { kind: "project" });
    const name = shareName(project.id, share, project.defaultBranch);
    const back = (
      <a class="button main" href={`/projects/${project.id}`}>
        Back to the project
      </a>
    );
    return madeLink(project.id, name, `${publicUrl}/shared/${token}`, SEES_PROJECT, back);
  }),

  form("/projects/:projectId/badges", { access: "member", fields: newBadge }, async (context) => {
    const { begin, fast, visitor, project, publicUrl, fields } = context;
    const { shows, branch = null } = fields;
    const { share, token } = await createShare({ begin }, visitor, project, { kind: "badge", shows, branch });
    const { id: projectId, name: projectName, defaultBranch } = project;
    const badge = await readBadge(fast, { projectId, projectName, defaultBranch, executionId: null, branch, shows });
    const alt = `${shows === "tests" ? "Tests" : "Status"} on ${branch ?? defaultBranch}`;
    const what = shareName(projectId, share, defaultBranch);
    return madeBadge({ projectId, publicUrl }, { what, alt, badge, token });
  }),

  form(
    "/projects/:projectId/shares/:shareId/revoke",
    { access: "member" },
    async ({ begin, visitor, project, params }) => {
      await revokeShare({ begin }, visitor, project, params.shareId);
      return new SeeOther(`/projects/${project.id}/shares`);
    },
  ),

  page("/shared/:token", { access: "public", query: sharedQuery }, async (context) => {
    const { sql, begin, fast, params, query, path, now } = context;
    const place = (await findShared({ fast }, params.token, ["execution", "project"])) ?? refuseAbsent();
    const showing = { sql, begin, path, now, cursor: query.cursor };
    return await (place.kind === "project" ? sharedProject : sharedExecution)(place, showing);
  }),

  page("/badge/:token", { access: "public" }, async ({ fast, params, request }) => {
    const match = /^(.+)\.svg$/.exec(params.token);
    const place = match ? await findShared({ fast }, match[1]!, ["badge"]) : undefined;
    return badgeReply(request, place ? 200 : 404, place ? await readBadge(fast, place) : UNKNOWN);
  }),
];
