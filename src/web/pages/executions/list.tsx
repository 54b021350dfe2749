/** The list of executions of a project, with its filters. */

import * as v from "valibot";
import { firstIdAt } from "../../../database/time_bounds.ts";
import { executionStatus } from "../../../schema/executions.ts";
import { branchName, text, uuid } from "../../../schema/fields.ts";
import { selectSummaries } from "../../../store/execution_list.ts";
import { selectBuildOrigins } from "../../../store/overview.ts";
import { ExecutionTable } from "../../components/execution_table.tsx";
import { Pager } from "../../components/pager.tsx";
import { wordOf } from "../../components/status.tsx";
import { page } from "../../site/page.ts";
import { toDay } from "../../../wording/numbers.ts";

const PAGE_SIZE = 30;

const DAY_MS = 86_400_000;

/** Browsers send empty filters too. */
export const maybe = <const Schema extends v.GenericSchema<string, string>>(schema: Schema) =>
  v.optional(
    v.union([
      v.pipe(
        v.literal(""),
        v.transform(() => undefined),
      ),
      schema,
    ]),
  );

const day = v.pipe(
  v.string(),
  v.check(
    (text) => /^\d{4}-\d\d-\d\d$/.test(text) && Number.isFinite(Date.parse(text)),
    "expected a day as 2026-01-31",
  ),
);

const listQuery = v.strictObject({
  q: maybe(text(200)),
  branch: maybe(branchName),
  status: maybe(executionStatus),
  environment: maybe(text(200)),
  day: maybe(day),
  cursor: v.optional(uuid),
});

const STATUSES = ["running", "queued", "failed", "passed", "timed_out", "cancelled"];

export const listPage = page(
  "/projects/:projectId/executions",
  { access: "viewer", query: listQuery },
  async ({ sql, project, query, path, now }) => {
    const { q, branch, status, environment, day, cursor } = query;
    // Days are in UTC. Ids begin with their time.
    const start = day === undefined ? undefined : Date.parse(day);
    const end = start === undefined ? undefined : firstIdAt(start + DAY_MS);
    const before = [cursor, end].filter((id) => id !== undefined).toSorted()[0];
    const from = start === undefined ? undefined : firstIdAt(start);
    const [rows, origins] = await Promise.all([
      selectSummaries(sql, project.id, PAGE_SIZE, { q, branch, status, environment, before, from }),
      selectBuildOrigins(sql, project.id),
    ]);
    const builds = rows.slice(0, PAGE_SIZE);
    const isFiltered = [q, branch, status, environment, day].some((value) => value !== undefined);
    const subject = status ? `${wordOf(status)} executions` : "executions";
    const conditions = [
      branch ? `of ${branch}` : null,
      environment ? `on ${environment}` : null,
      day ? `on ${toDay(day)}` : null,
    ].filter(Boolean);
    const title = [`${subject[0]!.toUpperCase()}${subject.slice(1)}`, ...conditions].join(" ");
    const body = (
      <>
        <h1>{title}</h1>
        <form class="filters" method="get" action={path}>
          <label>
            Key or commit
            <input type="search" name="q" value={q} maxlength={200} />
          </label>

          <label>
            Branch
            <input name="branch" value={branch} list="branches" maxlength={500} />
          </label>

          <label>
            Status
            <select name="status">
              <option value="">any</option>
              {STATUSES.map((value) => (
                <option value={value} selected={value === status}>
                  {wordOf(value)}
                </option>
              ))}
            </select>
          </label>

          <label>
            Environment
            <input name="environment" value={environment} list="environments" maxlength={200} />
          </label>

          <label>
            Day
            <input type="date" name="day" value={day} />
          </label>

          <button>Filter</button>
          {isFiltered ? (
            <a class="button" href={path}>
              Clear
            </a>
          ) : null}

          <datalist id="branches">
            {origins.branches.map((name) => (
              <option value={name} />
            ))}
          </datalist>

          <datalist id="environments">
            {origins.environments.map((name) => (
              <option value={name} />
            ))}
          </datalist>
        </form>
        {builds.length > 0 ? (
          <ExecutionTable projectId={project.id} executions={builds} now={now} caption={title} />
        ) : (
          <div class="card empty">
            {isFiltered ? (
              <>
                <p>No executions match the filters.</p>
                <p>
                  <a class="button" href={path}>
                    Show all
                  </a>
                </p>
              </>
            ) : (
              <>
                <p>No reports yet.</p>
                <p>
                  <a class="button main" href={`/projects/${project.id}/onboarding`}>
                    Send the first report
                  </a>
                </p>
              </>
            )}
          </div>
        )}

        <Pager
          path={path}
          query={{ q, branch, status, environment, day, cursor }}
          cursor={rows.length > PAGE_SIZE ? builds.at(-1)!.id : undefined}
        />
      </>
    );
    return { title, body, section: "executions" };
  },
);
