/** The results of a search, a table per kind. */

import type { Html, Path } from "../../../http/html.ts";
import { quoteSearchText } from "../../../rules/search_words.ts";
import { shownCaseTitle } from "../../../wording/case_title.ts";
import { MarkCell, CardTable } from "../../components/list.tsx";
import { ExecutionTable } from "../../components/execution_table.tsx";
import { Tag, testStatusOf } from "../../components/status.tsx";
import { Breakable } from "../../components/text.tsx";
import { bugPath, testPath, toAddress } from "../../site/paths.ts";
import { MAX_RESULTS_PER_KIND, type SearchResults } from "./load_search.ts";

const Heading = ({ title, all, hasMore }: { title: string; all: Path; hasMore: boolean }): Html => (
  <h2>
    {title}{" "}
    <small>
      {hasMore ? (
        ["the first ", MAX_RESULTS_PER_KIND, ": ", <a href={all}>view all</a>]
      ) : (
        <a href={all}>view in the list</a>
      )}
    </small>
  </h2>
);

type Properties<Kind extends keyof SearchResults> = { projectId: string; q: string; found: SearchResults[Kind] };

export function FoundTests({ projectId, q, found: { rows, hasMore } }: Properties<"tests">): Html | null {
  if (rows.length === 0) return null;
  return (
    <>
      <Heading
        title="Tests"
        all={toAddress(`/projects/${projectId}/tests`, { q: quoteSearchText(q) })}
        hasMore={hasMore}
      />
      <CardTable caption="Tests">
        {rows.map((test) => (
          <tr>
            <MarkCell status={testStatusOf(test)} />
            <td class="long">
              <a href={testPath(projectId, test.id)}>
                <Breakable text={shownCaseTitle(test)} />
              </a>
              <span class="small soft">{[test.file, test.taskSlug].filter(Boolean).join(" · ")}</span>
            </td>
          </tr>
        ))}
      </CardTable>
    </>
  );
}

export function FoundBugs({ projectId, q, found: { rows, hasMore } }: Properties<"bugs">): Html | null {
  if (rows.length === 0) return null;
  const anyStatus = { q: `is:any ${quoteSearchText(q)}`, sort: "newest" };
  return (
    <>
      <Heading title="Bugs" all={toAddress(`/projects/${projectId}/bugs`, anyStatus)} hasMore={hasMore} />
      <CardTable caption="Bugs">
        {rows.map((bug) => (
          <tr>
            <MarkCell status={bug.status} />
            <td class="long">
              <a href={bugPath(projectId, bug.id)}>
                <b>Bug {bug.number}</b> {bug.title}
              </a>
              {"mergedInto" in bug && bug.mergedInto !== null ? [" ", <Tag>merged</Tag>] : null}
            </td>
          </tr>
        ))}
      </CardTable>
    </>
  );
}

type ExecutionProperties = Omit<Properties<"executions">, "q"> & { now: Date };

export function FoundExecutions({
  projectId,
  found: { rows, hasMore, branch },
  now,
}: ExecutionProperties): Html | null {
  if (rows.length === 0) return null;
  return (
    <>
      <Heading
        title="Executions"
        all={toAddress(`/projects/${projectId}/executions`, { branch })}
        hasMore={hasMore && Boolean(branch)}
      />
      <ExecutionTable projectId={projectId} executions={rows} now={now} caption="Executions" />
    </>
  );
}
