/** Who looks at a page, for pages that know neither cookies nor tokens. */

import type { Visitors as Sessions } from "../request/visitors.ts";
import type { Visitors } from "./page.ts";

export const toVisitors = (sessions: Sessions): Visitors => ({
  find: (cookies) => sessions.find(cookies),
  csrf(request, visitor) {
    if (visitor) return { token: sessions.csrfToken(visitor.sessionId) };
    const { csrfToken, setCookie } = sessions.strangerToken(request.headers.get("cookie"));
    return { token: csrfToken, ...(setCookie === undefined ? {} : { cookie: setCookie }) };
  },
  isOwnForm: (request, visitor, token) =>
    visitor ? sessions.isOwnForm(request, visitor.sessionId, token) : sessions.isStrangersForm(request, token),
});
