/** Get me started: the line to paste, what has come of it, and what is worth doing next. */

import { write } from "../site/write.ts";
import * as v from "valibot";
import type { Html, Piece, Path } from "../../http/html.ts";
import {
  addSampleData,
  changeOnboarding,
  findOnboarding,
  removeSampleData,
  skipStep,
  uploadUrl,
} from "../../operations/projects/onboarding.ts";
import { quoted } from "../../rules/shell.ts";
import { booleanText } from "../../schema/fields.ts";
import { type Onboarding, type SampleData, STEPS, type System } from "../../schema/onboarding.ts";
import { selectLiveKeyIds } from "../../store/keys.ts";
import { countSample } from "../../store/onboarding.ts";
import { selectFirstBuild } from "../../store/overview.ts";
import type { ExecutionSummary } from "../../store/execution_list.ts";
import { executionPath } from "../site/paths.ts";
import { executionName } from "../components/execution_table.tsx";
import { ActionForm, Danger } from "../components/form.tsx";
import { type Page, type ProjectPlace, SeeOther, form, page } from "../site/page.ts";
import { Ago } from "../components/text.tsx";
import { counted, toCount } from "../../wording/numbers.ts";
import { Mark } from "../components/status.tsx";

const SYSTEMS: Record<System, string> = {
  githubActions: "GitHub Actions",
  gitlabCi: "GitLab CI",
  jenkins: "Jenkins",
  circleci: "CircleCI",
  azurePipelines: "Azure Pipelines",
  buildkite: "Buildkite",
  curl: "Any other",
};
const systems = Object.keys(SYSTEMS) as System[];

type Step = Onboarding["steps"][number];

/** "3 passed, 1 failed". */
export function countsOf({ passed, failed, skipped }: Pick<ExecutionSummary, "passed" | "failed" | "skipped">): string {
  const told = [
    passed > 0 && `${toCount(passed)} passed`,
    failed > 0 && `${toCount(failed)} failed`,
    skipped > 0 && `${toCount(skipped)} skipped`,
  ];
  return told.filter(Boolean).join(", ") || "it held no tests";
}

function arrival(projectId: string, first: ExecutionSummary | undefined, steps: readonly Step[], now: Date): Html {
  if (!first)
    return (
      <>
        <h1>
          <Mark status="queued" word={false} /> Send your first report
        </h1>
        <div class="meta">
          <span>Nothing has arrived yet. This page notices when it does.</span>
          <a href={`/projects/${projectId}/onboarding`}>Look again</a>
          <a href={`/projects/${projectId}/uploads`}>Sent, and not here? See what was refused</a>
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
        <a href={`/projects/${projectId}`}>To the project</a>
      </div>
    </>
  );
}

/** In double quotes of a shell, where "!" calls up history. */
const inAddress = (text: string): string => encodeURIComponent(text).replaceAll("!", "%21");

const HELLO = `<testsuite name="hello"><testcase name="works"/><testcase name="fails"><failure message="expected 1, got 2"/></testcase></testsuite>`;

function lines({ id, defaultBranch }: ProjectPlace, publicUrl: string): Html {
  const url = uploadUrl(publicUrl, id);
  const send = `curl -H "Authorization: Bearer $ASSAY_KEY" -H "Accept: text/plain"`;
  const query = `?branch=${inAddress(defaultBranch)}&complete=true`;
  return (
    <div class="card padded stack">
      <h3>From any shell, with curl</h3>
      <div class="copied">
        <pre data-copy>{`${send} --data-binary @report.xml \\\n  "${url}${query}"`}</pre>
      </div>
      <p class="hint">
        report.xml is what your test runner wrote: JUnit XML, Playwright, Jest, Vitest, Mocha, Go, TAP, TRX, NUnit and
        others are recognised by themselves.
      </p>
      <details class="bare">
        <summary>No report at hand? Send a made-up one</summary>
        <div class="copied">
          <pre data-copy>{`${send} -d '${HELLO}' \\\n  "${url}?complete=true"`}</pre>
        </div>
      </details>
      <h3>With the command line, around the tests</h3>
      <div class="copied">
        <pre
          data-copy
        >{`export ASSAY_URL=${quoted(publicUrl)} ASSAY_PROJECT=${id}\nassay upload 'reports/**/*.xml' -- npm test`}</pre>
      </div>
      <p class="hint">
        It finds commit, branch, build and shard by itself, and a run without a report is a failure. With{" "}
        <code>--complete</code> the build ends at once: for the only job of a build, or the last one. In a checkout of
        Assay <code>bun build --compile --outfile assay src/cli/assay.ts</code> makes the command, one file to put where
        CI finds it.
      </p>
    </div>
  );
}

function keyHint({ id }: ProjectPlace, hasKey: boolean, role: string): Html {
  const where = (
    <>
      <code>ASSAY_KEY</code> holds the key of the project, a secret: in CI it goes among the secrets.
    </>
  );
  if (role === "viewer")
    return (
      <p class="hint">
        {where} Members of the team can generate one{hasKey ? "; the one that there is was shown once" : ""}.
      </p>
    );
  const link = (text: string, kind: string) => (
    <a class={kind} href={`/projects/${id}/settings/key`}>
      {text}
    </a>
  );
  return hasKey ? (
    <p class="hint">
      {where} It was shown once, when it was generated. Lost it? {link("Generate a new one", "")}; the old one then
      stops working.
    </p>
  ) : (
    <p class="message">
      {where} The project has none yet. {link("Generate its key", "button main")}
    </p>
  );
}

