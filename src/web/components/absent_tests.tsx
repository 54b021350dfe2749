/** Names tests without a result: those of the baseline that did not run, and failed ones that a rerun does not repeat. */

import type { Html } from "../../http/html.ts";
import type { AbsentTests } from "../../schema/absent_tests.ts";
import { absentKinds } from "../../wording/absent_tests.ts";
import { shownTaskTitle } from "../../wording/case_title.ts";
import { toCount } from "../../wording/numbers.ts";
import { testPath } from "../site/paths.ts";
import { Breakable } from "./text.tsx";

export function AbsentTestsNotice({ projectId, absent }: { projectId: string; absent: AbsentTests }): Html | null {
  const kinds = absentKinds(absent);
  if (kinds.length === 0) return null;
  return (
    <div class="message" role="note">
      {kinds.map(({ sentence, tests: { count, testCases } }) => (
        <details class="bare">
          <summary>{sentence}</summary>
          <ul class="plain small">
            {testCases.map((test) => (
              <li>
                <a href={testPath(projectId, test.testCaseId)}>
                  <Breakable text={shownTaskTitle(test)} />
                </a>
              </li>
            ))}
            {count > testCases.length ? <li class="soft">{toCount(count - testCases.length)} more</li> : null}
          </ul>
        </details>
      ))}
    </div>
  );
}
