/** The members of a team: names, roles and invitations. */

import * as v from "valibot";
import type { Html, Path } from "../../http/html.ts";
import { changeRole, invite, removeMember, revokeInvitation } from "../../operations/people/members.ts";
import {
  type Invitation,
  type Member,
  newInvitation,
  role as roleSchema,
  ROLES,
  type Role,
} from "../../schema/accounts.ts";
import { selectInvitations, selectMembers } from "../../store/accounts.ts";
import { AgoCell, CardTable } from "../components/list.tsx";
import {
  ActionForm,
  Danger,
  FormError,
  Notice,
  noticeParameter,
  Form,
  Options,
  Field,
  Select,
} from "../components/form.tsx";
import { personOf, read, sent } from "../site/people_input.ts";
import { type Page, type View, page, type TeamContext } from "../site/page.ts";
import { counted } from "../../wording/numbers.ts";
import { Tag } from "../components/status.tsx";
import { ROLE_WORDS, withArticle } from "../components/people.tsx";
import { action } from "../site/action.ts";

const NOTICES = {
  role: "Role updated.",
  removed: "Member removed.",
  revoked: "Invitation revoked.",
} as const;

type FormState = {
  notice?: keyof typeof NOTICES | undefined;
  message?: string | undefined;
  link?: { url: string; role: Role };
};

function memberRow({ visitor, csrf, now, team, role: own }: TeamContext, member: Member): Html {
  const { accountId, email, name, role, lastSeenAt } = member;
  const isSelf = accountId === visitor.accountId;
  const base: Path = `/teams/${team.id}/members/${accountId}`;
  const change = (
    <Form to={`${base}/role`} csrf={csrf} kind="inline">
      <select name="role" aria-label={`Role of ${name}`}>
        <Options options={ROLES.map((one) => [one, one])} value={role} />
      </select>
      <button>
        Change<span class="visually-hidden"> the role of {name}</span>
      </button>
    </Form>
  );
  const loss = isSelf ? (
    <>
      You lose access to everything in {team.name}, and your open invitations are revoked. Only an owner can add you
      again.
    </>
  ) : (
    <>
      {name} loses access to everything in {team.name}, and their open invitations are revoked.
    </>
  );
  return (
    <tr>
      <td class="long">
        {name} {isSelf ? <Tag>you</Tag> : null}
        <span class="small soft">{email}</span>
      </td>
      <td>{own === "owner" ? change : role}</td>
      <AgoCell at={lastSeenAt} now={now} kind="wide" />
      <td>
        {own === "owner" || isSelf ? (
          <Danger action={`${base}/remove`} csrf={csrf} label={isSelf ? "Leave team" : `Remove ${name}`} loss={loss} />
        ) : null}
      </td>
    </tr>
  );
}

function invitationRow(
  { csrf, now, team }: TeamContext,
  { id, role, email, createdBy, createdAt, expiresAt }: Invitation,
): Html {
  const days = Math.max(0, Math.ceil((Date.parse(expiresAt) - now.getTime()) / 86_400_000));
  const who = email ?? "anyone with the link";
  return (
    <tr>
      <td>
        {who}
        <span class="small soft">
          as {withArticle(role)}, by {createdBy}
        </span>
      </td>
      <AgoCell at={createdAt} now={now} kind="wide" />
      <td>{days === 0 ? "today" : `in ${counted(days, "day")}`}</td>
      <td class="number">
        <ActionForm
          action={`/teams/${team.id}/invitations/${id}/revoke`}
          csrf={csrf}
          label="Revoke"
          fields={<span class="visually-hidden">Invitation for {who}: </span>}
        />
      </td>
    </tr>
  );
}

async function loadMembers({ sql, team, role }: TeamContext) {
  const members = await selectMembers(sql, team.id);
  return { members, invitations: role === "owner" ? await selectInvitations(sql, team.id) : [] };
}

type MembersData = Awaited<ReturnType<typeof loadMembers>>;

const InvitationForm = ({ csrf, team }: TeamContext): Html => (
  <>
    <h2 id="invite">
      Invite a member <small>the link works once, for 7 days; no e-mail is sent</small>
    </h2>
    <Form to={`/teams/${team.id}/invitations`} csrf={csrf} button="Create link" kind="fields">
      <Select
        label="Role"
        name="role"
        options={ROLES.map((role) => [role, `${role}: ${ROLE_WORDS[role]}`])}
        value="member"
      />
      <Field
        label="E-mail address (optional)"
        name="email"
        type="email"
        autocomplete="off"
        hint="If set, only this account can use the link."
      />
    </Form>
  </>
);

