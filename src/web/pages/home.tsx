/** My projects: which are green, and what needs me. */

import type { Html } from "../../http/html.ts";
import { firstIdAt } from "../../database/moment.ts";
import { selectLastBuild, selectNewFailures, selectTally } from "../../store/overview.ts";
import { selectTeamPlaces } from "../../store/projects.ts";
import { selectBranch, selectBranchState } from "../../store/state.ts";
import type { Sql } from "../../database/connect.ts";
import { selectSummaries } from "../../store/execution_list.ts";
import { executionOutcome } from "../../wording/execution.ts";
import { executionPath } from "../site/paths.ts";
import { executionName } from "../components/execution_table.tsx";
import { type Page, type ProjectPlace, page } from "../site/page.ts";
import { Ago } from "../components/text.tsx";
import { counted } from "../../wording/numbers.ts";
import { Mark } from "../components/status.tsx";
import { Strip } from "../components/strip.tsx";
import { branchHeadline, summaryOf } from "../components/project_state.tsx";

const STRIP = 30;
/** What is new is told of so many branches, and of no older executions. */
const NEWS = 3;
const NEWS_DAYS = 7;
/** More are listed by name alone. */
const MAX_CARDS = 24;

async function card(sql: Sql, project: ProjectPlace, now: Date): Promise<{ status: string; html: Html }> {
  const { id, name, defaultBranch } = project;
  const week = firstIdAt(now.getTime() - NEWS_DAYS * 86_400_000);
  const branch = await selectBranch(sql, id, defaultBranch, defaultBranch);
  const [state, last, tally, builds, news] = await Promise.all([
    selectBranchState(sql, id, branch),
    selectLastBuild(sql, id, branch),
    selectTally(sql, id),
    selectSummaries(sql, id, STRIP - 1, { buildsOnly: true }),
    selectNewFailures(sql, id, branch, week, NEWS),
  ]);
  const headline = branchHeadline(branch, state, now);
  const items = builds.toReversed().map((build) => ({
    status: build.repeatedStatus ?? build.status,
    href: executionPath(id, build.id),
    label: `${executionName(build)}: ${executionOutcome(build)}`,
  }));
  const card = (
    <section class="card padded" data-region={id}>
      <h2>
        <a href={`/projects/${id}`}>{name}</a>
      </h2>
      <p class="lead">
        <Mark status={headline.status} word={false} /> {headline.text}
      </p>
      <div class="meta quiet">
        {summaryOf(id, { state, last, tally }, now)}
        {builds.length === 0 ? <a href={`/projects/${id}/onboarding`}>Send the first report</a> : null}
      </div>
      {news.length === 0 ? null : (
        <div class="after">
          {news.map((row) => (
            <p class="small long">
              <a href={executionPath(id, row.executionId)}>{executionName(row)}</a> <code>{row.branch}</code>{" "}
              <span class="failed">{counted(row.failures, "new failure")}</span>,{" "}
              <span class="soft">
                <Ago at={row.createdAt} now={now} />
              </span>
            </p>
          ))}
        </div>
      )}{" "}
      <Strip items={items} label={`The last ${counted(items.length, "execution")} of ${name}, newest right`} />
    </section>
  );
  return { status: headline.status, html: card };
}

/** What is red stands first, and what says nothing yet last. */
const ORDER = ["failed", "passed", "queued"];

export const home: Page[] = [
  page("/", { access: "account" }, async ({ sql, visitor, now }) => {
    const teams = visitor.teams;
    const places = await selectTeamPlaces(
      sql,
      teams.map(({ teamId }) => teamId),
      200,
    );
    const cards = new Map<string, Awaited<ReturnType<typeof card>>>();
    for (const place of places.slice(0, MAX_CARDS)) cards.set(place.id, await card(sql, place, now));
    const sections = teams.map(({ teamId, teamName, role }) => {
      const rank = (place: ProjectPlace) => ORDER.indexOf(cards.get(place.id)?.status ?? "queued");
      const own = places.filter((place) => place.teamId === teamId).toSorted((a, b) => rank(a) - rank(b));
      return (
        <>
          <h2>
            {teamName}{" "}
            <small>
              you are {role === "owner" ? "an owner" : `a ${role}`} ·{" "}
              <a href={`/teams/${teamId}/settings`}>team settings</a>
            </small>
          </h2>
          {own.length === 0 ? (
            <div class="card empty">
              <p>No projects yet.</p>
              {role === "owner" ? (
                <p>
                  <a class="button main" href={`/teams/${teamId}/settings#projects`}>
                    Create one
                  </a>
                </p>
              ) : null}
            </div>
          ) : (
            <div class="columns cards">
              {own.map(
                (place) =>
                  cards.get(place.id)?.html ?? (
                    <section class="card padded">
                      <a href={`/projects/${place.id}`}>{place.name}</a>
                    </section>
                  ),
              )}
            </div>
          )}
        </>
      );
    });
    const body = (
      <>
        <h1>Projects</h1>
        {teams.length === 0 ? (
          <div class="card empty">
            <p>You are not a member of a team yet. Ask an owner for an invitation.</p>
          </div>
        ) : (
          sections
        )}
      </>
    );
    return { title: "Projects", body };
  }),
];
