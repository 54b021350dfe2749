/** The search for the commit that broke the test of a bug: its result, its suspects and its probes, and its forms. */

import * as v from "valibot";
import type { RangeCommit } from "../../../rules/culprit_range.ts";
import { cancelSearch, startSearch } from "../../../operations/bugs/culprit_searches.ts";
import { readSearchProbes } from "../../../operations/bugs/culprit_evidence.ts";
import type { Sql } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import { isSameCommit } from "../../../rules/commit.ts";
import type { BugReportDetail } from "../../../schema/bug_reports.ts";
import { type SearchProbe, searchLimits } from "../../../schema/culprit_searches.ts";
import { type NewestSearchRow, selectNewestSearch } from "../../../store/culprit_searches.ts";
import { PROBE_WORDS, waitingWords } from "../../../wording/culprit.ts";
import { counted } from "../../../wording/numbers.ts";
import { TableHead } from "../../components/list.tsx";
import { ActionForm } from "../../components/form.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago, Breakable, Commit } from "../../components/text.tsx";
import { bugPath, taskPath } from "../../site/paths.ts";
import { onePath, STILL_OPEN } from "./shared.tsx";
import { action } from "../../site/action.ts";

type BugSearch = { search: NewestSearchRow; probes: SearchProbe[] };

export async function loadBugSearch(sql: Sql, projectId: string, bugId: string): Promise<BugSearch | undefined> {
  const search = await selectNewestSearch(sql, projectId, bugId);
  return search && { search, probes: await readSearchProbes(sql, projectId, search) };
}

/** The marks of results that have a status of their own on other pages. */
const MARK_OF: Record<NonNullable<SearchProbe["result"]>, string> = {
  ...{ passed: "passed", failed: "failed", other_failure: "incomplete", no_build: "skipped", no_result: "cancelled" },
};

const MAX_FILES = 20;

type SectionProperties = {
  projectId: string;
  bug: BugReportDetail;
  found: BugSearch | undefined;
  /** Undefined: the visitor may not start or cancel a search. */
  csrf: string | undefined;
  now: Date;
};

/** Shows nothing for a bug that was never searched for and cannot be. */
export function CulpritSection({ projectId, bug, found, csrf, now }: SectionProperties): Html | null {
  const path: Path = `${bugPath(projectId, bug.id)}/culprit`;
  const isRunning = found?.search.status === "running";
  const mayStart = csrf !== undefined && !isRunning && isSearchable(bug);
  if (!found && !mayStart) return null;
  return (
    <section data-region="culprit" class="culprit">
      <h2 id="culprit">Which commit broke it {found ? <small>{headlineOf(found, now)}</small> : null}</h2>
      {found ? (
        <Found projectId={projectId} {...found} />
      ) : (
        <p class="hint">
          Runners run the test on commits between the last good and the first bad build of the default branch, until one
          commit is proven.
        </p>
      )}
      <div class="actions">
        {mayStart ? <ActionForm action={path} csrf={csrf} label={found ? "Search again" : "Find the commit"} /> : null}
        {isRunning && csrf !== undefined ? (
          <ActionForm action={`${path}/cancel`} csrf={csrf} label="Cancel the search" />
        ) : null}
      </div>
    </section>
  );
}

/** A bug that is open and about the code, so far as its fingerprints say. */
const isSearchable = ({ status, grouping, mergedInto, testCaseIds, sample }: BugReportDetail): boolean =>
  STILL_OPEN.includes(status as never) &&
  mergedInto === null &&
  !sample &&
  testCaseIds.length > 0 &&
  !grouping.some(({ kind }) => kind === "flaky" || kind === "outage");

function headlineOf({ search, probes }: BugSearch, now: Date): Html {
  const { status, commits, maxProbes, createdAt, endedAt } = search;
  const range = commits === null ? [] : [counted(commits.length - 1, "commit")];
  const limit = status === "running" ? [`at most ${maxProbes} of its own`] : [];
  return (
    <>
      {[status === "running" ? "searching" : status, ...range, counted(probes.length, "probe"), ...limit].join(", ")},{" "}
      <Ago at={endedAt ?? createdAt} now={now} />
    </>
  );
}

