/** Getting in and out: the first account, signing in with a password or at the provider, signing out. */

import * as v from "valibot";
import { createCookie } from "../../http/cookies.ts";
import type { Html, Path, Href } from "../../http/html.ts";
import { OidcError, type OidcFlow } from "../../http/oidc.ts";
import { toOwnPath } from "../../http/own_path.ts";
import { isSetupToken, logIn as openSession, logOut, setUp } from "../../operations/people/accounts.ts";
import { linkIdentity, logInWithOidc, type OidcPerson } from "../../operations/people/oidc_accounts.ts";
import { email, newAccount, triedPassword } from "../../schema/accounts.ts";
import { oidcFlowPlace } from "../../secrets/places.ts";
import { selectAnyAccount } from "../../store/accounts.ts";
import { Csrf, Field, FormError, Hidden } from "../components/form.tsx";
import {
  clientOf,
  personOf,
  read,
  refusalOf,
  requirePasswords,
  sent,
  storesOf,
  tokenOf,
} from "../site/people_input.ts";
import { EmailField, NameField, NewPasswordField, providerLink } from "../components/person_fields.tsx";
import { type Page, type PageContext, SeeOther, type View, form, page } from "../site/page.ts";

/** Where the provider sends people back to. */
export const OIDC_CALLBACK = "/login/oidc/callback";
/** As long as somebody may take to sign in there. */
const FLOW_SECONDS = 10 * 60;

/** What any page here uses. */
type Context = Pick<
  PageContext<never, never, never, never>,
  "sql" | "fast" | "begin" | "log" | "seal" | "sessions" | "signIn" | "publicUrl" | "request" | "address" | "csrf"
>;

/** What the browser keeps, sealed, while its owner is at the provider. */
type Kept = {
  flow: OidcFlow;
  url: Href;
  next: Path;
  invitation?: string | undefined;
  setup?: string | undefined;
  /** Of the session that an identity is to be linked to. */
  link?: string | undefined;
  until: number;
};

const signedIn = ({ sessions }: Pick<Context, "sessions">, token: string, to: Path) =>
  new SeeOther(to, { "Set-Cookie": sessions.keep(token) });

const flowCookie = (publicUrl: string) => createCookie(publicUrl, "assay_oidc");

/** Goes to the provider; `Set-Cookie` of the way there. Throws OidcError. */
async function depart(
  context: Context,
  kept: Omit<Kept, "flow" | "url" | "until">,
): Promise<Kept & { cookie: string }> {
  const { signIn, seal, publicUrl } = context;
  const { url, flow } = await signIn.oidc!.begin();
  const whole = { ...kept, url, flow, until: Date.now() + FLOW_SECONDS * 1_000 };
  const sealed = seal.seal(oidcFlowPlace(), JSON.stringify(whole)).toString("base64url");
  return { ...whole, cookie: flowCookie(publicUrl).write(sealed, FLOW_SECONDS) };
}

/** Undefined where the browser has kept nothing, or for too long. */
function keptOf({ seal, publicUrl, request }: Pick<Context, "seal" | "publicUrl" | "request">): Kept | undefined {
  const sealed = flowCookie(publicUrl).read(request.headers.get("cookie"));
  if (!sealed) return undefined;
  try {
    const kept = JSON.parse(seal.open(oidcFlowPlace(), Buffer.from(sealed, "base64url"))) as Kept;
    return kept.until > Date.now() ? kept : undefined;
  } catch {
    return undefined;
  }
}

const narrow = (title: string, body: Html, status = 200): View => ({ title, body, status, isNarrow: true });

const failed = (message: string, status = 400): View =>
  narrow(
    "Signing in did not work",
    <>
      <h1>Signing in did not work</h1>
      <FormError message={message} />
      <p>
        <a class="button" href="/login">
          Try again
        </a>
      </p>
    </>,
    status,
  );

/** What the provider did wrong is for the log; the visitor can only try again. */
async function atProvider(
  context: Pick<Context, "log">,
  work: () => Promise<View | SeeOther>,
): Promise<View | SeeOther> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OidcError)) throw error;
    context.log.warn("Signing in with OpenID Connect failed", { reason: error.message });
    return failed("The provider did not confirm who you are. The server's log says why.", 502);
  }
}

type LogInFields = { email?: string; next: Path; message?: string | undefined };

async function logInView(context: Context, { email, next, message }: LogInFields): Promise<View> {
  const { signIn, csrf, fast } = context;
  const isNew = !(await selectAnyAccount(fast));
  const password = (
    <form class="fields" method="post" action="/login">
      <Csrf token={csrf} />
      <Hidden name="next" value={next === "/" ? undefined : next} /> <EmailField value={email} />{" "}
      <Field name="password" label="Password" type="password" autocomplete="current-password" />
      <div>
        <button class="main">Sign in</button>
      </div>
    </form>
  );
  const body = (
    <>
      <h1>Sign in</h1>
      {isNew ? (
        <p class="message">
          There is no account yet. The server's start has printed a link to make the first one; a restart prints a fresh
          one.
        </p>
      ) : null}{" "}
      <FormError message={message} /> {signIn.policy.passwordLogin ? password : null} {providerLink(context, { next })}{" "}
      {signIn.policy.passwordLogin ? (
        <p class="hint">
          Forgotten? Whoever runs this server can set a new password: <code>bun run assay admin reset-password</code>
        </p>
      ) : null}
    </>
  );
  return narrow("Sign in", body, message === undefined ? 200 : 400);
}

