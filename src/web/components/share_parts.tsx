/** Sharing on other pages: the button that creates a link to an execution, and the list of links and badges. */

import { Form, Field, Select } from "./form.tsx";
import { AgoCell, Empty, Pager, CardTable } from "./list.tsx";
import type { Html } from "../../http/html.ts";
import type { Role } from "../../schema/accounts.ts";
import type { Share } from "../../schema/shares.ts";
import type { Sql } from "../../database/connect.ts";
import { selectShares } from "../../store/shares.ts";
import { executionPath } from "../site/paths.ts";
import { executionName } from "../../wording/execution_name.ts";
import { ActionForm, Danger } from "../components/form.tsx";

const BADGES = [
  ["status", "Status: passed or failed"],
  ["tests", "Tests: 1,204 passed"],
] as const;

type ShareContext = { csrf: string; role: Role; project: { id: string; defaultBranch: string } };

/** Shows the button on the page of an execution. Returns null for viewers. */
export const shareForm = ({
  csrf,
  role,
  project,
  params: { executionId },
}: Pick<ShareContext, "csrf" | "role"> & {
  project: { id: string };
  params: { executionId: string };
}): Html | null =>
  role === "viewer" ? null : (
    <ActionForm action={`${executionPath(project.id, executionId)}/share`} csrf={csrf} label="Share link" />
  );

/** Names what a link or a badge shows. */
export function shareName(
  projectId: string,
  share: Pick<
    Share,
    "kind" | "executionId" | "executionKey" | "executionNumber" | "executionBranch" | "branch" | "shows"
  >,
  defaultBranch: string,
): Html {
  const { kind, executionId, executionKey, executionNumber, executionBranch, branch, shows } = share;
  if (kind === "project") return <>The project: state, trend, newest executions</>;
  if (kind === "badge") {
    const branchName = (
      <>
        <code>{branch ?? defaultBranch}</code>
        {branch === null ? ", the default branch" : null}
      </>
    );
    return (
      <>
        Badge: {shows === "tests" ? "number of tests" : "status"} on {branchName}
      </>
    );
  }
  const name = executionName({ key: executionKey, number: executionNumber!, branch: executionBranch });
  return (
    <>
      Execution <a href={executionPath(projectId, executionId!)}>{name}</a>
    </>
  );
}

const MAX_SHARES = 20;

const REVOKE_EFFECTS = {
  badge: "Wherever it is embedded, the badge turns gray and shows “unknown”.",
  project: "Anyone who opens the link sees a “not found” page.",
  execution: "Anyone who opens the link sees a “not found” page.",
};

function table({ csrf, role, project }: ShareContext, rows: readonly Share[], now: Date): Html {
  const { id, defaultBranch } = project;
  if (rows.length === 0) return <Empty>No links or badges yet.</Empty>;
  const revoke = (share: Share) =>
    role === "viewer" ? null : (
      <Danger
        action={`/projects/${id}/shares/${share.id}/revoke`}
        csrf={csrf}
        label="Revoke"
        loss={REVOKE_EFFECTS[share.kind]}
      />
    );
  return (
    <CardTable caption="Links and badges, newest first" columns={["Shows", ["By", "wide"], ["Created", "number"]]}>
      {rows.map((share) => (
        <tr>
          <td class="long">
            {shareName(id, share, defaultBranch)} {revoke(share)}
          </td>
          <td class="long wide">{share.createdBy ?? <span class="soft">a former member</span>}</td>
          <AgoCell at={share.createdAt} now={now} />
        </tr>
      ))}
    </CardTable>
  );
}

function makers({ csrf, role, project }: ShareContext): Html | null {
  if (role === "viewer") return <p class="hint">Members of the team can create and revoke links.</p>;
  const { id, defaultBranch } = project;
  return (
    <div class="columns">
      <Form to={`/projects/${id}/shares`} csrf={csrf} button="Create link" buttonKind="">
        <h3>Link to the project</h3>
        <p>
          Anyone with the link can see the state of <code>{defaultBranch}</code>, its trend and the latest executions,
          without signing in.
        </p>
      </Form>
      <Form to={`/projects/${id}/badges`} csrf={csrf} button="Create badge" buttonKind="">
        <h3>Badge</h3>
        <Select label="What it shows" name="shows" options={BADGES} />
        <Field label="Branch" name="branch" max={500} placeholder={defaultBranch} isCode autocomplete="off" />
      </Form>
    </div>
  );
}

/** The section of the project's settings, with an h2. `before`: additional content of the page of links and badges. */
export async function shareSection(
  { sql, now, ...context }: ShareContext & { sql: Sql; now: Date },
  before?: string,
): Promise<Html> {
  const { id } = context.project;
  const found = await selectShares(sql, id, { limit: MAX_SHARES, before });
  const rows = found.slice(0, MAX_SHARES);
  const next = found.length > MAX_SHARES ? rows.at(-1)!.id : undefined;
  return (
    <>
      <h2 id="sharing">
        Links and badges <small>anyone with the URL can view them; the URL is shown once</small>
      </h2>
      {table(context, rows, now)}
      <Pager path={`/projects/${id}/shares`} query={{ cursor: before }} cursor={next} />
      {makers(context)}
    </>
  );
}
