/** An execution compared with its baseline or another execution. */

import { FilterSelect } from "../../components/filters.tsx";
import { executionName, shortExecutionName } from "../../../wording/execution_name.ts";
import * as v from "valibot";
import type { Html } from "../../../http/html.ts";
import { absent, fail } from "../../../http/problem.ts";
import { mayBeEmpty, uuid } from "../../../schema/fields.ts";
import { type ComparedRow, selectComparison } from "../../../store/comparisons.ts";
import { selectSlowerTests } from "../../../store/slower.ts";
import { selectExecution, selectExecutionNames, selectSummaries } from "../../../store/execution_list.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { Empty, MarkCell, CardTable } from "../../components/list.tsx";
import { SlowerTests } from "../../components/slower_tests.tsx";
import { wordOf } from "../../components/status.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { type View, page, type ProjectContext } from "../../site/page.ts";
import { executionPath, testPath } from "../../site/paths.ts";

const COMPARED: Record<string, { title: string; hint: string; mark: string }> = {
  fixed: { title: "Fixed", hint: "passed, but failed in the other execution", mark: "passed" },
  new: { title: "New failures", hint: "failed, with no known explanation", mark: "failed" },
  unclear: { title: "Unclear", hint: "failed; a rerun tells", mark: "failed" },
  main: { title: "Also failing on the default branch", hint: "", mark: "failed" },
  still: { title: "Still failing", hint: "failed in both", mark: "failed" },
  flaky: { title: "Known flaky", hint: "failed, and explained by their history", mark: "flaky" },
  incident: {
    title: "Incident",
    hint: "failed together with many others because of a cause outside the code",
    mark: "failed",
  },
  quarantined: { title: "Quarantined", hint: "failed, not counted", mark: "skipped" },
  added: { title: "Added", hint: "only in this execution", mark: "new" },
  missing: { title: "Did not run", hint: "only in the other execution", mark: "skipped" },
  skipped: { title: "Newly skipped", hint: "not skipped in the other execution", mark: "skipped" },
};

/** Maximum number of rows of each kind. The API returns all of them. */
const MAX_ROWS_PER_KIND = 40;

function comparedTable(projectId: string, kind: string, rows: readonly ComparedRow[]): Html {
  const { title, hint, mark: shape } = COMPARED[kind]!;
  const total = rows[0]!.total;
  const shown = rows.slice(0, MAX_ROWS_PER_KIND);
  return (
    <>
      <h2 id={kind}>
        {title}{" "}
        <small>
          {counted(total, "test")}
          {hint ? `, ${hint}` : ""}
          {total > shown.length ? `; the first ${shown.length}` : ""}
        </small>
      </h2>
      <CardTable caption={title} columns={["Kind", "Test"]} hidesHead>
        {shown.map((row) => (
          <tr>
            <MarkCell status={shape} word={false} />
            <td class="long">
              <span class="soft">
                <Breakable text={row.taskSlug} /> ›{" "}
              </span>
              <a href={testPath(projectId, row.testCaseId)}>
                <Breakable text={shownCaseTitle(row)} />
              </a>
            </td>
          </tr>
        ))}
      </CardTable>
    </>
  );
}

const MAX_CHOICES = 20;

const comparisonQuery = v.strictObject({ baseline: mayBeEmpty(uuid) });

type Context = ProjectContext & { params: { executionId: string }; query: v.InferOutput<typeof comparisonQuery> };

async function loadComparison({ sql, project: { id: projectId, defaultBranch }, params, query }: Context) {
  const { executionId } = params;
  const [found, choices] = await Promise.all([
    selectExecution(sql, projectId, executionId),
    selectSummaries(sql, projectId, MAX_CHOICES, { branch: defaultBranch, before: executionId }),
  ]);
  const execution = found ?? absent();
  const baselineId = query.baseline ?? execution.baselineId;
  const [names, rows, slower] = await Promise.all([
    selectExecutionNames(sql, projectId, [baselineId]),
    selectComparison(sql, projectId, executionId, query.baseline),
    selectSlowerTests(sql, projectId, executionId, MAX_ROWS_PER_KIND),
  ]);
  const baseline = baselineId === null ? undefined : names.get(baselineId);
  if (query.baseline !== undefined && !baseline)
    fail("VALIDATION_ERROR", `There is no execution "${query.baseline}" in this project`);
  return { execution, baselineId, baseline, choices: choices.slice(0, MAX_CHOICES), rows, slower };
}

type ComparisonData = Awaited<ReturnType<typeof loadComparison>>;

function baselineChoice({ path, query }: Context, { choices, baseline, baselineId }: ComparisonData): Html {
  const isListed = choices.some(({ id }) => id === baselineId);
  return (
    <form class="filters" method="get" action={path}>
      <FilterSelect
        label="Compare with"
        name="baseline"
        options={[
          ["", "its baseline"],
          ...(isListed || !query.baseline || !baseline ? [] : [[baseline.id, executionName(baseline)] as const]),
          ...choices.map(({ id, status, ...name }) => [id, `${executionName(name)}, ${wordOf(status)}`] as const),
        ]}
        value={baselineId ?? ""}
      />
      <button>Compare</button>
    </form>
  );
}

/** Returns a headline such as "2 fixed, 1 new failures". */
function comparisonHeadline(kinds: readonly string[], byKind: ReadonlyMap<string, readonly ComparedRow[]>): string {
  const counts = kinds.map((kind) => `${toCount(byKind.get(kind)![0]!.total)} ${COMPARED[kind]!.title.toLowerCase()}`);
  return counts.length === 0 ? "Nothing has changed" : counts.slice(0, 3).join(", ");
}

function comparisonView(context: Context, data: ComparisonData): View {
  const { project, now } = context;
  const { execution, baseline, rows, slower } = data;
  const byKind = Map.groupBy(rows, ({ kind }) => kind as string);
  const kinds = Object.keys(COMPARED).filter((kind) => byKind.has(kind));
  const other = baseline ? shortExecutionName(baseline) : "nothing";
  const body = (
    <>
      <h1>{comparisonHeadline(kinds, byKind)}</h1>
      <div class="meta">
        <span>
          <a href={executionPath(project.id, execution.id)}>
            <b>{shortExecutionName(execution)}</b>
          </a>{" "}
          compared with{" "}
          {baseline ? (
            <a href={executionPath(project.id, baseline.id)}>{other}</a>
          ) : (
            "no other execution: there is no earlier one"
          )}
        </span>
        {baseline ? (
          <span>
            <Ago at={baseline.createdAt} now={now} />
          </span>
        ) : null}
      </div>
      {baselineChoice(context, data)}
      {kinds.map((kind) => comparedTable(project.id, kind, byKind.get(kind)!))}
      {slower.length === 0 ? null : (
        <>
          <h2 id="slower">
            Slower than usual <small>{counted(slower[0]!.total, "test")}, whatever the other execution took</small>
          </h2>
          <div class="card padded">
            <SlowerTests projectId={project.id} tests={slower} />
          </div>
        </>
      )}
      {kinds.length === 0 ? <Empty>No differences: same tests, same results.</Empty> : null}
    </>
  );
  return { title: `${shortExecutionName(execution)} compared with ${other}`, body, section: "executions" };
}

export const comparisonPage = page(
  "/projects/:projectId/executions/:executionId/comparison",
  { access: "viewer", query: comparisonQuery },
  async (context) => comparisonView(context, await loadComparison(context)),
);
