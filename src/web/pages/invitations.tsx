/** The page of an invitation: join a team with a new account or with the account that is signed in. */

import * as v from "valibot";
import type { Html, Path } from "../../http/html.ts";
import { acceptAsNew, acceptAsSelf, findInvitation } from "../../operations/people/members.ts";
import { newAccount } from "../../schema/accounts.ts";
import { FormError, Hidden, Form } from "../components/form.tsx";
import { clientOf, personOf, read, requirePasswords, sent, storesOf } from "../site/people_input.ts";
import { EmailField, NameField, NewPasswordField, providerLink, withArticle } from "../components/people.tsx";
import { type Page, type PageContext, SeeOther, type View, page } from "../site/page.ts";
import { action } from "../site/action.ts";

type Context = Pick<PageContext, "sql" | "fast" | "begin" | "signIn" | "csrf"> & {
  visitor: PageContext["visitor"] | undefined;
};
type Fields = { token: string; name?: string; email?: string; message?: string | undefined };

async function invitationView(context: Context, { token, name, email, message }: Fields): Promise<View> {
  const { visitor, signIn, csrf } = context;
  const invitation = await findInvitation(storesOf(context), token);
  if (!invitation)
    return {
      title: "This invitation has expired",
      body: (
        <>
          <h1>This invitation has expired</h1>
          <p>It was used or revoked, or is older than 7 days. Ask for a new one.</p>
          <p>
            <a class="button" href="/">
              Go to your projects
            </a>
          </p>
        </>
      ),
      status: 404,
      isNarrow: true,
    };
  const { teamName, role } = invitation;
  const join = (label: string, fields: Html | null) => (
    <Form to="/invitations" csrf={csrf} button={label} kind="fields">
      <Hidden name="token" value={token} />
      {fields}
    </Form>
  );
  const here: Path = `/invitations/${token}`;
  const asNew = (
    <>
      {signIn.policy.passwordLogin
        ? join(
            `Join ${teamName}`,
            <>
              <NameField value={name} />
              {invitation.email === null ? (
                <EmailField value={email} />
              ) : (
                <>
                  <Hidden name="email" value={invitation.email} />
                  <p>
                    New account: <b>{invitation.email}</b>.
                  </p>
                </>
              )}
              <NewPasswordField />
            </>,
          )
        : null}
      {providerLink({ signIn }, { invitation: token })}
      <p class="hint">
        Already have an account? <a href={`/login?${new URLSearchParams({ next: here }).toString()}`}>Sign in</a>to join
        with it.
      </p>
    </>
  );
  const body = (
    <>
      <h1>Join {teamName}</h1>
      <p>
        You are invited as {withArticle(role)}
        {invitation.email === null ? "" : `, for ${invitation.email}`}.
      </p>
      <FormError message={message} />
      {visitor ? join(`Join as ${visitor.email}`, null) : asNew}
    </>
  );
  return { title: `Join ${teamName}`, body, status: message === undefined ? 200 : 400, isNarrow: true };
}

export const invitations: Page[] = [
  page("/invitations/:token", { access: "public" }, (context) =>
    invitationView(context, { token: context.params.token }),
  ),

  // The token is in a field, because the paths of forms are logged.
  action(
    "/invitations",
    {
      access: "public",
      fields: v.strictObject({
        token: sent,
        name: v.optional(sent, ""),
        email: v.optional(sent, ""),
        password: v.optional(sent, ""),
      }),
    },
    {
      run: async (context) => {
        const { visitor, signIn } = context;
        const { token, ...given } = context.fields;
        if (visitor) return void (await acceptAsSelf(context, personOf(visitor), token));
        requirePasswords(context);
        const account = read(newAccount, given);
        return await acceptAsNew(storesOf(context), signIn, { token, account, client: clientOf(context) });
      },
      refused: (context, message) => {
        const { token, name, email } = context.fields;
        return invitationView(context, { token, name, email, message });
      },
      done: ({ sessions }, joined) => new SeeOther("/", joined && { "Set-Cookie": sessions.keep(joined.token) }),
    },
  ),
];
