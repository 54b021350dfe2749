/** Idempotency-Key: a POST that is sent again within a day has one effect and one answer. */

import { fail } from "./http/problem.ts";
import { type Context, Reply } from "./route.ts";
import { claimIdempotencyKey, updateStoredAnswer } from "./store/idempotency.ts";

const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Runs `handle` in one transaction with the stored answer: there are both or neither. Whoever comes while it runs, on
 * any server, waits for it. `digest` is of the whole request. Refused requests are not stored: they had no effect.
 */
export async function answerOnce(
  context: Context,
  key: string,
  digest: string,
  handle: (context: Context) => Promise<Reply>,
): Promise<Reply> {
  if (!KEY.test(key))
    fail("VALIDATION_ERROR", `Cannot read the header "Idempotency-Key": expected 1 to 255 visible ASCII characters`);
  const { teamId, projectId } = context.caller;
  const scope = { teamId, scopeId: projectId ?? teamId, key };
  return await context.transact(async (sql) => {
    const stored = await claimIdempotencyKey(sql, scope, digest);
    if (stored) {
      if (stored.digest !== digest)
        fail("VALIDATION_ERROR", `Idempotency-Key "${key}" was used before for a different request`);
      return new Reply(stored.status, stored.body, stored.contentType, { "Idempotent-Replayed": "true" });
    }
    const reply = await handle({ ...context, sql, fast: sql, transact: (work) => work(sql) });
    await updateStoredAnswer(sql, scope, { status: reply.status, contentType: reply.type, body: reply.repeatedBody });
    return reply;
  });
}
