/** Links and badges of a project: list, create and revoke. */

import * as v from "valibot";
import { type Html, escapeText } from "../../../http/html.ts";
import { createShare, revokeShare } from "../../../operations/people/shares.ts";
import { uuid } from "../../../schema/fields.ts";
import { newBadge } from "../../../schema/shares.ts";
import type { Badge } from "../../../wording/badge.ts";
import { shareName, shareSection } from "../../components/share_parts.tsx";
import { SeeOther, type View, form, page } from "../../site/page.ts";
import { executionPath } from "../../site/paths.ts";
import { readBadge } from "./badge.tsx";

const linkToShares = (projectId: string): Html => (
  <p class="actions">
    <a class="button" href={`/projects/${projectId}/shares`}>
      All links and badges
    </a>
  </p>
);

function linkCreated(projectId: string, name: Html, url: string, hint: string, back: Html): View {
  const body = (
    <>
      <h1>Link created</h1>
      <div class="message good" role="status">
        <p>
          <b>Copy it now. It is not shown again.</b> {name}
        </p>
      </div>
      <div class="copied">
        <pre data-copy>{url}</pre>
      </div>
      <div class="prose">
        <p>{hint}</p>
        <p>Anyone with the link can view it without signing in, until it is revoked.</p>
      </div>
      <p class="actions">
        {back}
        <a class="button" href={`/projects/${projectId}/shares`}>
          All links and badges
        </a>
      </p>
    </>
  );
  return { title: "Link created", body, section: "settings" };
}

/** Escapes brackets and other characters of Markdown. */
const inBrackets = (text: string): string => text.replace(/[[\]\\`*_<>\n]/g, " ").trim();

function badgeCreated(
  { projectId, publicUrl }: { projectId: string; publicUrl: string },
  { name, alt, badge, token }: { name: Html; alt: string; badge: Badge; token: string },
): View {
  const image = `${publicUrl}/badge/${token}.svg`;
  const target = `${publicUrl}/projects/${projectId}`;
  const text = inBrackets(alt);
  const body = (
    <>
      <h1>Badge created</h1>
      <div class="message good" role="status">
        <p>
          <b>Copy it now. The URL is not shown again.</b> {name}.
        </p>
      </div>
      <p>
        <img src={`/badge/${token}.svg`} alt={badge.title} height="20" />
      </p>
      <h2>Markdown</h2>
      <div class="copied">
        <pre data-copy>{`[![${text}](${image})](${target})`}</pre>
      </div>
      <h2>HTML</h2>
      <div class="copied">
        <pre data-copy>{`<a href="${target}"><img src="${image}" alt="${escapeText(text)}" height="20"></a>`}</pre>
      </div>
      <h2>URL</h2>
      <div class="copied">
        <pre data-copy>{image}</pre>
      </div>
      <p class="hint">Anyone can see the badge. Its link leads to pages for members of the team.</p>
      {linkToShares(projectId)}
    </>
  );
  return { title: "Badge created", body, section: "settings" };
}

const EXECUTION_LINK_HINT =
  "Anyone with the link can see the outcome, counts, tasks and failures with messages and stacks. Logs, test output, variables, runners, machines, names of people and other executions are not shown.";

const PROJECT_LINK_HINT =
  "Anyone with the link can see the state of the default branch, its trend and the outcomes of the newest executions, but no details.";

export const sharesPage = page(
  "/projects/:projectId/shares",
  { access: "viewer", query: v.strictObject({ cursor: v.optional(uuid) }) },
  async (context) => {
    const { sql, csrf, role, project, now, query } = context;
    const body = (
      <>
        <h1>Sharing</h1>
        <div class="meta">
          <span>Links and badges that work without signing in. To share an execution, open its page.</span>
        </div>
        {await shareSection({ sql, csrf, role, project, now }, query.cursor)}
      </>
    );
    return { title: "Sharing", body, section: "settings" };
  },
);

export const shareExecutionForm = form(
  "/projects/:projectId/executions/:executionId/share",
  { access: "member" },
  async (context) => {
    const { begin, visitor, project, params, publicUrl } = context;
    const target = { kind: "execution", executionId: params.executionId } as const;
    const { share, token } = await createShare({ begin }, visitor, project, target);
    const name = shareName(project.id, share, project.defaultBranch);
    const back = (
      <a class="button main" href={executionPath(project.id, params.executionId)}>
        Back to the execution
      </a>
    );
    return linkCreated(project.id, name, `${publicUrl}/shared/${token}`, EXECUTION_LINK_HINT, back);
  },
);

export const shareProjectForm = form(
  "/projects/:projectId/shares",
  { access: "member" },
  async ({ begin, visitor, project, publicUrl }) => {
    const { share, token } = await createShare({ begin }, visitor, project, { kind: "project" });
    const name = shareName(project.id, share, project.defaultBranch);
    const back = (
      <a class="button main" href={`/projects/${project.id}`}>
        Back to the project
      </a>
    );
    return linkCreated(project.id, name, `${publicUrl}/shared/${token}`, PROJECT_LINK_HINT, back);
  },
);

export const badgeForm = form(
  "/projects/:projectId/badges",
  { access: "member", fields: newBadge },
  async (context) => {
    const { begin, fast, visitor, project, publicUrl, fields } = context;
    const { shows, branch = null } = fields;
    const { share, token } = await createShare({ begin }, visitor, project, { kind: "badge", shows, branch });
    const { id: projectId, name: projectName, defaultBranch } = project;
    const badge = await readBadge(fast, { projectId, projectName, defaultBranch, executionId: null, branch, shows });
    const alt = `${shows === "tests" ? "Tests" : "Status"} on ${branch ?? defaultBranch}`;
    const name = shareName(projectId, share, defaultBranch);
    return badgeCreated({ projectId, publicUrl }, { name, alt, badge, token });
  },
);

export const revokeForm = form(
  "/projects/:projectId/shares/:shareId/revoke",
  { access: "member" },
  async ({ begin, visitor, project, params }) => {
    await revokeShare({ begin }, visitor, project, params.shareId);
    return new SeeOther(`/projects/${project.id}/shares`);
  },
);
