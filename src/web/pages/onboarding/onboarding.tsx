/** The pages and forms of onboarding. */

import * as v from "valibot";
import type { Html, Path } from "../../../http/html.ts";
import {
  addSampleData,
  changeOnboarding,
  findOnboarding,
  removeSampleData,
  skipStep,
} from "../../../operations/projects/onboarding.ts";
import { booleanText } from "../../../schema/fields.ts";
import { STEPS } from "../../../schema/onboarding.ts";
import type { ExecutionSummary } from "../../../store/execution_list.ts";
import { selectLiveKeyIds } from "../../../store/keys.ts";
import { countSample } from "../../../store/onboarding.ts";
import { selectFirstBuild } from "../../../store/overview.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { executionName } from "../../../wording/execution_name.ts";
import { CardTable } from "../../components/list.tsx";
import { ActionForm, Hidden } from "../../components/form.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago } from "../../components/text.tsx";
import { type Page, page } from "../../site/page.ts";
import { executionPath } from "../../site/paths.ts";
import { action } from "../../site/action.ts";
import { keyHint, lines, snippets, systems } from "./snippets.tsx";
import { type Step, sampleCard, stepRow } from "./steps.tsx";

/** Returns counts such as "3 passed, 1 failed". */
function countsOf({ passed, failed, skipped }: Pick<ExecutionSummary, "passed" | "failed" | "skipped">): string {
  const parts = [
    passed > 0 && `${toCount(passed)} passed`,
    failed > 0 && `${toCount(failed)} failed`,
    skipped > 0 && `${toCount(skipped)} skipped`,
  ];
  return parts.filter(Boolean).join(", ") || "it contained no tests";
}

function arrival(projectId: string, first: ExecutionSummary | undefined, steps: readonly Step[], now: Date): Html {
  if (!first)
    return (
      <>
        <h1>
          <Mark status="queued" word={false} /> Send your first report
        </h1>
        <div class="meta">
          <span>Waiting for the first report. This page updates automatically.</span>
          <a href={`/projects/${projectId}/onboarding`}>Refresh</a>
          <a href={`/projects/${projectId}/uploads`}>Sent a report that is not here? See rejected uploads</a>
        </div>
      </>
    );
  const done = steps.filter(({ status }) => status === "done").length;
  const at = first.completedAt ?? first.startedAt ?? first.createdAt;
  const path: Path = executionPath(projectId, first.id);
  return (
    <>
      <h1>
        <Mark status="passed" word={false} /> Your first report has arrived: <a href={path}>{countsOf(first)}</a>
      </h1>
      <div class="meta">
        <span>
          {executionName(first)}, <Ago at={at} now={now} />
        </span>
        <span>
          {done} of {counted(steps.length, "step")} done
        </span>
        <a href={`/projects/${projectId}`}>Go to the project</a>
      </div>
    </>
  );
}

export const query = v.strictObject({ ci: v.optional(v.picklist(systems, "expected the name of a CI system")) });

const path = "/projects/:projectId/onboarding";

const onboardingPage = page(path, { access: "viewer", query }, async (context) => {
  const { sql, project, team, role, csrf, now, publicUrl, query } = context;
  const [state, first, sample, keys] = await Promise.all([
    findOnboarding(sql, project.id, publicUrl),
    selectFirstBuild(sql, project.id),
    countSample(sql, project.id),
    selectLiveKeyIds(sql, project.id),
  ]);
  const base: Path = `/projects/${project.id}`;
  const shown = { links: { base, teamId: team.id }, csrf, role, now };
  const { steps, completed, dismissed } = state;
  const paste = (
    <>
      <h2 id="line">
        {first ? "Upload command" : "Run this command"}{" "}
        <small>with your project's ids, in a folder that has a report</small>
      </h2>
      {keyHint(project, keys.length > 0, role)}
      {lines(state, { publicUrl, projectId: project.id })}
      {snippets(base, state, query.ci ?? "githubActions")}
    </>
  );
  const toDismiss = (
    <ActionForm
      action={`${base}/onboarding/dismiss`}
      csrf={csrf}
      label={dismissed ? "Show in the project again" : "Dismiss"}
      fields={<Hidden name="dismissed" value={String(!dismissed)} />}
    />
  );
  const next = (
    <>
      <div data-region="steps">
        <h2>
          {completed ? "All done" : "Step by step"} <small>completed automatically</small>
        </h2>
        <CardTable caption="Steps to set up the project">{steps.map((step) => stepRow(step, shown))}</CardTable>
      </div>
      {role === "viewer" ? null : (
        <div class="actions">
          {toDismiss}
          <span class="hint">
            {dismissed ? "The project no longer links to this page." : "The project will no longer link to this page."}
          </span>
        </div>
      )}
    </>
  );
  const body = (
    <>
      <div data-region="arrival">{arrival(project.id, first, steps, now)}</div>
      {first ? [next, paste] : [paste, next]}
      <h2>Explore with sample data</h2>
      {sampleCard(base, sample, shown)}
    </>
  );
  const title = first ? `Your first report has arrived` : "Send your first report";
  return { title, body, section: "settings", ...(completed && first ? {} : { live: `${base}/live` }) };
});

const stepForm = action(
  `${path}/steps`,
  { access: "member", fields: v.strictObject({ step: v.picklist(STEPS), skipped: booleanText }) },
  {
    act: (sql, { project, fields }) => skipStep(sql, project.id, fields.step, fields.skipped),
    done: ({ project }) => `/projects/${project.id}/onboarding`,
  },
);

const dismissForm = action(
  `${path}/dismiss`,
  { access: "member", fields: v.strictObject({ dismissed: booleanText }) },
  {
    act: (sql, { project, fields }) => changeOnboarding(sql, project.id, fields),
    done: ({ project, fields }) =>
      fields.dismissed ? `/projects/${project.id}` : `/projects/${project.id}/onboarding`,
  },
);

const addSampleForm = action(
  `${path}/sample-data`,
  { access: "member" },
  {
    act: (sql, { project }) => addSampleData(sql, project.id),
    record: (_, { project }) => ({
      action: "sample_data.added",
      subject: project.name,
      details: { projectId: project.id },
    }),
    done: ({ project }) => `/projects/${project.id}`,
  },
);

const removeSampleForm = action(
  `${path}/sample-data/delete`,
  { access: "member" },
  {
    act: (sql, { project }) => removeSampleData(sql, project.id),
    record: (_, { project }) => ({
      action: "sample_data.removed",
      subject: project.name,
      details: { projectId: project.id },
    }),
    done: ({ project }) => `/projects/${project.id}/onboarding`,
  },
);

export const onboardingPages: Page[] = [onboardingPage, stepForm, dismissForm, addSampleForm, removeSampleForm];
