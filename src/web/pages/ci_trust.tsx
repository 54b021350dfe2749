/** The trust rules of a project: which CI jobs get a key for the id token of their CI system. */

import * as v from "valibot";
import type { Html, Path } from "../../http/html.ts";
import { check } from "../../http/input.ts";
import { addTrustRule, nameRepository, removeTrustRule } from "../../operations/people/trust_rules.ts";
import {
  CI_KEY_MINUTES,
  DEFAULT_ISSUERS,
  type ListedTrustRule,
  newTrustRule,
  type TrustKind,
} from "../../schema/trust_rules.ts";
import { selectTrustRules } from "../../store/trust_rules.ts";
import { AgoCell, Empty, CardTable } from "../components/list.tsx";
import { type Choice, Danger, FormError, Select, Notice, noticeParameter, Form, field } from "../components/form.tsx";
import { Tag } from "../components/status.tsx";
import { splitList, action } from "../site/action.ts";
import { page, type Page, type View, type ProjectContext } from "../site/page.ts";

const KINDS: Record<TrustKind, string> = { github: "GitHub Actions", gitlab: "GitLab CI" };
const NOTICES = {
  added: "Trust rule added.",
  removed: "Trust rule removed, and the keys of its jobs revoked.",
} as const;

const fields = v.strictObject({
  kind: v.picklist(["github", "gitlab"]),
  repositoryId: v.string(),
  ownerId: v.string(),
  repository: v.string(),
  events: v.string(),
  refs: v.string(),
  issuer: v.string(),
  keys: v.string(),
});
type Fields = v.InferOutput<typeof fields>;

const EMPTY: Fields = {
  ...{ kind: "github", repositoryId: "", ownerId: "", repository: "" },
  ...{ events: "", refs: "", issuer: "", keys: "" },
};

function conditions({ issuer, kind, events, refs, keys }: ListedTrustRule): Html {
  return (
    <>
      {events.length === 0 ? "every event" : events.join(", ")} on{" "}
      {refs.length === 0 ? "every ref" : <code>{refs.join(" ")}</code>}
      {issuer === DEFAULT_ISSUERS[kind] ? null : (
        <>
          {" "}
          from <code>{issuer}</code>
        </>
      )}
      {keys === null ? null : <Tag>stored keys</Tag>}
    </>
  );
}

function table({ project, role, csrf, now }: ProjectContext, rules: readonly ListedTrustRule[]): Html {
  if (rules.length === 0) return <Empty>No trust rules yet. CI jobs need a stored key.</Empty>;
  return (
    <CardTable
      caption="Trust rules of the project"
      columns={["Repository", "Jobs", ["Last used", "wide"], ["Remove", "hidden"]]}
    >
      {rules.map((rule) => (
        <tr>
          <td class="long">
            <b>{nameRepository(rule)}</b>{" "}
            <span class="soft small">
              {KINDS[rule.kind]} {rule.repositoryId}
              {rule.ownerId === null ? null : ` of owner ${rule.ownerId}`}
            </span>
          </td>
          <td class="long">{conditions(rule)}</td>
          <AgoCell at={rule.lastUsedAt} now={now} kind="soft wide" />
          <td class="number">
            {role !== "owner" ? null : (
              <Danger
                action={`/projects/${project.id}/settings/ci/${rule.id}/remove`}
                csrf={csrf}
                label={["Remove", <span class="visually-hidden"> {nameRepository(rule)}</span>]}
                loss="Its jobs can no longer get keys, and keys of running jobs are revoked immediately."
              />
            )}
          </td>
        </tr>
      ))}
    </CardTable>
  );
}

const kindOptions: readonly Choice[] = Object.entries(KINDS);

