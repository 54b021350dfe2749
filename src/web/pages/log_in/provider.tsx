/** Signs visitors in with the identity provider. */

import * as v from "valibot";
import { createCookie } from "../../../http/cookies.ts";
import type { Href, Path } from "../../../http/html.ts";
import { OidcError, type OidcFlow } from "../../../http/oidc.ts";
import { toOwnPath } from "../../../http/own_path.ts";
import { type OidcPerson, linkIdentity, logInWithOidc } from "../../../operations/people/oidc_accounts.ts";
import { oidcFlowPlace } from "../../../secrets/places.ts";
import { FormError } from "../../components/form.tsx";
import { SeeOther, type View, form, page } from "../../site/page.ts";
import { clientOf, personOf, storesOf, tokenOf } from "../../site/people_input.ts";
import { type Context, narrow, signedIn } from "./views.tsx";
import { tryForm } from "../../site/action.ts";

/** The path to which the provider redirects. */
export const OIDC_CALLBACK = "/login/oidc/callback";

/** Maximum time between the redirect to the provider and the return. */
const MAX_FLOW_SECONDS = 10 * 60;

/** The contents of the encrypted cookie while the visitor is at the provider. */
type FlowCookie = {
  flow: OidcFlow;
  url: Href;
  next: Path;
  invitation?: string | undefined;
  setup?: string | undefined;
  /** The session to which the identity is linked. */
  link?: string | undefined;
  until: number;
};

const flowCookie = (publicUrl: string) => createCookie(publicUrl, "assay_oidc");

/** Redirects to the provider with a `Set-Cookie` header. Throws OidcError. */
async function startFlow(
  context: Context,
  saved: Omit<FlowCookie, "flow" | "url" | "until">,
): Promise<FlowCookie & { cookie: string }> {
  const { signIn, seal, publicUrl } = context;
  const { url, flow } = await signIn.oidc!.begin();
  const whole = { ...saved, url, flow, until: Date.now() + MAX_FLOW_SECONDS * 1_000 };
  const sealed = seal.seal(oidcFlowPlace(), JSON.stringify(whole)).toString("base64url");
  return { ...whole, cookie: flowCookie(publicUrl).write(sealed, MAX_FLOW_SECONDS) };
}

/** Returns undefined if the cookie is missing or has expired. */
function readFlowCookie({
  seal,
  publicUrl,
  request,
}: Pick<Context, "seal" | "publicUrl" | "request">): FlowCookie | undefined {
  const sealed = flowCookie(publicUrl).read(request.headers.get("cookie"));
  if (!sealed) return undefined;
  try {
    const saved = JSON.parse(seal.open(oidcFlowPlace(), Buffer.from(sealed, "base64url"))) as FlowCookie;
    return saved.until > Date.now() ? saved : undefined;
  } catch {
    return undefined;
  }
}

const failed = (message: string, status = 400): View =>
  narrow(
    "Sign-in failed",
    <>
      <h1>Sign-in failed</h1>
      <FormError message={message} />
      <p>
        <a class="button" href="/login">
          Try again
        </a>
      </p>
    </>,
    status,
  );

/** Errors of the provider are logged; the visitor can only try again. */
async function atProvider(
  context: Pick<Context, "log">,
  work: () => Promise<View | SeeOther>,
): Promise<View | SeeOther> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OidcError)) throw error;
    context.log.warn("Signing in with OpenID Connect failed", { reason: error.message });
    return failed("The identity provider did not confirm your identity. See the server's log for details.", 502);
  }
}

/** Providers add their own parameters to the response. */
const anything = v.objectWithRest({}, v.string()) as unknown as v.StrictObjectSchema<v.ObjectEntries, undefined>;

async function arrive(context: Context, saved: FlowCookie, person: OidcPerson, sessionId: string | undefined) {
  const entrance = { invitation: saved.invitation, setup: saved.setup };
  const session = await logInWithOidc(storesOf(context), context.signIn.policy, {
    person,
    entrance,
    client: clientOf(context),
    before: sessionId === undefined ? undefined : tokenOf(context),
  });
  const isInvited = saved.invitation !== undefined && session.isKnown;
  return signedIn(
    context,
    session.token,
    isInvited ? (`/invitations/${encodeURIComponent(saved.invitation!)}` as const) : saved.next,
  );
}

export const startOidcPage = page(
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
      const { url, cookie } = await startFlow(context, { next: toOwnPath(next), invitation, setup });
      return new SeeOther(url, { "Set-Cookie": cookie });
    }),
);

export const oidcCallbackPage = page(OIDC_CALLBACK, { access: "public", query: anything }, (context) =>
  atProvider(context, async () => {
    const { signIn, visitor } = context;
    const saved = readFlowCookie(context);
    if (!signIn.oidc || !saved) return failed("The sign-in expired or was started in another browser");
    const person = await signIn.oidc.finish(context.query as Record<string, string>, saved.flow);
    const arrived = await tryForm(async () => {
      if (saved.link === undefined) return await arrive(context, saved, person, visitor?.sessionId);
      if (visitor?.sessionId !== saved.link) throw new OidcError("The sign-in was started in another session");
      await linkIdentity(context, personOf(visitor), person);
      return new SeeOther("/account?notice=linked");
    });
    return "problem" in arrived ? failed(arrived.problem) : arrived.result;
  }),
);

export const linkForm = form("/account/link", { access: "account" }, (context) =>
  atProvider(context, async () => {
    if (!context.signIn.oidc) return failed("Single sign-on is not set up on this server", 404);
    const { cookie } = await startFlow(context, { next: "/account", link: context.visitor.sessionId });
    return new SeeOther("/account/link", { "Set-Cookie": cookie });
  }),
);

export const linkPage = page("/account/link", { access: "account" }, async (context) => {
  const saved = readFlowCookie(context);
  if (!context.signIn.oidc || saved?.link !== context.visitor.sessionId) return new SeeOther("/account");
  return narrow(
    "Link your account",
    <>
      <h1>Link your account</h1>
      <p>Sign in at {context.signIn.oidc.host} to use that identity for this account.</p>
      <p class="actions">
        <a class="button main" href={saved.url}>
          Continue with {context.signIn.oidc.host}
        </a>
      </p>
    </>,
  );
});
