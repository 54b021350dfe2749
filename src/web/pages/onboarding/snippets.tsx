/** The commands to paste: for a shell, and for each CI system. */

import type { Html, Path, Piece } from "../../../http/html.ts";
import { shellSnippet, type SnippetTarget, uploadUrl } from "../../../rules/snippets.ts";
import type { Onboarding, System } from "../../../schema/onboarding.ts";
import type { ProjectRef } from "../../site/page.ts";

/** The name of each CI system, and where it keeps the key. */
const SYSTEMS: Record<Exclude<System, "curl">, { name: string; key: string }> = {
  githubActions: { name: "GitHub Actions", key: "a secret of the repository" },
  gitlabCi: { name: "GitLab CI", key: "a masked variable of the project" },
  jenkins: { name: "Jenkins", key: "a credential of the kind “Secret text”" },
  circleci: { name: "CircleCI", key: "an environment variable of the project" },
  azurePipelines: { name: "Azure Pipelines", key: "a secret variable of the pipeline" },
  buildkite: { name: "Buildkite", key: "a secret of the agents" },
};
export const systems = Object.keys(SYSTEMS) as (keyof typeof SYSTEMS)[];

const HELLO = `<testsuite name="hello"><testcase name="works"/><testcase name="fails"><failure message="expected 1, got 2"/></testcase></testsuite>`;

const code = (text: string, label: string): Html => (
  <div class="copied">
    <pre data-copy tabindex={0} role="region" aria-label={label}>
      {text}
    </pre>
  </div>
);

export function lines({ snippets }: Onboarding, target: SnippetTarget): Html {
  return (
    <div class="card padded stack">
      <h3>From any shell, with curl</h3>
      {code(snippets.curl, "Upload with curl")}
      <p class="hint">
        report.xml is the file that your test runner writes. JUnit XML, Playwright, Jest, Vitest, Mocha, Go, TAP, TRX,
        NUnit and others are detected automatically.
      </p>
      <details class="bare">
        <summary>No report at hand? Send an example</summary>
        {code(
          `curl -H "Authorization: Bearer $ASSAY_KEY" -H "Accept: text/plain" -d '${HELLO}' "${uploadUrl(target)}?branch=hello&complete=true"`,
          "Upload an example",
        )}
      </details>
      <h3>With the command line, around the tests</h3>
      {code(shellSnippet(target), "Run the tests with assay upload")}
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

/** The action and the component install the command. */
const installed = (base: Path, name: string): Piece => (
  <>
    {" "}
    The {name} in Assay's repository installs the command. The jobs need no stored key if the project{" "}
    <a href={`${base}/settings/ci`}>trusts their repository</a>.
  </>
);

export function snippets(base: Path, { snippets }: Onboarding, chosen: keyof typeof SYSTEMS): Html {
  const { name, key } = SYSTEMS[chosen];
  return (
    <>
      <h2 id="ci">
        In your CI <small>runs the tests, uploads the report and exits with the exit code of the tests</small>
      </h2>
      <nav class="tabs" aria-label="CI system">
        {systems.map((system) => (
          <a href={`${base}/onboarding?ci=${system}#ci`} aria-current={system === chosen ? "true" : undefined}>
            {SYSTEMS[system].name}
          </a>
        ))}
      </nav>
      {code(snippets[chosen], `For ${name}`)}
      <p class="hint">
        <code>npm test</code> stands for your tests, which write report.xml. <code>ASSAY_KEY</code> is {key}.
        {chosen === "githubActions" ? installed(base, "GitHub action") : null}
        {chosen === "gitlabCi" ? installed(base, "CI/CD component") : null}
      </p>
    </>
  );
}