function ruleForm(path: Path, csrf: string, values: Fields): Html {
  return (
    <Form to={path} csrf={csrf} button="Add trust rule">
      <Select label="CI system" name="kind" value={values.kind} options={kindOptions} />
      {field(values, "repositoryId", "Repository id", {
        type: "number",
        required: true,
        max: 19,
        hint: (
          <>
            The numeric id, which stays the same when a repository is renamed. GitHub: the first number that{" "}
            <code>gh api repos/OWNER/NAME --jq '.id, .owner.id'</code> prints. GitLab: the project ID, in the menu of
            the project page.
          </>
        ),
      })}
      {field(values, "ownerId", "Owner id (GitHub)", {
        type: "number",
        max: 19,
        hint: "The second number. The rule stops matching if the repository is transferred to another owner.",
      })}
      {field(values, "repository", "Repository name", {
        max: 200,
        placeholder: "acme/shop",
        hint: "Shown in the list above. It is not compared with the token.",
      })}
      {field(values, "events", "Events", {
        max: 2_000,
        isCode: true,
        placeholder: "push, pull_request",
        hint: "Leave empty to allow all events. GitHub: push, pull_request, schedule and others. GitLab: pipeline sources such as push, merge_request_event and schedule.",
      })}
      {field(values, "refs", "Refs", {
        max: 4_000,
        isCode: true,
        placeholder: "refs/heads/main, refs/heads/release/*",
        hint: "Leave empty to allow all refs. * matches any text. Pull requests on GitHub have refs such as refs/pull/7/merge.",
      })}
      {field(values, "issuer", "Issuer", {
        max: 500,
        isCode: true,
        placeholder: DEFAULT_ISSUERS.github,
        hint: (
          <>
            Leave empty for {DEFAULT_ISSUERS.github} or {DEFAULT_ISSUERS.gitlab}. For a self-hosted server, the exact
            value of the claim <code>iss</code> in its tokens.
          </>
        ),
      })}
      {field(values, "keys", "Keys of the issuer", {
        type: "area",
        max: 65_536,
        isCode: true,
        hint: "The JSON Web Key Set of the issuer. Only needed if this server cannot reach the issuer. Replace the rule when the issuer changes its keys.",
      })}
    </Form>
  );
}

type FormState = { notice?: keyof typeof NOTICES | undefined; problem?: string; values?: Fields };

async function trustPage(view: ProjectContext, { notice, problem, values = EMPTY }: FormState): Promise<View> {
  const { fast, project, role, csrf } = view;
  const rules = await selectTrustRules(fast, project.id);
  const path: Path = `/projects/${project.id}/settings/ci`;
  const body = (
    <>
      <Notice notices={NOTICES} name={notice} />
      <h1>CI without a stored key</h1>
      <div class="meta">
        <span>of {project.name}</span>
        <a href={`/projects/${project.id}/settings`}>Settings</a>
        <a href={`/projects/${project.id}/settings/keys`}>Named keys</a>
      </div>
      <p class="prose">
        GitHub Actions and GitLab sign an identity token for each job. Jobs of the repositories below can exchange it
        for a key that reads and uploads and expires after {CI_KEY_MINUTES} minutes. <code>assay upload</code> does this
        automatically if <code>ASSAY_KEY</code> is not set.
      </p>
      {table(view, rules)}
      {role !== "owner" ? (
        <p class="hint">Owners of the team can change this.</p>
      ) : (
        <>
          <h2 id="new">New trust rule</h2>
          <FormError message={problem} />
          {ruleForm(path, csrf, values)}
        </>
      )}
    </>
  );
  const status = problem === undefined ? {} : { status: 400 };
  return { title: "CI without a stored key", body, section: "settings", ...status };
}

const unlessEmpty = (name: string, value: string): Record<string, string> =>
  value.trim() === "" ? {} : { [name]: value.trim() };

const toNewRule = ({ kind, repositoryId, issuer, events, refs, ...rest }: Fields) =>
  check(newTrustRule, {
    kind,
    repositoryId: repositoryId.trim(),
    issuer: issuer.trim() || DEFAULT_ISSUERS[kind],
    events: splitList(events),
    refs: splitList(refs),
    ...unlessEmpty("repository", rest.repository),
    ...unlessEmpty("ownerId", kind === "github" ? rest.ownerId : ""),
    ...unlessEmpty("keys", rest.keys),
  });

export const ciTrust: Page[] = [
  page(
    "/projects/:projectId/settings/ci",
    { access: "viewer", query: v.strictObject({ notice: noticeParameter(NOTICES) }) },
    async (context) => await trustPage(context, context.query),
  ),

  action(
    "/projects/:projectId/settings/ci",
    { access: "owner", fields },
    {
      read: ({ fields }) => toNewRule(fields),
      act: (sql, { project }, rule, by) => addTrustRule(sql, project.id, rule, by),
      refused: (context, problem) => trustPage(context, { problem, values: context.fields }),
      done: ({ project }) => `/projects/${project.id}/settings/ci?notice=added`,
    },
  ),

  action(
    "/projects/:projectId/settings/ci/:trustRuleId/remove",
    { access: "owner" },
    {
      act: (sql, { project, params }, _, by) => removeTrustRule(sql, project.id, params.trustRuleId, by),
      done: ({ project }) => `/projects/${project.id}/settings/ci?notice=removed`,
    },
  ),
];
