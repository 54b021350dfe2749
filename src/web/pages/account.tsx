/** The visitor's own account: name, password, sessions and teams. */

import * as v from "valibot";
import type { Html } from "../../http/html.ts";
import { changePassword, renameAccount, revokeOtherSessions, revokeSession } from "../../operations/people/accounts.ts";
import { newPassword, personName, triedPassword } from "../../schema/accounts.ts";
import { selectAccount } from "../../store/accounts.ts";
import { selectSessions } from "../../store/sessions.ts";
import { AgoCell, CardTable } from "../components/list.tsx";
import { ActionForm, Field, FormError, Hidden, Notice, noticeParameter, Form } from "../components/form.tsx";
import { NameField, NewPasswordField, browserOf, withArticle } from "../components/people.tsx";
import { personOf, read, requirePasswords, sent, storesOf } from "../site/people_input.ts";
import { type Page, type PageContext, type View, page } from "../site/page.ts";
import { Ago } from "../components/text.tsx";
import { Tag } from "../components/status.tsx";
import { action } from "../site/action.ts";

const NOTICES = {
  name: "Name updated.",
  password: "Password updated. All other sessions were signed out.",
  session: "Session signed out.",
  sessions: "All other sessions were signed out.",
  linked: "Single sign-on is linked to your account.",
} as const;

type Context = Pick<PageContext, "sql" | "visitor" | "csrf" | "now" | "signIn">;

async function loadAccount({ sql, visitor }: Context) {
  const [account, sessions] = await Promise.all([
    selectAccount(sql, visitor.accountId),
    selectSessions(sql, visitor.accountId),
  ]);
  return { account, sessions };
}

type AccountData = Awaited<ReturnType<typeof loadAccount>>;

type FormState = { notice?: keyof typeof NOTICES | undefined; message?: string | undefined };

async function showAccount(context: Context, state: FormState): Promise<View> {
  return accountView(context, await loadAccount(context), state);
}

const PasswordForm = ({ visitor, csrf }: Context): Html => (
  <>
    <h2 id="password">Password</h2>
    <Form to="/account/password" csrf={csrf} button="Change password" buttonKind="" kind="fields">
      <Hidden name="username" value={visitor.email} />
      <Field name="current" label="Current password" type="password" autocomplete="current-password" />
      <NewPasswordField label="New password" />
      <p class="hint">All other sessions will be signed out.</p>
    </Form>
  </>
);

function SingleSignOn({ signIn, csrf, account }: Context & Pick<AccountData, "account">): Html | null {
  if (!signIn.oidc) return null;
  return (
    <>
      <h2>Single sign-on</h2>
      {account?.oidcIssuer ? (
        <p>Linked to {new URL(account.oidcIssuer).host}.</p>
      ) : (
        <>
          <p>{signIn.oidc.host} is not linked to this account.</p>
          <div class="actions">
            <ActionForm action="/account/link" csrf={csrf} label="Link account" />
          </div>
        </>
      )}
    </>
  );
}

type SessionProperties = { context: Context; session: AccountData["sessions"][number] };

function SessionRow({ context: { visitor, csrf, now }, session }: SessionProperties): Html {
  const { id, userAgent, address, createdAt, lastSeenAt } = session;
  return (
    <tr>
      <td>
        {browserOf(userAgent)} {id === visitor.sessionId ? <Tag>current</Tag> : null}{" "}
        <span class="small soft">{address ?? "unknown address"}</span>
      </td>
      <AgoCell at={createdAt} now={now} kind="wide" />
      <td>
        <Ago at={lastSeenAt} now={now} />
      </td>
      <td class="number">
        {id === visitor.sessionId ? null : (
          <ActionForm action={`/account/sessions/${id}/revoke`} csrf={csrf} label="Revoke" fields={label(userAgent)} />
        )}
      </td>
    </tr>
  );
}

const Sessions = ({ context, sessions }: { context: Context; sessions: AccountData["sessions"] }): Html => (
  <>
    <h2>Active sessions</h2>
    <CardTable
      caption="Active sessions, most recent first"
      columns={["Browser", ["Since", "wide"], "Last active", ["Action", "hidden"]]}
      scrolls
    >
      {sessions.map((session) => (
        <SessionRow context={context} session={session} />
      ))}
    </CardTable>
    {sessions.length > 1 ? (
      <div class="actions">
        <ActionForm action="/account/sessions/revoke" csrf={context.csrf} label="Sign out all other sessions" />
      </div>
    ) : null}
  </>
);

const Teams = ({ visitor }: Context): Html => (
  <>
    <h2>Teams</h2>
    {visitor.teams.length === 0 ? (
      <p>You are not a member of a team. Ask an owner for an invitation.</p>
    ) : (
      <ul class="plain">
        {visitor.teams.map(({ teamId, teamName, role }) => (
          <li>
            <a href={`/teams/${teamId}/members`}>{teamName}</a> <span class="soft">you are {withArticle(role)}</span>
          </li>
        ))}
      </ul>
    )}
  </>
);

function accountView(context: Context, { account, sessions }: AccountData, { notice, message }: FormState): View {
  const { visitor, csrf, signIn } = context;
  const hasPassword = account?.passwordHash !== null && signIn.policy.passwordLogin;
  const body = (
    <>
      <h1>Your account</h1>
      <p class="meta">{visitor.email}</p>
      <Notice notices={NOTICES} name={notice} />
      <FormError message={message} />
      <h2>Name</h2>
      <Form to="/account/name" csrf={csrf} button="Save" buttonKind="" kind="fields">
        <NameField value={visitor.name} />
      </Form>
      {hasPassword ? <PasswordForm {...context} /> : null}
      <SingleSignOn {...context} account={account} />
      <Sessions context={context} sessions={sessions} />
      <Teams {...context} />
    </>
  );
  return { title: "Your account", body, section: "account", status: message === undefined ? 200 : 400 };
}

/** Distinguishes buttons of the same label for screen readers. */
const label = (userAgent: string | null): Html => (
  <span class="visually-hidden">{`Session in ${browserOf(userAgent)}: `}</span>
);

export const account: Page[] = [
  page("/account", { access: "account", query: v.strictObject({ notice: noticeParameter(NOTICES) }) }, (context) =>
    showAccount(context, { notice: context.query.notice }),
  ),

  action(
    "/account/name",
    { access: "account", fields: v.strictObject({ name: sent }) },
    {
      read: ({ fields }) => read(personName, fields.name),
      run: (context, name) => renameAccount(context, personOf(context.visitor), name),
      refused: (context, message) => showAccount(context, { message }),
      done: () => "/account?notice=name",
    },
  ),

  action(
    "/account/password",
    { access: "account", fields: v.strictObject({ username: v.optional(sent), current: sent, password: sent }) },
    {
      read: (context) => {
        requirePasswords(context);
        const { current, password } = context.fields;
        return { current: read(triedPassword, current), password: read(newPassword, password) };
      },
      run: (context, { current, password }) => {
        const given = { current, password, address: context.address() };
        return changePassword(storesOf(context), context.signIn, personOf(context.visitor), given);
      },
      refused: (context, message) => showAccount(context, { message }),
      done: () => "/account?notice=password",
    },
  ),

  action(
    "/account/sessions/:sessionId/revoke",
    { access: "account" },
    {
      run: (context) => revokeSession(context, personOf(context.visitor), context.params.sessionId),
      done: () => "/account?notice=session",
    },
  ),

  action(
    "/account/sessions/revoke",
    { access: "account" },
    {
      run: (context) => revokeOtherSessions(context, personOf(context.visitor)),
      done: () => "/account?notice=sessions",
    },
  ),
];
