/** The forms of signing in and of the first account. */

import { OPERATOR_COMMAND } from "../../../executable.ts";
import type { Html, Path } from "../../../http/html.ts";
import { isSetupToken } from "../../../operations/people/accounts.ts";
import { selectAnyAccount } from "../../../store/accounts.ts";
import { Field, FormError, Hidden, Form } from "../../components/form.tsx";
import { EmailField, NameField, NewPasswordField, providerLink } from "../../components/people.tsx";
import { type PageContext, SeeOther, type View } from "../../site/page.ts";
import { storesOf } from "../../site/people_input.ts";

/** The part of the context that all views here use. */
export type Context = Pick<
  PageContext<never, never, never, never>,
  "sql" | "fast" | "begin" | "log" | "seal" | "sessions" | "signIn" | "publicUrl" | "request" | "address" | "csrf"
>;

export const signedIn = ({ sessions }: Pick<Context, "sessions">, token: string, to: Path) =>
  new SeeOther(to, { "Set-Cookie": sessions.keep(token) });

export const narrow = (title: string, body: Html, status = 200): View => ({ title, body, status, isNarrow: true });

type LogInFields = { email?: string; next: Path; message?: string | undefined };

export async function logInView(context: Context, { email, next, message }: LogInFields): Promise<View> {
  const { signIn, csrf, fast } = context;
  const isNew = !(await selectAnyAccount(fast));
  const password = (
    <Form to="/login" csrf={csrf} button="Sign in" kind="fields">
      <Hidden name="next" value={next === "/" ? undefined : next} />
      <EmailField value={email} />
      <Field name="password" label="Password" type="password" autocomplete="current-password" />
    </Form>
  );
  const body = (
    <>
      <h1>Sign in</h1>
      {isNew ? (
        <p class="message">
          There are no accounts yet. The server printed a setup link when it started; restart it to get a new link.
        </p>
      ) : null}
      <FormError message={message} />
      {signIn.policy.passwordLogin ? password : null}
      {providerLink(context, { next })}
      {signIn.policy.passwordLogin ? (
        <p class="hint">
          Forgot your password? An administrator of this server can reset it:{" "}
          <code>{`${OPERATOR_COMMAND} admin reset-password`}</code>
        </p>
      ) : null}
    </>
  );
  return narrow("Sign in", body, message === undefined ? 200 : 400);
}

type SetupFields = { token: string; name?: string; email?: string; message?: string | undefined };

export async function setupView(context: Context, { token, name, email, message }: SetupFields): Promise<View> {
  const { signIn, csrf } = context;
  if (!(await isSetupToken(storesOf(context), token)))
    return narrow(
      "This link has expired",
      <>
        <h1>This link has expired</h1>
        <p>A setup link works once, for 7 days.</p>
        <p>
          If there is an account, <a href="/login">Sign in</a>. Otherwise restart the server to get a new link.
        </p>
      </>,
      404,
    );
  const body = (
    <>
      <h1>Welcome to Assay</h1>
      <p>Create the first account. It owns every team and can invite others.</p>
      <FormError message={message} />
      {signIn.policy.passwordLogin ? (
        <Form to="/setup" csrf={csrf} button="Create account" kind="fields">
          <Hidden name="token" value={token} />
          <NameField value={name} />
          <EmailField value={email} />
          <NewPasswordField />
        </Form>
      ) : null}
      {providerLink(context, { setup: token })}
    </>
  );
  return narrow("Set up", body, message === undefined ? 200 : 400);
}
