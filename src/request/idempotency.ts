/** Idempotency-Key: a POST that is sent again within a day has one effect and one answer. */

import { fail } from "../http/problem.ts";
import { Reply } from "./reply.ts";
import type { Sql, Tx } from "../database/connect.ts";
import {
  type RequestClaim,
  claimRequest,
  extendRequest,
  markActing,
  releaseRequest,
  selectIsRunning,
  storeAnswer,
  type StoredRequest,
} from "../store/idempotency.ts";
import { EXTEND_MS } from "../database/claims.ts";

const KEY = /^[\x21-\x7e]{1,255}$/;
const LOOK_AGAIN_MS = { first: 20, last: 500 };

/** The transactions of a handler, which store the answer so that a repeated request gets the same one. */
export type Once = {
  claim: RequestClaim;
  /** The answer was stored, in the transaction that made it. */
  stored(): void;
  /** In the transaction that makes the answer: either both are there or neither. */
  answer(sql: Tx, reply: Reply): Promise<void>;
  /** In the transaction from whose commit on the request cannot be run again. */
  act(sql: Tx): Promise<void>;
};

export type OnceOptions = {
  sql: Sql;
  caller: { teamId: string; projectId: string | null };
  key: string;
  /** Hexadecimal, of the whole request. */
  digest: string;
  /** The client no longer waits. */
  isOver: () => boolean;
};

/** Keys of different projects, and those of teams, are strangers to each other. */
const placeOf = ({
  caller: { teamId, projectId },
  key,
}: Pick<OnceOptions, "caller" | "key">): Omit<RequestClaim, "claim"> => ({
  teamId,
  scopeId: projectId ?? teamId,
  key,
});

export const lost = (): never =>
  fail("INTERNAL_ERROR", "The request was considered lost and is executed by its repetition", { "Retry-After": "2" });

type Waiting = Pick<OnceOptions, "sql" | "caller" | "key" | "isOver">;

/** While another request with the same key is running, on whatever server; or until whoever asked does not wait any more. */
export async function waitForOther({ sql, isOver, ...request }: Waiting): Promise<void> {
  const place = placeOf(request);
  for (let wait = LOOK_AGAIN_MS.first; !isOver() && (await selectIsRunning(sql, place)); wait = longer(wait))
    await Bun.sleep(wait);
}

const longer = (wait: number) => Math.min(2 * wait, LOOK_AGAIN_MS.last);

/**
 * Claims the request, lets go of the database, and runs it; whoever comes meanwhile, on any server, waits for its answer.
 * Refused requests are not stored: they had no effect. One that died is run again, unless it had begun to act: then that
 * is said. Fails with VALIDATION_ERROR on a key that is malformed or was used for another request.
 */
export async function answerOnce(
  { sql, caller, key, digest, isOver }: OnceOptions,
  run: (once: Once) => Promise<Reply>,
): Promise<Reply> {
  if (!KEY.test(key))
    fail("VALIDATION_ERROR", `Cannot read the header "Idempotency-Key": expected 1 to 255 visible ASCII characters`);
  const claim: RequestClaim = { ...placeOf({ caller, key }), claim: Bun.randomUUIDv7() };
  for (let wait = LOOK_AGAIN_MS.first; ; wait = longer(wait)) {
    const stored = await claimRequest(sql, claim, digest);
    if (!stored) return await runClaimed(sql, claim, run);
    const reply = toReply(stored, key, digest);
    if (reply) return reply;
    if (isOver()) return lost();
    await Bun.sleep(wait);
  }
}

/** Undefined while it is running. */
function toReply({ state, digest, status, body, contentType }: StoredRequest, key: string, mine: string) {
  if (digest !== mine) fail("VALIDATION_ERROR", `Idempotency-Key "${key}" was used before for a different request`);
  if (state === "answered") return new Reply(status, body, contentType, { "Idempotent-Replayed": "true" });
  if (state === "lost")
    fail(
      "VALIDATION_ERROR",
      `The request with the Idempotency-Key "${key}" was cut off after it had begun to act: look whether it took effect, and send it with another key if it did not`,
    );
  return undefined;
}

async function runClaimed(sql: Sql, claim: RequestClaim, run: (once: Once) => Promise<Reply>): Promise<Reply> {
  let isStored = false;
  const store = async (sql: Sql, { status, type, repeatedBody }: Reply) => {
    if (!(await storeAnswer(sql, claim, { status, contentType: type, body: repeatedBody }))) lost();
  };
  const extending = setInterval(() => void extendRequest(sql, claim).catch(() => {}), EXTEND_MS);
  try {
    const reply = await run({
      claim,
      stored: () => void (isStored = true),
      async answer(sql, reply) {
        await store(sql, reply);
        isStored = true;
      },
      async act(sql) {
        if (!(await markActing(sql, claim))) lost();
      },
    });
    if (!isStored) await store(sql, reply);
    return reply;
  } catch (error) {
    // Where this fails as well, the claim ends by itself.
    await releaseRequest(sql, claim).catch(() => {});
    throw error;
  } finally {
    clearInterval(extending);
  }
}