type SetupFields = { token: string; name?: string; email?: string; message?: string | undefined };

async function setupView(context: Context, { token, name, email, message }: SetupFields): Promise<View> {
  const { signIn, csrf } = context;
  if (!(await isSetupToken(storesOf(context), token)))
    return narrow(
      "This link is over",
      <>
        <h1>This link is over</h1>
        <p>It makes the first account, once, and for a week.</p>
        <p>
          Is there an account? <a href="/login">Sign in</a>. Else restart the server: it prints a fresh link.
        </p>
      </>,
      404,
    );
  const body = (
    <>
      <h1>Welcome to Assay</h1>
      <p>Make the first account. It owns every team, and invites others.</p>
      <FormError message={message} />{" "}
      {signIn.policy.passwordLogin ? (
        <form class="fields" method="post" action="/setup">
          <Csrf token={csrf} />
          <Hidden name="token" value={token} /> <NameField value={name} /> <EmailField value={email} />{" "}
          <NewPasswordField />
          <div>
            <button class="main">Make the account</button>
          </div>
        </form>
      ) : null}{" "}
      {providerLink(context, { setup: token })}
    </>
  );
  return narrow("Set up", body, message === undefined ? 200 : 400);
}

/** Providers add what they like to the answer. */
const anything = v.objectWithRest({}, v.string()) as unknown as v.StrictObjectSchema<v.ObjectEntries, undefined>;

async function arrive(context: Context, kept: Kept, person: OidcPerson, sessionId: string | undefined) {
  const entrance = { invitation: kept.invitation, setup: kept.setup };
  const session = await logInWithOidc(storesOf(context), context.signIn.policy, {
    person,
    entrance,
    client: clientOf(context),
    before: sessionId === undefined ? undefined : tokenOf(context),
  });
  const isInvited = kept.invitation !== undefined && session.isKnown;
  return signedIn(
    context,
    session.token,
    isInvited ? (`/invitations/${encodeURIComponent(kept.invitation!)}` as const) : kept.next,
  );
}

export const logInPages: Page[] = [
  page("/setup", { access: "public", query: v.strictObject({ token: v.optional(v.string(), "") }) }, (context) =>
    setupView(context, { token: context.query.token }),
  ),

  form(
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
  ),

  page("/login", { access: "public", query: v.strictObject({ next: v.optional(v.string()) }) }, async (context) => {
    const next = toOwnPath(context.query.next);
    return context.visitor ? new SeeOther(next) : await logInView(context, { next });
  }),

  form(
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
  ),

  form("/logout", { access: "account" }, async (context) => {
    const token = tokenOf(context);
    if (token !== undefined) await logOut(storesOf(context), token);
    return new SeeOther("/login", { "Set-Cookie": context.sessions.forget() });
  }),

  page(
    "/login/oidc",
    {
      access: "public",
      query: v.strictObject({
        next: v.optional(v.string()),
        invitation: v.optional(v.pipe(v.string(), v.maxLength(100))),
        setup: v.optional(v.pipe(v.string(), v.maxLength(100))),
      }),
    },
    (context) =>
      atProvider(context, async () => {
        if (!context.signIn.oidc) return failed("Single sign-on is not set up on this server", 404);
        const { next, invitation, setup } = context.query;
        const { url, cookie } = await depart(context, { next: toOwnPath(next), invitation, setup });
        return new SeeOther(url, { "Set-Cookie": cookie });
      }),
  ),

  page(OIDC_CALLBACK, { access: "public", query: anything }, (context) =>
    atProvider(context, async () => {
      const { signIn, visitor } = context;
      const kept = keptOf(context);
      if (!signIn.oidc || !kept) return failed("Signing in took too long, or began in another browser");
      const person = await signIn.oidc.finish(context.query as Record<string, string>, kept.flow);
      let to: SeeOther | undefined;
      const message = await refusalOf(async () => {
        if (kept.link === undefined) to = await arrive(context, kept, person, visitor?.sessionId);
        else if (visitor?.sessionId !== kept.link) throw new OidcError("It was begun in another session");
        else {
          await linkIdentity(context, personOf(visitor), person);
          to = new SeeOther("/account?done=linked");
        }
      });
      return to ?? failed(message!);
    }),
  ),

  form("/account/link", { access: "account" }, (context) =>
    atProvider(context, async () => {
      if (!context.signIn.oidc) return failed("Single sign-on is not set up on this server", 404);
      const { cookie } = await depart(context, { next: "/account", link: context.visitor.sessionId });
      return new SeeOther("/account/link", { "Set-Cookie": cookie });
    }),
  ),

  // The form's own redirect may not leave this host: see the policy of pages.
  page("/account/link", { access: "account" }, async (context) => {
    const kept = keptOf(context);
    if (!context.signIn.oidc || kept?.link !== context.visitor.sessionId) return new SeeOther("/account");
    return narrow(
      "Link your account",
      <>
        <h1>Link your account</h1>
        <p>Sign in at {context.signIn.oidc.host}: from then on that identity opens this account as well.</p>
        <p class="actions">
          <a class="button main" href={kept.url}>
            Continue with {context.signIn.oidc.host}
          </a>
        </p>
      </>,
    );
  }),
];
