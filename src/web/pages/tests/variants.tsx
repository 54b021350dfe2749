/** A test in the variants of its task. */

import type { Html } from "../../../http/html.ts";
import type { CaseVariants } from "../../../operations/health/case_variants.ts";
import type { TestCaseRow } from "../../../store/test_cases.ts";
import { toCount } from "../../../wording/numbers.ts";
import { MarkCell, CardTable } from "../../components/list.tsx";
import { Ago, Breakable } from "../../components/text.tsx";
import { testPath } from "../../site/paths.ts";

type VariantsProperties = { projectId: string; test: TestCaseRow; found: CaseVariants; now: Date };

/** Shows nothing if the task has no variants. */
export function Variants({ projectId, test, found: { variants, byTag }, now }: VariantsProperties): Html | null {
  if (variants.length < 2) return null;
  return (
    <>
      <h2>
        Variants <small>the last 50 results of each</small>
      </h2>
      <CardTable
        caption="This test in the variants of its task"
        columns={[["Health", "hidden"], "Tags", ["Passed", "number"], ["Failed", "number"], ["Last run", "number"]]}
      >
        {variants.map(({ testCaseId, tags, health, passed, failed, lastRunAt }) => (
          <tr>
            <MarkCell status={health} />
            <td class="long">
              {testCaseId === test.id ? (
                <b>{namesOf(tags)}</b>
              ) : (
                <a href={testPath(projectId, testCaseId)}>{namesOf(tags)}</a>
              )}
            </td>
            <td class="number">{toCount(passed)}</td>
            <td class="number">{toCount(failed)}</td>
            <td class="number">{lastRunAt === null ? null : <Ago at={lastRunAt} now={now} />}</td>
          </tr>
        ))}
      </CardTable>
      <p class="hint after">
        By tag:{" "}
        {byTag.map(({ tag, passed, failed }, index) => [
          index === 0 ? "" : ", ",
          <code>{tag}</code>,
          ` ${toCount(failed)} of ${toCount(passed + failed)} failed`,
        ])}
      </p>
    </>
  );
}

const namesOf = (tags: readonly string[]): Html => <Breakable text={tags.join(", ") || "without tags"} />;
