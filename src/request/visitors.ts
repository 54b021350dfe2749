/** Who looks at a page: the session of a browser's cookie, and whether a form comes from a page that we gave it. */

import { createCookie } from "../http/cookies.ts";
import { createForms } from "../http/forms.ts";
import type { Role } from "../schema/accounts.ts";
import { createToken, isToken, tokenDigest } from "../secrets/tokens.ts";
import type { Database } from "../store/connect.ts";
import { selectSessionOwner, SESSION_DAYS, updateSessionSeen } from "../store/sessions.ts";

/** Somebody who is signed in. */
export type Visitor = {
  accountId: string;
  email: string;
  name: string;
  sessionId: string;
  teams: { teamId: string; teamName: string; role: Role }[];
};

export type VisitorsOptions = {
  publicUrl: string;
  /** Shared by every server of one database. */
  secret: Uint8Array;
  /** Hears when it cannot be written that a session was seen. */
  onNotSeen?: (error: unknown) => void;
};

const DAY_SECONDS = 24 * 60 * 60;

export function createVisitors(
  { fast }: Pick<Database, "fast">,
  { publicUrl, secret, onNotSeen = () => {} }: VisitorsOptions,
) {
  const sessionCookie = createCookie(publicUrl, "assay_session");
  /** Of browsers without a session that are shown a form. */
  const formCookie = createCookie(publicUrl, "assay_form");
  const forms = createForms({ secret, publicUrl });

  return {
    /** Who the cookies' session belongs to, asked anew each time; undefined where there is none or it has ended. */
    async find(cookieHeader: string | null): Promise<Visitor | undefined> {
      const token = sessionCookie.read(cookieHeader);
      if (token === undefined || !isToken(token)) return undefined;
      const owner = await selectSessionOwner(fast, tokenDigest(token));
      if (!owner) return undefined;
      const { isStale, ...visitor } = owner;
      if (isStale) updateSessionSeen(fast, visitor.sessionId).then(undefined, onNotSeen);
      return visitor;
    },

    /** The token of the cookies' session, live or not: what log-in and log-out end. */
    tokenOf: (cookieHeader: string | null): string | undefined => sessionCookie.read(cookieHeader),

    /** For Set-Cookie, after a log-in. How long the session lives is up to the database. */
    keep: (token: string): string => sessionCookie.write(token, SESSION_DAYS * DAY_SECONDS),
    /** For Set-Cookie, after a log-out. */
    forget: (): string => sessionCookie.clear(),

    /** What a form of somebody who is signed in holds as its token. */
    csrfToken: (sessionId: string): string => forms.token(`session ${sessionId}`),
    isOwnForm: (request: Pick<Request, "headers">, sessionId: string, token: string): boolean =>
      forms.isFromOurPage(request) && forms.isToken(`session ${sessionId}`, token),

    /** For the forms of those who are not signed in: the token, and the Set-Cookie that goes with it where one is new. */
    strangerToken(cookieHeader: string | null): { csrfToken: string; setCookie: string | undefined } {
      const known = formCookie.read(cookieHeader);
      const isKnown = known !== undefined && isToken(known);
      const value = isKnown ? known : createToken().token;
      return { csrfToken: forms.token(`form ${value}`), setCookie: isKnown ? undefined : formCookie.write(value) };
    },
    isStrangersForm(request: Pick<Request, "headers">, token: string): boolean {
      const value = formCookie.read(request.headers.get("cookie"));
      return (
        value !== undefined && isToken(value) && forms.isFromOurPage(request) && forms.isToken(`form ${value}`, token)
      );
    },
  };
}

export type Visitors = ReturnType<typeof createVisitors>;
