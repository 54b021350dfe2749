/** The frame of every page: its head, the bar and the navigation. */

import { type Href, type Html, type Path, raw } from "../../http/html.ts";
import type { PlannedDeletionRow } from "../../rules/retention.ts";
import { MOST_BUGS } from "../../store/projects.ts";
import { toPlanText } from "../../wording/retention.ts";
import { Csrf } from "../components/form.tsx";
import { ICON, SCRIPT, STYLE } from "./assets.ts";
import type { PageContext, View } from "./page.ts";

type Framed = Pick<PageContext<unknown, unknown, unknown, unknown>, "csrf" | "project" | "team" | "role"> & {
  visitor: { name: string; isQuiet: boolean; plannedDeletions: readonly PlannedDeletionRow[] } | undefined;
};

const QuietNotice = (): Html => (
  <p class="message quiet" role="status">
    This server was restored from a backup and is quiet: notifications, schedules, automations, runners and retention
    are paused until its operator runs <code>assay admin resume</code>.
  </p>
);

const DeletionNotice = ({ plan }: { plan: PlannedDeletionRow }): Html => (
  <p class="message" role="status">
    {toPlanText(plan)}. The retention was changed, or the server was not running. The operator of the server can stop
    this with <code>assay admin planned-deletions --keep</code>.
  </p>
);

const OpenBugs = ({ number }: { number: number }): Html | null =>
  number === 0 ? null : (
    <span class="count">
      {number < MOST_BUGS ? number : `${MOST_BUGS - 1}+`}
      <span class="visually-hidden"> open</span>
    </span>
  );

const entry = (href: Href, text: string, isCurrent: boolean, more: Html | null = null): Html => (
  <a href={href} aria-current={isCurrent ? "page" : undefined}>
    {text}
    {more}
  </a>
);

function navigation({ project, team, role }: Framed, section: View["section"]): Html[] {
  if (project) {
    const base: Path = `/projects/${project.id}`;
    return [
      entry(base, "Overview", section === "overview"),
      entry(`${base}/executions`, "Executions", section === "executions"),
      entry(`${base}/tests`, "Tests", section === "tests"),
      entry(`${base}/bugs`, "Bugs", section === "bugs", <OpenBugs number={project.openBugs} />),
      entry(`${base}/uploads`, "Uploads", section === "uploads"),
      entry(`${base}/settings`, "Settings", section === "settings"),
    ];
  }
  if (!team) return [];
  const base: Path = `/teams/${team.id}`;
  return [
    entry(`${base}/settings`, "Team", section === "team"),
    entry(`${base}/members`, "Members", section === "members"),
    entry(`${base}/environments`, "Environments", section === "environments"),
    entry(`${base}/integrations`, "Integrations", section === "integrations"),
    entry(`${base}/automations`, "Automations", section === "automations"),
    entry(`${base}/runners`, "Runners", section === "runners"),
    role === "owner" ? entry(`${base}/audit`, "Audit log", section === "audit") : <></>,
  ];
}

/** The bar at the top. */
function bar(view: View, framed: Framed): Html {
  const { project, team, visitor, csrf } = framed;
  return (
    <header class="bar">
      <div class="crumbs">
        <a class="brand" href="/">
          {team?.name ?? "Assay"}
        </a>
        {project ? (
          <>
            <span class="soft" aria-hidden="true">
              /
            </span>
            <a class="brand" href={`/projects/${project.id}`}>
              {project.name}
            </a>
          </>
        ) : null}
      </div>
      <nav aria-label="Sections">{navigation(framed, view.section)}</nav>
      {project ? (
        <form action={`/projects/${project.id}/search`} role="search" aria-label="Search the project">
          <input
            type="search"
            name="q"
            aria-label="Search tests, bugs, commits"
            placeholder="Search tests, bugs, commits  /"
            data-key="/"
            maxlength={200}
          />
          <button class="visually-hidden">Search</button>
        </form>
      ) : null}
      <div class="who">
        <a href="/docs">API</a>
        {visitor ? (
          <>
            <a href="/account">{visitor.name}</a>
            <form method="post" action="/logout">
              <Csrf token={csrf} />
              <button>Sign out</button>
            </form>
          </>
        ) : (
          <a href="/login">Sign in</a>
        )}
      </div>
    </header>
  );
}

/** A whole page. The script only enhances the markup. */
export function layout(view: View, framed: Framed): Html {
  const { project } = framed;
  return (
    <>
      {raw("<!doctype html>")}
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <title>
            {view.title}
            {project ? ` · ${project.name}` : ""} · Assay
          </title>
          <link rel="stylesheet" href={STYLE} />
          <link rel="icon" href={ICON} type="image/svg+xml" />
          {view.isShared ? <meta name="robots" content="noindex" /> : null}
          <script type="module" src={SCRIPT} />
        </head>
        <body>
          <a class="skip-link" href="#main">
            Skip to the content
          </a>
          {view.isShared ? (
            <header class="bar">
              <span class="brand">Assay</span>
            </header>
          ) : (
            bar(view, framed)
          )}
          <main id="main" class={view.isNarrow ? "narrow" : undefined} data-live={view.live ? view.live : undefined}>
            {framed.visitor?.isQuiet && !view.isShared ? <QuietNotice /> : null}
            {view.isShared
              ? null
              : framed.visitor?.plannedDeletions
                  .filter(({ projectId }) => project === null || project.id === projectId)
                  .map((plan) => <DeletionNotice plan={plan} />)}
            {view.body}
          </main>
        </body>
      </html>
    </>
  );
}
