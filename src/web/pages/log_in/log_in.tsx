/** Signing in and out, and the first account. */

import * as v from "valibot";
import { toOwnPath } from "../../../http/own_path.ts";
import { logIn as openSession, logOut, setUp } from "../../../operations/people/accounts.ts";
import { email, newAccount, triedPassword } from "../../../schema/accounts.ts";
import { type Page, SeeOther, form, page } from "../../site/page.ts";
import { clientOf, read, requirePasswords, sent, storesOf, tokenOf } from "../../site/people_input.ts";
import { linkForm, linkPage, oidcCallbackPage, startOidcPage } from "./provider.tsx";
import { logInView, setupView, signedIn } from "./views.tsx";
import { action } from "../../site/action.ts";

const setupPage = page(
  "/setup",
  { access: "public", query: v.strictObject({ token: v.optional(v.string(), "") }) },
  (context) => setupView(context, { token: context.query.token }),
);

const setupForm = action(
  "/setup",
  {
    access: "public",
    fields: v.strictObject({ token: v.optional(sent, ""), name: sent, email: sent, password: sent }),
  },
  {
    read: (context) => {
      requirePasswords(context);
      const { token: _, ...given } = context.fields;
      return read(newAccount, given);
    },
    run: (context, account) =>
      setUp(storesOf(context), context.signIn, { token: context.fields.token, account, client: clientOf(context) }),
    refused: (context, message) => {
      const { token, name, email } = context.fields;
      return setupView(context, { token, name, email, message });
    },
    done: (context, { token }) => signedIn(context, token, "/"),
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

const logInForm = action(
  "/login",
  { access: "public", fields: v.strictObject({ email: sent, password: sent, next: v.optional(sent) }) },
  {
    read: (context) => {
      requirePasswords(context);
      const { fields } = context;
      return { email: read(email, fields.email), password: read(triedPassword, fields.password) };
    },
    run: (context, given) =>
      openSession(storesOf(context), context.signIn, {
        ...given,
        client: clientOf(context),
        before: tokenOf(context),
      }),
    refused: (context, message) => {
      const { email, next } = context.fields;
      return logInView(context, { email, next: toOwnPath(next), message });
    },
    done: (context, { token }) => signedIn(context, token, toOwnPath(context.fields.next)),
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
