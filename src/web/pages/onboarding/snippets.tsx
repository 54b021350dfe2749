/** The commands to paste for each CI system. */

import type { Html, Path } from "../../../http/html.ts";
import { uploadUrl } from "../../../operations/projects/onboarding.ts";
import { quoted } from "../../../rules/shell.ts";
import type { Onboarding, System } from "../../../schema/onboarding.ts";
import type { ProjectRef } from "../../site/page.ts";

const SYSTEMS: Record<System, string> = {
  githubActions: "GitHub Actions",
  gitlabCi: "GitLab CI",
  jenkins: "Jenkins",
  circleci: "CircleCI",
  azurePipelines: "Azure Pipelines",
  buildkite: "Buildkite",
  curl: "Any other",
};

export const systems = Object.keys(SYSTEMS) as System[];

/** Quotes text for double quotes of a shell, where "!" expands the history. */
const inAddress = (text: string): string => encodeURIComponent(text).replaceAll("!", "%21");

const HELLO = `<testsuite name="hello"><testcase name="works"/><testcase name="fails"><failure message="expected 1, got 2"/></testcase></testsuite>`;

export function lines({ id, defaultBranch }: ProjectRef, publicUrl: string): Html {
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
        report.xml is the file that your test runner writes. JUnit XML, Playwright, Jest, Vitest, Mocha, Go, TAP, TRX,
        NUnit and others are detected automatically.
      </p>
      <details class="bare">
        <summary>No report at hand? Send an example</summary>
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
        It detects commit, branch, build and shard. A run without a report is a failure. With <code>--complete</code>{" "}
        the execution ends at once; use it for the only or the last job of a build. In a checkout of Assay,{" "}
        <code>bun tools/executable.ts --client --outfile assay</code> builds the command as a single file.
      </p>
    </div>
  );
}

export function keyHint({ id }: ProjectRef, hasKey: boolean, role: string): Html {
  const where = (
    <>
      <code>ASSAY_KEY</code> is the project's key. Store it as a secret in CI.
    </>
  );
  if (role === "viewer")
    return (
      <p class="hint">
        {where} Members of the team can generate one{hasKey ? "; the current key was shown once" : ""}.
      </p>
    );
  const link = (text: string, kind: string) => (
    <a class={kind} href={`/projects/${id}/settings/key`}>
      {text}
    </a>
  );
  return hasKey ? (
    <p class="hint">
      {where} The key was shown once, when it was created. Lost it? {link("Generate a new one", "")}; the old key stops
      working.
    </p>
  ) : (
    <p class="message">
      {where} The project has no key yet. {link("Generate key", "button main")}
    </p>
  );
}

export function snippets(base: Path, { snippets }: Onboarding, chosen: System): Html {
  return (
    <>
      <h2 id="ci">
        In your CI <small>runs the tests, uploads the report and exits with the exit code of the tests</small>
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
      {chosen !== "githubActions" && chosen !== "gitlabCi" ? null : (
        <p class="hint">
          With <code>assay upload</code> the jobs need no stored key if the project{" "}
          <a href={`${base}/settings/ci`}>trusts their repository</a>.
        </p>
      )}
    </>
  );
}