type InvitationsProperties = { context: TeamContext; invitations: MembersData["invitations"] };

const OpenInvitations = ({ context, invitations }: InvitationsProperties): Html | null =>
  invitations.length === 0 ? null : (
    <>
      <h2>Open invitations</h2>
      <CardTable
        caption="Open invitations, newest first"
        columns={["For", ["Created", "wide"], "Expires", ["Action", "hidden"]]}
        scrolls
      >
        {invitations.map((invitation) => invitationRow(context, invitation))}
      </CardTable>
    </>
  );

const freshLink = ({ url, role }: { url: string; role: Role }): Html => (
  <div class="message good" role="status">
    <p>Send this link to invite {withArticle(role)}. It is not shown again.</p>
    <pre data-copy>{url}</pre>
  </div>
);

async function showMembers(context: TeamContext, state: FormState): Promise<View> {
  return membersView(context, await loadMembers(context), state);
}

function membersView(context: TeamContext, { members, invitations }: MembersData, state: FormState): View {
  const { team, role } = context;
  const { notice, message, link } = state;
  const owners = members.filter((member) => member.role === "owner").length;
  const body = (
    <>
      <h1>
        {counted(members.length, "member")} of {team.name}
      </h1>
      <p class="meta">
        {counted(owners, "owner")}
        {owners === 1 ? ". The only owner cannot be removed." : ""}
      </p>
      <div class="spaced">
        <Notice notices={NOTICES} name={notice} />
        <FormError message={message} />
        {link ? freshLink(link) : null}
        <CardTable
          caption="Members by name"
          columns={["Member", "Role", ["Last active", "wide"], ["Action", "hidden"]]}
          kind="stacked"
          scrolls
        >
          {members.map((member) => memberRow(context, member))}
        </CardTable>
      </div>
      {role === "owner" ? (
        <>
          <InvitationForm {...context} />
          <OpenInvitations context={context} invitations={invitations} />
        </>
      ) : null}
    </>
  );
  return { title: `Members of ${team.name}`, body, section: "members", status: message === undefined ? 200 : 400 };
}

export const members: Page[] = [
  page(
    "/teams/:teamId/members",
    { access: "viewer", query: v.strictObject({ notice: noticeParameter(NOTICES) }) },
    (context) => showMembers(context, { notice: context.query.notice }),
  ),

  // The link is part of the response because it is not stored.
  action(
    "/teams/:teamId/invitations",
    { access: "owner", fields: v.strictObject({ role: sent, email: v.optional(sent) }) },
    {
      read: ({ fields }) => read(newInvitation, fields),
      run: (context, invited) => invite(context, personOf(context.visitor), context.team.id, invited),
      refused: (context, message) => showMembers(context, { message }),
      done: (context, { token }, { role }) =>
        showMembers(context, { link: { url: `${context.publicUrl}/invitations/${token}`, role } }),
    },
  ),

  action(
    "/teams/:teamId/invitations/:invitationId/revoke",
    { access: "owner" },
    {
      run: (context) =>
        revokeInvitation(context, personOf(context.visitor), context.team.id, context.params.invitationId),
      done: ({ team }) => `/teams/${team.id}/members?notice=revoked`,
    },
  ),

  action(
    "/teams/:teamId/members/:accountId/role",
    { access: "owner", fields: v.strictObject({ role: sent }) },
    {
      read: ({ params, fields }) => ({ ...params, role: read(roleSchema, fields.role) }),
      run: (context, change) => changeRole(context, personOf(context.visitor), change),
      refused: (context, message) => showMembers(context, { message }),
      done: ({ team }) => `/teams/${team.id}/members?notice=role`,
    },
  ),

  action(
    "/teams/:teamId/members/:accountId/remove",
    { access: "viewer" },
    {
      run: (context) => removeMember(context, personOf(context.visitor), context.params),
      refused: (context, message) => showMembers(context, { message }),
      done: ({ visitor, team, params }) =>
        params.accountId === visitor.accountId ? "/" : `/teams/${team.id}/members?notice=removed`,
    },
  ),
];
