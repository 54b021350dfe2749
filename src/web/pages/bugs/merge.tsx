/** Merging a bug into another one. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { mergeBugs } from "../../../operations/bugs/bug_reports.ts";
import { mayBeEmpty, text, uuid } from "../../../schema/fields.ts";
import { type BugState, selectBugByNumber, selectBugReports } from "../../../store/bug_reports.ts";
import { counted } from "../../../wording/numbers.ts";
import { Empty, MarkCell, CardTable } from "../../components/list.tsx";
import { FilterText } from "../../components/filters.tsx";
import { ActionForm, Hidden } from "../../components/form.tsx";
import { type View, page, type ProjectContext } from "../../site/page.ts";
import { bugPath } from "../../site/paths.ts";
import { STILL_OPEN, find, onePath, toNumber } from "./shared.tsx";
import { action } from "../../site/action.ts";

const MAX_CHOICES = 10;

const mergeQuery = v.strictObject({ q: mayBeEmpty(text(200)) });

type Context = ProjectContext & { params: { bugId: string }; query: v.InferOutput<typeof mergeQuery> };

type Choice = Pick<BugState, "id" | "number" | "title" | "status">;

/** Returns the bug and those that it can be merged into: open ones, or those with a number or a text in the title. */
async function loadMerge({ sql, project: { id: projectId }, params, query: { q } }: Context) {
  const bug = await find(sql, projectId, params.bugId);
  const number = q === undefined ? undefined : toNumber(q);
  const [numbered, titled] = await Promise.all([
    number === undefined ? undefined : selectBugByNumber(sql, projectId, number),
    selectBugReports(sql, projectId, {
      limit: MAX_CHOICES,
      conditions:
        q === undefined
          ? [{ field: "status", is: STILL_OPEN }]
          : number === undefined
            ? [{ field: "text", is: q }]
            : [],
      sort: "newest",
    }),
  ]);
  const found: Choice[] =
    number === undefined ? titled.slice(0, MAX_CHOICES) : numbered && numbered.mergedInto === null ? [numbered] : [];
  return { bug, choices: found.filter(({ id }) => id !== bug.id) };
}

type MergeData = Awaited<ReturnType<typeof loadMerge>>;

type ChoicesProperties = { projectId: string; action: Path; csrf: string; choices: readonly Choice[] };

const Choices = ({ projectId, action, csrf, choices }: ChoicesProperties): Html => (
  <CardTable caption="Bugs to merge into">
    {choices.map((other) => (
      <tr>
        <MarkCell status={other.status} />
        <td class="long">
          <a href={bugPath(projectId, other.id)}>
            <b>Bug {other.number}</b> {other.title}
          </a>
        </td>
        <td class="number">
          <ActionForm
            action={action}
            csrf={csrf}
            label={`Merge into bug ${other.number}`}
            kind="danger"
            fields={<Hidden name="into" value={other.id} />}
          />
        </td>
      </tr>
    ))}
  </CardTable>
);

function mergeView({ project, query: { q }, csrf }: Context, { bug, choices }: MergeData): View {
  const path: Path = bugPath(project.id, bug.id);
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
      {choices.length === 0 ? (
        <Empty>{q === undefined ? "There are no other open bugs." : "No bugs match."}</Empty>
      ) : (
        <Choices projectId={project.id} action={`${path}/merge`} csrf={csrf} choices={choices} />
      )}
      <p class="after">
        <a class="button" href={path}>
          Cancel
        </a>
      </p>
    </>
  );
  return { title: `Merge bug ${bug.number}`, body, section: "bugs" };
}

export const mergePage = page(`${onePath}/merge`, { access: "member", query: mergeQuery }, async (context) =>
  mergeView(context, await loadMerge(context)),
);

export const mergeForm = action(
  `${onePath}/merge`,
  { access: "member", fields: v.strictObject({ into: uuid }) },
  {
    act: (sql, { project, params, fields }) => mergeBugs(sql, project.id, params.bugId, fields.into),
    record: ({ from, into }, { project }) => ({
      action: "bug.merged",
      subject: `Bug ${from.number}`,
      details: { projectId: project.id, bugReportId: from.id, into: into.id },
    }),
    done: ({ project, fields }) => bugPath(project.id, fields.into),
  },
);
