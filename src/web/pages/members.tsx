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
import { ActionForm, Csrf, Danger, FormError, Notice, noticeParameter } from "../components/form.tsx";
import { personOf, read, refusalOf, sent } from "../site/people_input.ts";
import { type Page, type PageContext, SeeOther, type View, form, page } from "../site/page.ts";
import { counted } from "../../wording/numbers.ts";
import { Tag } from "../components/status.tsx";
import { ROLE_WORDS, withArticle } from "../components/people.ts";

const NOTICES = {
  role: "Role updated.",
  removed: "Member removed.",
  revoked: "Invitation revoked.",
} as const;

type Context = Pick<PageContext, "sql" | "visitor" | "csrf" | "now" | "publicUrl"> & {
  team: { id: string; name: string };
  role: Role;
};
type FormState = {
  notice?: keyof typeof NOTICES | undefined;
  message?: string | undefined;
  link?: { url: string; role: Role };
};

const options = (chosen: Role): Html[] =>
  ROLES.map((role) => (
    <option value={role} selected={role === chosen}>
      {role}
    </option>
  ));

function memberRow({ visitor, csrf, now, team, role: own }: Context, member: Member): Html {
  const { accountId, email, name, role, lastSeenAt } = member;
  const isSelf = accountId === visitor.accountId;
  const base: Path = `/teams/${team.id}/members/${accountId}`;
  const change = (
    <form class="inline" method="post" action={`${base}/role`}>
      <Csrf token={csrf} />
      <select name="role" aria-label={`Role of ${name}`}>
        {options(role)}
      </select>
      <button>
        Change<span class="visually-hidden"> the role of {name}</span>
      </button>
    </form>
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
  { csrf, now, team }: Context,
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

async function loadMembers({ sql, team, role }: Context) {
  const members = await selectMembers(sql, team.id);
  return { members, invitations: role === "owner" ? await selectInvitations(sql, team.id) : [] };
}

type MembersData = Awaited<ReturnType<typeof loadMembers>>;

const InvitationForm = ({ csrf, team }: Context): Html => (
  <>
    <h2 id="invite">
      Invite a member <small>the link works once, for 7 days; no e-mail is sent</small>
    </h2>
    <form class="fields" method="post" action={`/teams/${team.id}/invitations`}>
      <Csrf token={csrf} />
      <label>
        <span>Role</span>
        <select name="role">
          {ROLES.map((role) => (
            <option value={role} selected={role === "member"}>
              {role}: {ROLE_WORDS[role]}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>
          E-mail address <span class="soft">(optional)</span>
        </span>
        <input type="email" name="email" autocomplete="off" aria-describedby="hint-invite" />
        <span class="hint" id="hint-invite">
          If set, only this account can use the link.
        </span>
      </label>
      <div>
        <button class="main">Create link</button>
      </div>
    </form>
  </>
);

type InvitationsProperties = { context: Context; invitations: MembersData["invitations"] };

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

async function showMembers(context: Context, state: FormState): Promise<View> {
  return membersView(context, await loadMembers(context), state);
}

function membersView(context: Context, { members, invitations }: MembersData, state: FormState): View {
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
  form(
    "/teams/:teamId/invitations",
    { access: "owner", fields: v.strictObject({ role: sent, email: v.optional(sent) }) },
    async (context) => {
      const { visitor, team, fields, publicUrl } = context;
      let link: FormState["link"];
      const message = await refusalOf(async () => {
        const invited = read(newInvitation, fields);
        const { token } = await invite(context, personOf(visitor), team.id, invited);
        link = { url: `${publicUrl}/invitations/${token}`, role: invited.role };
      });
      return await showMembers(context, link ? { link } : { message });
    },
  ),

  form("/teams/:teamId/invitations/:invitationId/revoke", { access: "owner" }, async (context) => {
    const { visitor, team, params } = context;
    await revokeInvitation(context, personOf(visitor), team.id, params.invitationId);
    return new SeeOther(`/teams/${team.id}/members?notice=revoked`);
  }),

  form(
    "/teams/:teamId/members/:accountId/role",
    { access: "owner", fields: v.strictObject({ role: sent }) },
    async (context) => {
      const { visitor, team, params, fields } = context;
      const message = await refusalOf(async () => {
        const change = { teamId: team.id, accountId: params.accountId, role: read(roleSchema, fields.role) };
        await changeRole(context, personOf(visitor), change);
      });
      return message === undefined
        ? new SeeOther(`/teams/${team.id}/members?notice=role`)
        : await showMembers(context, { message });
    },
  ),

  form("/teams/:teamId/members/:accountId/remove", { access: "viewer" }, async (context) => {
    const { visitor, team, params } = context;
    const message = await refusalOf(() =>
      removeMember(context, personOf(visitor), { teamId: team.id, accountId: params.accountId }),
    );
    if (message !== undefined) return await showMembers(context, { message });
    return new SeeOther(params.accountId === visitor.accountId ? "/" : `/teams/${team.id}/members?notice=removed`);
  }),
];
