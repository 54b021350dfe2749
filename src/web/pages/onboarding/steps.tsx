/** The steps of onboarding, and sample data. */

import type { Html, Path, Piece } from "../../../http/html.ts";
import type { Onboarding, SampleData } from "../../../schema/onboarding.ts";
import { counted } from "../../../wording/numbers.ts";
import { ActionForm, Danger } from "../../components/form.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago } from "../../components/text.tsx";

export type Step = Onboarding["steps"][number];

type Where = { base: Path; teamId: string };

/** Where a step is done; the words of the API are for those who call it. */
const HINTS: Record<Step["id"], (where: Where) => Piece> = {
  first_run: () => (
    <>
      Paste <a href="#line">the line</a>, or what fits <a href="#ci">your CI</a>.
    </>
  ),
  commit_and_branch: () => (
    <>
      What is said of <a href="#ci">your CI</a> sends both: that is how flaky tests are told from broken ones.
    </>
  ),
  environment: () => (
    <>
      Send <code>environment=staging</code> with tests of what is deployed.
    </>
  ),
  integration: ({ teamId }) => (
    <>
      Slack, Teams, GitHub, Jira, a webhook:{" "}
      <a href={`/teams/${teamId}/settings#integrations`}>in the settings of the team</a>.
    </>
  ),
  automation: ({ teamId }) => (
    <>
      An automation notifies your team:{" "}
      <a href={`/teams/${teamId}/settings#automations`}>in the settings of the team</a>.
    </>
  ),
  bug_triaged: ({ base }) => (
    <>
      What fails on the default branch opens <a href={`${base}/bugs`}>a bug</a>: set its status, or merge two.
    </>
  ),
};

const DONE: Record<Step["status"], readonly [mark: string, word: string]> = {
  done: ["passed", "done"],
  todo: ["queued", "to do"],
  skipped: ["skipped", "skipped"],
};

type Shown = { where: Where; csrf: string; role: string; now: Date };

export function stepRow({ id, title, status, doneAt }: Step, { where, csrf, role, now }: Shown): Html {
  const [shape, word] = DONE[status];
  const skip = (isSkipped: boolean) => (
    <ActionForm
      action={`${where.base}/onboarding/steps`}
      csrf={csrf}
      label={isSkipped ? "Skip" : "Resume"}
      kind="quiet"
      fields={
        <>
          <input type="hidden" name="step" value={id} />
          <input type="hidden" name="skipped" value={String(isSkipped)} />
        </>
      }
    />
  );
  return (
    <tr>
      <td class="mark-cell">
        <Mark status={shape} word={false} />
        <span class="visually-hidden">{word}</span>
      </td>
      <td class="long">
        {status === "todo" ? <b>{title}</b> : title}
        {status === "todo" ? <span class="small soft">{HINTS[id](where)}</span> : null}
      </td>
      <td class="number soft">
        {doneAt === null ? status === "skipped" ? "skipped" : null : <Ago at={doneAt} now={now} />}
        {role === "viewer" || status === "done" || id === "first_run" ? null : skip(status === "todo")}
      </td>
    </tr>
  );
}

export function sampleCard(base: Path, sample: SampleData, { csrf, role }: Shown): Html {
  const path: Path = `${base}/onboarding/sample-data`;
  const words = [
    counted(sample.executions, "execution"),
    counted(sample.testCases, "test"),
    counted(sample.bugReports, "bug"),
  ];
  const told = `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
  if (sample.executions > 0)
    return (
      <div class="card padded">
        <p>{told} of sample data are in this project, each with a tag.</p>
        {role === "viewer" ? null : (
          <Danger
            action={`${path}/delete`}
            csrf={csrf}
            label="Remove sample data"
            loss={`${told} of sample data are deleted. Your own results are kept.`}
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
