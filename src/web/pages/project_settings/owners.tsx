/** The ownership file of a project: what it says, where it came from, and how many tests it leaves without an owner. */

import type { Html } from "../../../http/html.ts";
import { readOwners } from "../../../operations/projects/owners.ts";
import type { OwnersFile } from "../../../schema/owners.ts";
import { counted, toCount } from "../../../wording/numbers.ts";
import { Ago, Commit } from "../../components/text.tsx";
import { page } from "../../site/page.ts";

/** Maximum number of lines that the page shows. */
const MAX_LINES = 2_000;
/** Maximum number of characters of a line that the page shows. */
const MAX_LINE = 300;

const SYNTAXES = { github: "GitHub: the last match decides", gitlab: "GitLab: the last match of each section decides" };

function origin({ path, branch, commit }: OwnersFile): Html {
  const parts = [
    path === null ? null : <code>{path}</code>,
    branch === null ? null : ["on ", <code>{branch}</code>],
    commit === null ? null : ["at ", <Commit hash={commit} />],
  ].filter((part) => part !== null);
  return parts.length === 0 ? <>the API</> : <>{parts.map((part, index) => [index === 0 ? "" : " ", part])}</>;
}

function fileLines(content: string): Html {
  const lines = content.split("\n");
  const shown = lines
    .slice(0, MAX_LINES)
    .map((line) => (line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)} …` : line));
  const width = String(shown.length).length;
  const text = shown.map((line, index) => `${String(index + 1).padStart(width)}  ${line}`).join("\n");
  return (
    <>
      <pre tabindex={0} role="group" aria-label="Ownership file">
        {text}
      </pre>
      {lines.length > MAX_LINES ? (
        <p class="hint">
          The first {toCount(MAX_LINES)} of {counted(lines.length, "line")}.
        </p>
      ) : null}
    </>
  );
}

const noFile = (
  <div class="card empty">
    <p>
      No ownership file yet. <code>assay upload</code> sends the CODEOWNERS file of the repository from the default
      branch, or store one with <code>PUT /api/v1/projects/…/owners</code>.
    </p>
  </div>
);

export const ownersPage = page(
  "/projects/:projectId/settings/owners",
  { access: "viewer" },
  async ({ sql, project, now }) => {
    const file = await readOwners(sql, project.id);
    const { content, syntax, storedAt, warnings, testCases, unowned } = file;
    const body = (
      <>
        <h1>Owners</h1>
        <div class="meta">
          <span>of {project.name}</span> <a href={`/projects/${project.id}/settings`}>Settings</a>
          <a href={`/projects/${project.id}/tests?q=is:unowned`}>
            {toCount(unowned)} of {counted(testCases, "test")} without an owner
          </a>
        </div>
        {content === null ? (
          noFile
        ) : (
          <>
            <div class="card padded">
              <dl class="facts">
                <dt>From</dt>
                <dd class="long">{origin(file)}</dd>
                <dt>Stored</dt>
                <dd>
                  <Ago at={storedAt!} now={now} />
                </dd>
                <dt>Syntax</dt>
                <dd>{SYNTAXES[syntax!]}</dd>
              </dl>
              <p class="hint">An owner that is set manually on a test takes precedence over the file.</p>
            </div>
            {warnings.length === 0 ? null : (
              <>
                <h2>
                  Warnings <small>these lines could not be read</small>
                </h2>
                <ul class="message">
                  {warnings.map((warning) => (
                    <li>{warning}</li>
                  ))}
                </ul>
              </>
            )}
            <h2>File</h2>
            {fileLines(content)}
          </>
        )}
      </>
    );
    return { title: "Owners", body, section: "settings" };
  },
);
