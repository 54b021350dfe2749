/** Searches tests, bugs and executions with one field. An exact match redirects to its page. */

import * as v from "valibot";
import type { Html, Path } from "../../http/html.ts";
import { mayBeEmpty, text } from "../../schema/fields.ts";
import { selectBugByNumber, selectBugReports } from "../../store/bug_reports.ts";
import { searchBuilds, selectExactBuild } from "../../store/search.ts";
import { selectTestCases } from "../../store/test_cases.ts";
import { shownCaseTitle } from "../../wording/case_title.ts";
import { bugPath, executionPath, testPath, toAddress } from "../site/paths.ts";
import { ExecutionTable } from "../components/execution_table.tsx";
import { FilterText } from "../components/filters.tsx";
import { type Page, SeeOther, page } from "../site/page.ts";
import { Breakable } from "../components/text.tsx";
import { Mark, Tag, testStatusOf } from "../components/status.tsx";

const MAX_RESULTS_PER_KIND = 8;

const heading = (title: string, all: Path, hasMore: boolean): Html => (
  <h2>
    {title}{" "}
    <small>
      {hasMore ? (
        <>
          the first {MAX_RESULTS_PER_KIND}: <a href={all}>view all</a>
        </>
      ) : (
        <a href={all}>view in the list</a>
      )}
    </small>
  </h2>
);

export const search: Page[] = [
  page(
    "/projects/:projectId/search",
    { access: "viewer", query: v.strictObject({ q: mayBeEmpty(text(200)) }) },
    async ({ sql, project, query, now, path }) => {
      const { id } = project;
      const q = query.q?.trim();
      const field = (
        <form class="filters" action={path} role="search">
          <FilterText label="Tests, files, bugs, commits, branches, #numbers" name="q" value={q} type="search" />
          <button>Search</button>
        </form>
      );
      if (!q)
        return {
          title: "Search",
          body: (
            <>
              <h1>Search</h1>
              {field}
            </>
          ),
        };
      const exact = await selectExactBuild(sql, id, q);
      if (exact !== undefined) return new SeeOther(executionPath(id, exact));
      const [, sign, digits] = /^(bug\s*#?|#)?(\d{1,9})$/i.exec(q) ?? [];
      const numbered = digits === undefined ? undefined : await selectBugByNumber(sql, id, Number(digits));
      if (numbered && sign?.toLowerCase().startsWith("bug")) return new SeeOther(bugPath(id, numbered.id));
      const [tests, bugs, builds] = await Promise.all([
        selectTestCases(sql, id, { limit: MAX_RESULTS_PER_KIND, q }),
        selectBugReports(sql, id, { limit: MAX_RESULTS_PER_KIND, q }),
        searchBuilds(sql, id, q, MAX_RESULTS_PER_KIND),
      ]);
      // "#412" means an execution first, and a bug if no execution or pull request has the number.
      if (numbered && sign !== undefined && builds.length === 0) return new SeeOther(bugPath(id, numbered.id));
      const listed = [
        ...(numbered ? [numbered] : []),
        ...bugs.slice(0, MAX_RESULTS_PER_KIND).filter((bug) => bug.id !== numbered?.id),
      ];
      const nothing = tests.length + listed.length + builds.length === 0;
      const branches = new Set(builds.map(({ branch }) => branch));
      const [branch] = branches.size === 1 ? [...branches] : [];
      const body = (
        <>
          <h1>{nothing ? <>No results for “{q}”</> : <>Results for “{q}”</>}</h1>
          {field}
          {nothing ? (
            <p class="hint">
              Searches names, suites and files of tests; titles, descriptions and numbers of bugs; keys, commits,
              branches and pull requests of executions.
            </p>
          ) : null}
          {tests.length === 0 ? null : (
            <>
              {heading("Tests", toAddress(`/projects/${id}/tests`, { q }), tests.length > MAX_RESULTS_PER_KIND)}
              <div class="card">
                <table>
                  <caption class="visually-hidden">Tests</caption>
                  <tbody>
                    {tests.slice(0, MAX_RESULTS_PER_KIND).map((test) => (
                      <tr>
                        <td class="mark-cell">
                          <Mark status={testStatusOf(test)} />
                        </td>
                        <td class="long">
                          <a href={testPath(id, test.id)}>
                            <Breakable text={shownCaseTitle(test)} />
                          </a>
                          <span class="small soft">{[test.file, test.taskSlug].filter(Boolean).join(" · ")}</span>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </>
          )}
          {listed.length === 0 ? null : (
            <>
              {heading(
                "Bugs",
                toAddress(`/projects/${id}/bugs`, { q, status: "open,in_progress,resolved,ignored", sort: "newest" }),
                bugs.length > MAX_RESULTS_PER_KIND,
              )}
              <div class="card">
                <table>
                  <caption class="visually-hidden">Bugs</caption>
                  <tbody>
                    {listed.map((bug) => (
                      <tr>
                        <td class="mark-cell">
                          <Mark status={bug.status} />
                        </td>
                        <td class="long">
                          <a href={bugPath(id, bug.id)}>
                            <b>Bug {bug.number}</b> {bug.title}
                          </a>
                          {"mergedInto" in bug && bug.mergedInto !== null ? (
                            <>
                              {" "}
                              <Tag>merged</Tag>
                            </>
                          ) : null}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </>
          )}
          {builds.length === 0 ? null : (
            <>
              {heading(
                "Executions",
                toAddress(`/projects/${id}/executions`, { branch: branch ?? undefined }),
                builds.length > MAX_RESULTS_PER_KIND && Boolean(branch),
              )}
              <ExecutionTable
                projectId={id}
                executions={builds.slice(0, MAX_RESULTS_PER_KIND)}
                now={now}
                caption="Executions"
              />
            </>
          )}
        </>
      );
      return { title: `Search: ${q}`, body };
    },
  ),
];
