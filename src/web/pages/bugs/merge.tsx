/** Merging a bug into another one. */

import * as v from "valibot";
import type { Path } from "../../../http/html.ts";
import { mergeBugs } from "../../../operations/bugs/bug_reports.ts";
import { mayBeEmpty, text, uuid } from "../../../schema/fields.ts";
import { type BugState, selectBugByNumber, selectBugReports } from "../../../store/bug_reports.ts";
import { counted } from "../../../wording/numbers.ts";
import { FilterText } from "../../components/filters.tsx";
import { ActionForm } from "../../components/form.tsx";
import { Mark } from "../../components/status.tsx";
import { SeeOther, form, page } from "../../site/page.ts";
import { bugPath } from "../../site/paths.ts";
import { write } from "../../site/write.ts";
import { STILL_OPEN, find, onePath, toNumber } from "./shared.tsx";

export const mergePage = page(
  `${onePath}/merge`,
  { access: "member", query: v.strictObject({ q: mayBeEmpty(text(200)) }) },
  async ({ sql, project, params, query: { q }, csrf }) => {
    const { id: projectId } = project;
    const bug = await find(sql, projectId, params.bugId);
    const path: Path = bugPath(projectId, bug.id);
    const number = q === undefined ? undefined : toNumber(q);
    const [named, titled] = await Promise.all([
      number === undefined ? undefined : selectBugByNumber(sql, projectId, number),
      selectBugReports(sql, projectId, {
        limit: 10,
        q: number === undefined ? q : undefined,
        status: q === undefined ? STILL_OPEN : undefined,
        sort: "newest",
      }),
    ]);
    const found: Pick<BugState, "id" | "number" | "title" | "status">[] =
      number === undefined ? titled.slice(0, 10) : named && named.mergedInto === null ? [named] : [];
    const others = found.filter(({ id }) => id !== bug.id);
    const body = (
      <>
        <h1>Merge bug {bug.number} into another</h1>
        <p class="after">
          <b>{bug.title}</b>
        </p>
        <p>
          Its {counted(bug.occurrences, "failure")} and its fingerprints move to the other bug. This bug is resolved and
          links to the other one. This cannot be undone.
        </p>
        <form class="filters" action={`${path}/merge`}>
          <FilterText label="Number or title of the other bug" name="q" value={q} type="search" />
          <button>Search</button>
        </form>
        {others.length === 0 ? (
          <div class="card empty">
            <p>{q === undefined ? "There are no other open bugs." : "No bugs match."}</p>
          </div>
        ) : (
          <div class="card">
            <table>
              <caption class="visually-hidden">Bugs to merge into</caption>
              <tbody>
                {others.map((other) => (
                  <tr>
                    <td class="mark-cell">
                      <Mark status={other.status} />
                    </td>
                    <td class="long">
                      <a href={bugPath(projectId, other.id)}>
                        <b>Bug {other.number}</b> {other.title}
                      </a>
                    </td>
                    <td class="number">
                      <ActionForm
                        action={`${path}/merge`}
                        csrf={csrf}
                        label={`Merge into bug ${other.number}`}
                        kind="danger"
                        fields={<input type="hidden" name="into" value={other.id} />}
                      />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        <p class="after">
          <a class="button" href={path}>
            Cancel
          </a>
        </p>
      </>
    );
    return { title: `Merge bug ${bug.number}`, body, section: "bugs" };
  },
);

export const mergeForm = form(
  `${onePath}/merge`,
  { access: "member", fields: v.strictObject({ into: uuid }) },
  async (context) => {
    const { project, params, fields } = context;
    await write(
      context,
      "member",
      (sql) => mergeBugs(sql, project.id, params.bugId, fields.into),
      ({ from, into }) => ({
        action: "bug.merged",
        subject: `Bug ${from.number}`,
        details: { projectId: project.id, bugReportId: from.id, into: into.id },
      }),
    );
    return new SeeOther(bugPath(project.id, fields.into));
  },
);
