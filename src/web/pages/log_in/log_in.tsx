/** Signing in and out, and the first account. */

import * as v from "valibot";
import { toOwnPath } from "../../../http/own_path.ts";
import { logIn as openSession, logOut, setUp } from "../../../operations/people/accounts.ts";
import { email, newAccount, triedPassword } from "../../../schema/accounts.ts";
import { type Page, SeeOther, form, page } from "../../site/page.ts";
import { clientOf, read, refusalOf, requirePasswords, sent, storesOf, tokenOf } from "../../site/people_input.ts";
import { linkForm, linkPage, oidcCallbackPage, startOidcPage } from "./provider.tsx";
import { logInView, setupView, signedIn } from "./views.tsx";

const setupPage = page(
  "/setup",
  { access: "public", query: v.strictObject({ token: v.optional(v.string(), "") }) },
  (context) => setupView(context, { token: context.query.token }),
);

const setupForm = form(
  "/setup",
  {
    access: "public",
    fields: v.strictObject({ token: v.optional(sent, ""), name: sent, email: sent, password: sent }),
  },
  async (context) => {
    const { token, ...given } = context.fields;
    let session: { token: string } | undefined;
    const message = await refusalOf(async () => {
      requirePasswords(context);
      const account = read(newAccount, given);
      session = await setUp(storesOf(context), context.signIn, { token, account, client: clientOf(context) });
    });
    if (session) return signedIn(context, session.token, "/");
    return await setupView(context, { token, name: given.name, email: given.email, message });
  },
);

const logInPage = page(
  "/login",
  { access: "public", query: v.strictObject({ next: v.optional(v.string()) }) },
  async (context) => {
    const next = toOwnPath(context.query.next);
    return context.visitor ? new SeeOther(next) : await logInView(context, { next });
  },
);

const logInForm = form(
  "/login",
  { access: "public", fields: v.strictObject({ email: sent, password: sent, next: v.optional(sent) }) },
  async (context) => {
    const { fields } = context;
    const next = toOwnPath(fields.next);
    let session: { token: string } | undefined;
    const message = await refusalOf(async () => {
      requirePasswords(context);
      session = await openSession(storesOf(context), context.signIn, {
        email: read(email, fields.email),
        password: read(triedPassword, fields.password),
        client: clientOf(context),
        before: tokenOf(context),
      });
    });
    return session
      ? signedIn(context, session.token, next)
      : await logInView(context, { email: fields.email, next, message });
  },
);

const logOutForm = form("/logout", { access: "account" }, async (context) => {
  const token = tokenOf(context);
  if (token !== undefined) await logOut(storesOf(context), token);
  return new SeeOther("/login", { "Set-Cookie": context.sessions.forget() });
});

export const logInPages: Page[] = [
  setupPage,
  setupForm,
  logInPage,
  logInForm,
  logOutForm,
  startOidcPage,
  oidcCallbackPage,
  linkForm,
  linkPage,
];