function snippets(base: Path, { snippets }: Onboarding, chosen: System): Html {
  return (
    <>
      <h2 id="ci">
        In your CI <small>it runs the tests, uploads what becomes of them, and ends as they did</small>
      </h2>
      <nav class="tabs" aria-label="CI system">
        {systems.map((system) => (
          <a href={`${base}/onboarding?ci=${system}#ci`} aria-current={system === chosen ? "true" : undefined}>
            {SYSTEMS[system]}
          </a>
        ))}
      </nav>
      <div class="copied">
        <pre data-copy tabindex={0} role="region" aria-label={`For ${SYSTEMS[chosen]}`}>
          {snippets[chosen]}
        </pre>
      </div>
    </>
  );
}

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
      An automation tells whom you want:{" "}
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

function stepRow({ id, title, status, doneAt }: Step, { where, csrf, role, now }: Shown): Html {
  const [shape, word] = DONE[status];
  const skip = (isSkipped: boolean) => (
    <ActionForm
      action={`${where.base}/onboarding/steps`}
      csrf={csrf}
      label={isSkipped ? "Skip" : "Take up again"}
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

function sampleCard(base: Path, sample: SampleData, { csrf, role }: Shown): Html {
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
        <p>{told} of sample data are in this project, each marked so.</p>
        {role === "viewer" ? null : (
          <Danger
            action={`${path}/delete`}
            csrf={csrf}
            label="Remove the sample data"
            loss={`${told} of sample data are deleted. Your own results stay.`}
          />
        )}
      </div>
    );
  return (
    <div class="card padded">
      <p>
        Two weeks of a made-up project, with a flaky test, a bug that was fixed and one that is open. It is marked as a
        sample, and goes without a trace.
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

const query = v.strictObject({ ci: v.optional(v.picklist(systems, "expected the name of a CI system")) });
const path = "/projects/:projectId/onboarding";

export const onboardingPages: Page[] = [
  page(path, { access: "viewer", query }, async (context) => {
    const { sql, project, team, role, csrf, now, publicUrl, query } = context;
    const [state, first, sample, keys] = await Promise.all([
      findOnboarding(sql, project.id, publicUrl),
      selectFirstBuild(sql, project.id),
      countSample(sql, project.id),
      selectLiveKeyIds(sql, project.id),
    ]);
    const base: Path = `/projects/${project.id}`;
    const shown = { where: { base, teamId: team.id }, csrf, role, now };
    const { steps, completed, dismissed } = state;
    const paste = (
      <>
        <h2 id="line">
          {first ? "The line to paste" : "Paste this line"}{" "}
          <small>with your own ids, from a folder with a report</small>
        </h2>
        {keyHint(project, keys.length > 0, role)} {lines(project, publicUrl)}{" "}
        {snippets(base, state, query.ci ?? "githubActions")}
      </>
    );
    const toDismiss = (
      <ActionForm
        action={`${base}/onboarding/dismiss`}
        csrf={csrf}
        label={dismissed ? "Point to this page again" : "I am done here"}
        fields={<input type="hidden" name="dismissed" value={String(!dismissed)} />}
      />
    );
    const next = (
      <>
        <div data-region="steps">
          <h2>
            {completed ? "All done" : "Step by step"} <small>told by what has happened in the project</small>
          </h2>
          <div class="card">
            <table>
              <caption class="visually-hidden">Steps to set up the project</caption>
              <tbody>{steps.map((step) => stepRow(step, shown))}</tbody>
            </table>
          </div>
        </div>
        {role === "viewer" ? null : (
          <div class="actions">
            {toDismiss}
            <span class="hint">
              {dismissed
                ? "The project does not point to this page any more."
                : "The project then does not point to this page any more; it stays here."}
            </span>
          </div>
        )}
      </>
    );
    const body = (
      <>
        <div data-region="arrival">{arrival(project.id, first, steps, now)}</div>
        {first ? [next, paste] : [paste, next]}
        <h2>
          Look around first <small>sample data</small>
        </h2>
        {sampleCard(base, sample, shown)}
      </>
    );
    const title = first ? `Your first report has arrived` : "Send your first report";
    return { title, body, section: "settings", ...(completed && first ? {} : { live: `${base}/live` }) };
  }),

  form(
    `${path}/steps`,
    { access: "member", fields: v.strictObject({ step: v.picklist(STEPS), skipped: booleanText }) },
    async (context) => {
      const { project, fields } = context;
      await write(context, "member", (sql) => skipStep(sql, project.id, fields.step, fields.skipped));
      return new SeeOther(`/projects/${project.id}/onboarding`);
    },
  ),

  form(`${path}/dismiss`, { access: "member", fields: v.strictObject({ dismissed: booleanText }) }, async (context) => {
    const { project } = context;
    const { dismissed } = context.fields;
    await write(context, "member", (sql) => changeOnboarding(sql, project.id, { dismissed }));
    return new SeeOther(dismissed ? `/projects/${project.id}` : `/projects/${project.id}/onboarding`);
  }),

  form(`${path}/sample-data`, { access: "member" }, async (context) => {
    const { project } = context;
    await write(
      context,
      "member",
      (sql) => addSampleData(sql, project.id),
      () => ({ action: "sample_data.added", subject: project.name, details: { projectId: project.id } }),
    );
    return new SeeOther(`/projects/${project.id}`);
  }),

  form(`${path}/sample-data/delete`, { access: "member" }, async (context) => {
    const { project } = context;
    await write(
      context,
      "member",
      (sql) => removeSampleData(sql, project.id),
      () => ({ action: "sample_data.removed", subject: project.name, details: { projectId: project.id } }),
    );
    return new SeeOther(`/projects/${project.id}/onboarding`);
  }),
];
