/** Identifies the visitor of a page by the session cookie, and checks that a form comes from one of our pages. */

import type { PlannedDeletionRow } from "../rules/retention.ts";
import { createCookie } from "../http/cookies.ts";
import { createForms } from "../http/forms.ts";
import type { Role } from "../schema/accounts.ts";
import { createToken, isToken, tokenDigest } from "../secrets/tokens.ts";
import type { Database } from "../database/connect.ts";
import { selectSessionOwner, SESSION_DAYS, updateSessionSeen } from "../store/sessions.ts";

/** Somebody who is signed in. */
export type Visitor = {
  accountId: string;
  email: string;
  name: string;
  sessionId: string;
  teams: { teamId: string; teamName: string; role: Role }[];
  /** The server was restored from a backup and is quiet. */
  isQuiet: boolean;
  /** Announced deletions of old data in the teams that the visitor owns. */
  plannedDeletions: readonly PlannedDeletionRow[];
};

export type VisitorsOptions = {
  publicUrl: string;
  /** Shared by every server of one database. */
  secret: Uint8Array;
  /** Hears when it cannot be written that a session was seen. */
  onNotSeen?: (error: unknown) => void;
};

type Asking = Pick<Request, "headers">;

/** No cookie of a stranger can hold it. */
const bindingOf = (sessionId: string) => `session ${sessionId}`;

const DAY_SECONDS = 24 * 60 * 60;

export function createVisitors(
  { pages }: Pick<Database, "pages">,
  { publicUrl, secret, onNotSeen = () => {} }: VisitorsOptions,
) {
  const sessionCookie = createCookie(publicUrl, "assay_session");
  /** The cookie of browsers without a session that are shown a form. */
  const formCookie = createCookie(publicUrl, "assay_form");
  const forms = createForms({ secret, publicUrl });

  return {
    /** Returns the visitor of the session cookie, read anew each time; undefined if there is no session or it has ended. */
    async find(cookieHeader: string | null): Promise<Visitor | undefined> {
      const token = sessionCookie.read(cookieHeader);
      if (token === undefined || !isToken(token)) return undefined;
      const owner = await selectSessionOwner(pages, tokenDigest(token));
      if (!owner) return undefined;
      const { isStale, ...visitor } = owner;
      if (isStale) updateSessionSeen(pages, visitor.sessionId).then(undefined, onNotSeen);
      return visitor;
    },

    /** The token of the cookies' session, live or not: what log-in and log-out end. */
    tokenOf: (cookieHeader: string | null): string | undefined => sessionCookie.read(cookieHeader),

    /** For Set-Cookie, after a log-in. How long the session lives is up to the database. */
    keep: (token: string): string => sessionCookie.write(token, SESSION_DAYS * DAY_SECONDS),
    /** For Set-Cookie, after a log-out. */
    forget: (): string => sessionCookie.clear(),

    /**
     * The token that a form holds; `cookie` is for Set-Cookie, where who is not signed in has none yet that the token can
     * be bound to.
     */
    csrf(request: Asking, visitor: Pick<Visitor, "sessionId"> | undefined): { token: string; cookie?: string } {
      if (visitor) return { token: forms.token(bindingOf(visitor.sessionId)) };
      const known = formCookie.read(request.headers.get("cookie"));
      if (known !== undefined && isToken(known)) return { token: forms.token(known) };
      const { token: value } = createToken();
      return { token: forms.token(value), cookie: formCookie.write(value) };
    },

    /** Whether a form with this token comes from a page that this visitor, or this stranger's browser, got from us. */
    isOwnForm(request: Asking, visitor: Pick<Visitor, "sessionId"> | undefined, token: string): boolean {
      const cookie = formCookie.read(request.headers.get("cookie"));
      const value = visitor ? bindingOf(visitor.sessionId) : cookie && isToken(cookie) ? cookie : undefined;
      return value !== undefined && forms.isFromOurPage(request) && forms.isToken(value, token);
    },
  };
}

export type Visitors = ReturnType<typeof createVisitors>;
