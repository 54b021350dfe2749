/** Lists test cases that took longer than usual, with their durations. */

import type { Html } from "../../http/html.ts";
import type { SlowerRow } from "../../store/slower.ts";
import { shownCaseTitle, shownTaskTitle } from "../../wording/case_title.ts";
import { toCount } from "../../wording/numbers.ts";
import { slowerWords } from "../../wording/slower.ts";
import { testPath } from "../site/paths.ts";
import { Breakable } from "./text.tsx";

type SlowerTestsProperties = {
  projectId: string;
  tests: readonly SlowerRow[];
  /** The page is that of the task, whose name would be repeated. */
  ofTask?: boolean;
};

export const SlowerTests = ({ projectId, tests, ofTask = false }: SlowerTestsProperties): Html => (
  <ul class="plain">
    {tests.map((test) => (
      <li>
        <a href={testPath(projectId, test.testCaseId)}>
          <Breakable text={ofTask ? shownCaseTitle(test) : shownTaskTitle(test)} />
        </a>{" "}
        <span class="small soft">{slowerWords(test.durationMs, test)}</span>
      </li>
    ))}
    {tests.length > 0 && tests[0]!.total > tests.length ? (
      <li class="small soft">{toCount(tests[0]!.total - tests.length)} more</li>
    ) : null}
  </ul>
);
