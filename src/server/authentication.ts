/** Identifies the key of a request, counts the request against its rate limit, and decides the answer to a refused caller. */

import type { Deadlines } from "../http/deadline.ts";
import type { Problem } from "../http/problem.ts";
import type { Admission, RateLimit } from "../http/rate_limit.ts";
import type { Log } from "../log.ts";
import { type Caller, createCallers, revoked } from "../request/callers.ts";
import type { Progress } from "../request/execute.ts";
import { toProblem, toRateLimited } from "../request/failure.ts";
import type { Sql } from "../database/connect.ts";
import { requireKind } from "./authorization.ts";

/** The database takes far less to look up a key, or is not available. */
const LOOK_UP_SECONDS = 10;

/** The progress of a request and what is known of its caller. */
export type CallerProgress = Progress & { caller: Caller | undefined; admission: Admission | undefined };

type AuthenticationOptions = { keys: Sql; rateLimit: RateLimit; deadlines: Deadlines; log: Log };

export type Authentication = ReturnType<typeof createAuthentication>;

export const newCallerProgress = (): CallerProgress => ({
  caller: undefined,
  admission: undefined,
  provedLive: false,
  expired: false,
});

export function createAuthentication({ keys, rateLimit, deadlines, log }: AuthenticationOptions) {
  const callers = createCallers(keys);

  async function requireLive(caller: Caller, progress: CallerProgress): Promise<void> {
    if (progress.provedLive) return;
    if (!(await deadlines.within(LOOK_UP_SECONDS, () => callers.isLive(caller)))) revoked();
    progress.provedLive = true;
  }

  return {
    /** Fails where the key is wrong or of the wrong kind for the path, or where its rate limit is used up. */
    async authenticate(request: Request, path: string, progress: CallerProgress): Promise<Caller> {
      const key = callers.readKey(request.headers.get("authorization"));
      const caller = callers.recall(key) ?? (await deadlines.within(LOOK_UP_SECONDS, () => callers.lookUp(key)));
      requireKind(caller, path);
      progress.caller = caller;
      progress.admission = rateLimit.admit(caller.id);
      if (!progress.admission.admitted) throw toRateLimited(progress.admission);
      return caller;
    },

    /** Counts one more request of the caller, because each part of a batch counts. */
    countAgain(caller: Caller, progress: CallerProgress): void {
      progress.admission = rateLimit.admit(caller.id);
      if (!progress.admission.admitted) throw toRateLimited(progress.admission);
    },

    /** Fails where the key has been revoked since it was looked up, unless a statement has already found it live. */
    requireLive,

    /** Turns an error into the answer; never throws. */
    async refuse(error: unknown, client: () => string, progress: CallerProgress, requestId: string): Promise<Problem> {
      let problem = toProblem(error, log, requestId);
      // Also checked for errors: a key that was revoked meanwhile only gets 401.
      if (progress.caller && problem.status < 500 && problem.code !== "UNAUTHORIZED")
        await requireLive(progress.caller, progress).catch((error) => (problem = toProblem(error, log, requestId)));
      if (problem.code === "UNAUTHORIZED" || !progress.admission) {
        progress.admission = rateLimit.admit(client());
        if (!progress.admission.admitted) problem = toRateLimited(progress.admission);
      }
      return problem;
    },

    /** Stores, every few minutes, when a key that has proved live was last used. */
    noteUse({ caller, provedLive }: CallerProgress): void {
      if (caller && provedLive)
        callers.used(caller)?.catch((error) => log.warn("Cannot record the use of a key", { error }));
    },
  };
}
