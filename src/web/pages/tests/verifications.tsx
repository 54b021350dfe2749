/** The verifications of a test: the form that begins one, their states, and the form that cancels one. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import { beginVerification, cancelVerification } from "../../../operations/probes/verifications.ts";
import { commitHash, MAX_VERIFICATION_RUNS, type VerificationStatus } from "../../../schema/verifications.ts";
import { refuseAbsent } from "../../../schema/refusal.ts";
import { integerText } from "../../../schema/fields.ts";
import { selectTestCase, type TestCaseRow } from "../../../store/test_cases.ts";
import { selectVerification, type VerificationRow } from "../../../store/verifications.ts";
import { toCount } from "../../../wording/numbers.ts";
import { stopWords, verificationWords } from "../../../wording/verification.ts";
import { AgoCell, CardTable } from "../../components/list.tsx";
import { ActionForm, Form, Checkbox, Field } from "../../components/form.tsx";
import { Mark } from "../../components/status.tsx";
import { Commit } from "../../components/text.tsx";
import { executionPath, testPath } from "../../site/paths.ts";
import { onePath } from "./changes.tsx";
import { action } from "../../site/action.ts";

/** Number of verifications on the page of a test. */
export const SHOWN_VERIFICATIONS = 5;

const DEFAULT_RUNS = 100;

type FormProperties = { base: Path; test: TestCaseRow; csrf: string; commit: string | null };

export const VerifyForm = ({ base, test, csrf, commit }: FormProperties): Html => (
  <details class="panel">
    <summary class="button">Verify</summary>
    <Form to={`${base}/verify`} csrf={csrf} button="Verify">
      <p class="hint">
        Runners run only this test, many times at one commit, and the result says how often it may still fail. The runs
        are counted nowhere.
      </p>
      <Field label="Commit" name="commit" required min={7} max={64} isCode value={commit} />
      <Field label="Runs" name="runs" type="number" required max={4} value={DEFAULT_RUNS} />
      {test.quarantine ? <Checkbox label="End the quarantine if no run fails" name="release" checked={false} /> : null}
    </Form>
  </details>
);

const STATUS_WORDS: Record<VerificationStatus, string> = {
  running: "running",
  passed: "passed",
  flaky: "flaky",
  failed: "failed",
  inconclusive: "inconclusive",
  cancelled: "cancelled",
};

/** The status whose mark is shown. */
const MARK_OF: Record<VerificationStatus, string> = { ...STATUS_WORDS, inconclusive: "incomplete" };

const FailedProbes = ({ projectId, ids }: { projectId: string; ids: readonly string[] }): Html | null =>
  ids.length === 0 ? null : (
    <span>
      failed:{" "}
      {ids.map((id, index) => (
        <>
          {index === 0 ? "" : ", "}
          <a href={executionPath(projectId, id)}>probe {index + 1}</a>
        </>
      ))}
    </span>
  );

const StopReason = ({ verification }: { verification: VerificationRow }): Html | null => {
  const reason = stopWords(verification);
  return reason === null ? null : <span class="small soft">{reason}</span>;
};

type ListProperties = {
  projectId: string;
  base: Path;
  verifications: readonly VerificationRow[];
  /** Undefined for a visitor who may not cancel. */
  csrf: string | undefined;
  now: Date;
};

/** Shows nothing if the test has no verifications. */
export function Verifications({ projectId, base, verifications, csrf, now }: ListProperties): Html | null {
  if (verifications.length === 0) return null;
  return (
    <>
      <h2 id="verifications">Verifications</h2>
      <CardTable caption="Verifications of this test" columns={["Status", "Result", "Commit", ["Begun", "number"]]}>
        {verifications.slice(0, SHOWN_VERIFICATIONS).map((one) => (
          <tr>
            <td>
              <Mark status={MARK_OF[one.status]} word={false} /> {STATUS_WORDS[one.status]}
              {one.status === "running" && csrf !== undefined ? (
                <ActionForm action={`${base}/verifications/${one.id}/cancel`} csrf={csrf} label="Cancel" />
              ) : null}
            </td>
            <td class="long">
              {verificationWords(one)}
              {one.status === "running" ? ` (${toCount(one.passed + one.failed)} of ${toCount(one.runs)})` : ""}
              {one.released ? ". The quarantine has ended" : ""}{" "}
              <FailedProbes projectId={projectId} ids={one.failedExecutionIds} />
              <StopReason verification={one} />
            </td>
            <td>
              <Commit hash={one.commit} />
            </td>
            <AgoCell at={one.createdAt} now={now} kind="number" />
          </tr>
        ))}
      </CardTable>
    </>
  );
}

const verifyFields = v.strictObject({
  commit: commitHash,
  runs: integerText(1, MAX_VERIFICATION_RUNS),
  release: v.optional(v.literal("true")),
});

const toVerifications = ({ project, params }: { project: { id: string }; params: { testId: string } }): Path =>
  `${testPath(project.id, params.testId)}#verifications`;

export const verifyForm = action(
  `${onePath}/verify`,
  { access: "member", fields: verifyFields },
  {
    read: ({ fields: { commit, runs, release } }) => ({ commit, runs, release: release === "true" }),
    act: async (sql, { project, params }, asked, actor) => {
      const { id, taskSlug } = (await selectTestCase(sql, project.id, params.testId)) ?? refuseAbsent();
      return await beginVerification(sql, project.id, {
        ...asked,
        actor,
        testCase: { id, taskSlug },
        now: new Date(),
      });
    },
    record: (verificationId, { project, params }, asked) => ({
      action: "verification.begun",
      subject: params.testId,
      details: { projectId: project.id, testCaseIds: [params.testId], verificationId, ...asked },
    }),
    done: toVerifications,
  },
);

export const cancelVerificationForm = action(
  `${onePath}/verifications/:verificationId/cancel`,
  { access: "member" },
  {
    act: async (sql, { project, params: { testId, verificationId } }) => {
      const found = await selectVerification(sql, project.id, verificationId);
      if (found?.testCase.testCaseId !== testId) refuseAbsent();
      await cancelVerification(sql, project.id, verificationId);
    },
    record: (_, { project, params: { testId, verificationId } }) => ({
      action: "verification.cancelled",
      subject: testId,
      details: { projectId: project.id, testCaseIds: [testId], verificationId },
    }),
    done: toVerifications,
  },
);