function Found({ projectId, search, probes }: BugSearch & { projectId: string }): Html {
  const { summary, culprit, commits, status } = search;
  const named = culprit === null ? undefined : commits?.[culprit];
  return (
    <div class="card padded">
      <p>
        {status === "running" ? <Mark status="running" /> : null} {named ? <b>{summary}</b> : summary}
      </p>
      {search.open === null ? null : <p class="hint">{waitingWords(search.open)}</p>}
      {named ? <Culprit commit={named} /> : null}
      <CommitTable projectId={projectId} search={search} probes={probes} />
    </div>
  );
}

const Culprit = ({ commit: { hash, subject, author, date, files } }: { commit: RangeCommit }): Html => (
  <div class="culprit-commit">
    <p>
      <Commit hash={hash} /> {subject}{" "}
      <span class="soft">
        {author}, <time datetime={date}>{date.slice(0, 10)}</time>
      </span>
    </p>
    <ul class="files">
      {files.slice(0, MAX_FILES).map((file) => (
        <li>
          <code>
            <Breakable text={file} />
          </code>
        </li>
      ))}
      {files.length > MAX_FILES ? <li class="soft">and {counted(files.length - MAX_FILES, "more file")}</li> : null}
    </ul>
  </div>
);

/** The commits that were probed or are suspected, in the order of the range. */
function CommitTable({ projectId, search, probes }: BugSearch & { projectId: string }): Html | null {
  const { commits, suspects, taskSlug, culprit } = search;
  if (commits === null) return null;
  const rows = commits.flatMap((commit, index) => {
    const own = probes.filter((probe) => isSameCommit(probe.commit, commit.hash));
    const chance = suspects.find((suspect) => suspect.index === index)?.chance;
    return own.length === 0 && chance === undefined ? [] : [{ commit, index, own, chance }];
  });
  if (rows.length === 0) return null;
  return (
    <table>
      <TableHead
        caption="Probed and suspected commits, oldest first"
        columns={["Commit", "Probes", ["Probability", "number"]]}
      />
      <tbody>
        {rows.map(({ commit, index, own, chance }) => (
          <tr class={index === culprit ? "named" : undefined}>
            <td class="long">
              <Commit hash={commit.hash} /> {commit.subject}
              <span class="small soft">
                {[commit.author, index === 0 && "last good build", index === commits.length - 1 && "first bad build"]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
            </td>
            <td>
              {own.map((probe) => (
                <ProbeLink probe={probe} path={taskPath(projectId, probe.executionId, taskSlug)} />
              ))}
            </td>
            <td class="number">{chance === undefined ? "–" : `${Math.floor(100 * chance)} %`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const ProbeLink = ({ probe: { result }, path }: { probe: SearchProbe; path: Path }): Html => (
  <a class="probe" href={path} title={PROBE_WORDS[result ?? "running"]} aria-label={PROBE_WORDS[result ?? "running"]}>
    <Mark status={result === null ? "running" : MARK_OF[result]} word={false} />{" "}
    <span class="wide">{PROBE_WORDS[result ?? "running"]}</span>
  </a>
);

type Searched = { project: { id: string }; params: { bugId: string } };

const subjectOf = (number: number, { project, params }: Searched) => ({
  subject: `Bug ${number}`,
  details: { projectId: project.id, bugReportId: params.bugId },
});

const toSearch = ({ project, params }: Searched): Path => `${bugPath(project.id, params.bugId)}#culprit`;

export const searchForm = action(
  `${onePath}/culprit`,
  { access: "member" },
  {
    act: (sql, { project, params, now }) =>
      startSearch(sql, project.id, params.bugId, { ...v.parse(searchLimits, {}), now }),
    record: ({ number }, context) => ({ action: "culprit_search.started", ...subjectOf(number, context) }),
    done: toSearch,
  },
);

export const cancelSearchForm = action(
  `${onePath}/culprit/cancel`,
  { access: "member" },
  {
    act: (sql, { project, params, now }) => cancelSearch(sql, project.id, params.bugId, now),
    record: ({ number }, context) => ({ action: "culprit_search.cancelled", ...subjectOf(number, context) }),
    done: toSearch,
  },
);
