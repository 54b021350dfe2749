/** Describes a probe at the top of the page of its execution. */

import type { Html } from "../../../http/html.ts";
import type { ExecutionProbe } from "../../../schema/executions.ts";
import { testPath } from "../../site/paths.ts";

const RESULT_WORDS = {
  passed: "It passed.",
  failed: "It failed.",
  no_build: "The commit cannot be checked out or built.",
  no_result: "There is no result: the test did not run, or its runner or machine failed.",
} as const;

/** Shows nothing for an execution that is no probe. */
export function ProbeNotice({ projectId, probe }: { projectId: string; probe: ExecutionProbe | null }): Html | null {
  if (probe === null) return null;
  const { testCase, result, verificationId, tests } = probe;
  if (testCase === null)
    return (
      <p class="message" data-region="probe">
        <b>Probe</b>: this execution lists the commits of a range, and runs no test.
      </p>
    );
  if (tests.length > 1) return <SharedNotice projectId={projectId} tests={tests} />;
  const path = testPath(projectId, testCase.testCaseId);
  return (
    <p class="message" data-region="probe">
      <b>Probe</b>: this execution runs <a href={path}>{testCase.name}</a> alone, at one commit
      {verificationId === null ? null : [", for ", <a href={`${path}#verifications`}>a verification</a>]}.{" "}
      {result === null ? "" : `${RESULT_WORDS[result]} `}Its results count nowhere else.
    </p>
  );
}

const SharedNotice = ({ projectId, tests }: { projectId: string; tests: ExecutionProbe["tests"] }): Html => (
  <div class="message" data-region="probe">
    <p>
      <b>Probe</b>: this execution runs {tests.length} test cases at one commit, for several searches for the commit
      that broke them. Its results count nowhere else.
    </p>
    <ul>
      {tests.map(({ testCase, result }) => (
        <li>
          <a href={testPath(projectId, testCase.testCaseId)}>{testCase.name}</a>
          {result === null ? "" : `: ${RESULT_WORDS[result]}`}
        </li>
      ))}
    </ul>
  </div>
);
