/** The steps of onboarding, and sample data. */

import type { Html, Path, Piece } from "../../../http/html.ts";
import type { Onboarding, SampleData } from "../../../schema/onboarding.ts";
import { counted } from "../../../wording/numbers.ts";
import { ActionForm, Danger, Hidden } from "../../components/form.tsx";
import { Ago } from "../../components/text.tsx";
import { MarkCell } from "../../components/list.tsx";

export type Step = Onboarding["steps"][number];

type StepLinks = { base: Path; teamId: string };

/** The hint of each step. The hints of the API are worded for its callers. */
const HINTS: Record<Step["id"], (links: StepLinks, hint: string) => Piece> = {
  report_format: (_, hint) => hint,
  first_run: () => (
    <>
      Run the <a href="#line">upload command</a>, or add it to <a href="#ci">your CI</a>.
    </>
  ),
  commit_and_branch: () => (
    <>
      In <a href="#ci">your CI</a>, <code>assay upload</code> sends both. Assay needs them to distinguish flaky tests
      from broken ones.
    </>
  ),
  environment: () => (
    <>
      Send <code>environment=staging</code> with tests of a deployment.
    </>
  ),
  integration: ({ teamId }) => (
    <>
      <a href={`/teams/${teamId}/integrations`}>Connect</a> Slack, Microsoft Teams, GitHub, Jira or a webhook.
    </>
  ),
  automation: ({ teamId }) => (
    <>
      <a href={`/teams/${teamId}/automations`}>Create an automation</a> that notifies your team.
    </>
  ),
  bug_triaged: ({ base }) => (
    <>
      Failures on the default branch open <a href={`${base}/bugs`}>bugs</a>. Set the status of one, or merge two.
    </>
  ),
};

const STATUS_WORDS: Record<Step["status"], readonly [mark: string, word: string]> = {
  done: ["passed", "done"],
  todo: ["queued", "to do"],
  skipped: ["skipped", "skipped"],
};

type StepContext = { links: StepLinks; csrf: string; role: string; now: Date };

export function stepRow({ id, title, status, doneAt, hint }: Step, { links, csrf, role, now }: StepContext): Html {
  const [shape, word] = STATUS_WORDS[status];
  const skip = (isSkipped: boolean) => (
    <ActionForm
      action={`${links.base}/onboarding/steps`}
      csrf={csrf}
      label={isSkipped ? "Skip" : "Resume"}
      kind="quiet"
      fields={
        <>
          <Hidden name="step" value={id} />
          <Hidden name="skipped" value={String(isSkipped)} />
        </>
      }
    />
  );
  return (
    <tr>
      <MarkCell status={shape} word={word} />
      <td class="long">
        {status === "todo" ? <b>{title}</b> : title}
        {status === "todo" ? <span class="small soft">{HINTS[id](links, hint)}</span> : null}
      </td>
      <td class="number soft">
        {doneAt === null ? status === "skipped" ? "skipped" : null : <Ago at={doneAt} now={now} />}
        {role === "viewer" || status === "done" || id === "first_run" ? null : skip(status === "todo")}
      </td>
    </tr>
  );
}

export function sampleCard(base: Path, sample: SampleData, { csrf, role }: StepContext): Html {
  const path: Path = `${base}/onboarding/sample-data`;
  const words = [
    counted(sample.executions, "execution"),
    counted(sample.testCases, "test"),
    counted(sample.bugReports, "bug"),
  ];
  const contents = `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
  if (sample.executions > 0)
    return (
      <div class="card padded">
        <p>This project contains sample data: {contents}, each with a tag.</p>
        {role === "viewer" ? null : (
          <Danger
            action={`${path}/delete`}
            csrf={csrf}
            label="Remove sample data"
            loss={`The sample data is deleted: ${contents}. Your own results are kept.`}
          />
        )}
      </div>
    );
  return (
    <div class="card padded">
      <p>
        Two weeks of an example project with a flaky test, a fixed bug and an open bug. It is tagged as sample data and
        can be removed completely.
      </p>
      {role === "viewer" ? (
        <p class="hint">Members of the team can add it.</p>
      ) : (
        <div class="actions">
          <ActionForm action={path} csrf={csrf} label="Add sample data" />
        </div>
      )}
    </div>
  );
}
