/** Bounds how many transactions or statements of one owner run at once: slow ones would otherwise take all connections from others. */

import type { Sql } from "postgres";
import { DeadlineError } from "../http/deadline.ts";

type Owner = { running: number; waiting: (() => void)[] };

/** Returns a function that runs `work`, which must not wait for other work of the same owner within it. */
export function createOwnerGate(max: number) {
  const owners = new Map<string, Owner>();
  return async function within<T>(owner: string | undefined, work: () => Promise<T>): Promise<T> {
    if (owner === undefined) return await work();
    const mine = owners.get(owner) ?? { running: 0, waiting: [] };
    owners.set(owner, mine);
    if (mine.running < max) mine.running++;
    else await new Promise<void>((enter) => mine.waiting.push(enter));
    try {
      return await work();
    } finally {
      const enter = mine.waiting.shift();
      if (enter) enter();
      else if (--mine.running === 0) owners.delete(owner);
    }
  };
}

/** A statement of the driver, which calls `handler` to send it when it is awaited. A part of another statement is never awaited. */
type Statement = Promise<unknown> & { handler: (statement: Statement) => void; reject: (error: unknown) => void };

const isStatement = (made: unknown): made is Statement => typeof (made as Statement).handler === "function";

/**
 * Returns `pool` as its `owner` uses it. Each statement waits for its turn before it is in the queue of the pool, and is not sent if
 * nobody waits for its rows by then.
 */
export function createOwnedPool(
  pool: Sql,
  within: ReturnType<typeof createOwnerGate>,
  owner: string,
  isOver: () => boolean,
): Sql {
  async function send(statement: Statement): Promise<void> {
    if (isOver()) return statement.reject(new DeadlineError("Nobody waits for the statement any more"));
    // The pool may have been replaced meanwhile, and the handlers of its connections with it.
    (pool`` as unknown as Statement).handler(statement);
    await statement.catch(() => {});
  }
  const gated = <T>(made: T): T => {
    if (isStatement(made)) made.handler = (statement) => void within(owner, () => send(statement));
    return made;
  };
  return new Proxy(pool, {
    apply: (_, __, parameters) => gated(Reflect.apply(pool, undefined, parameters)),
    get: (_, name) =>
      name === "unsafe"
        ? (...given: Parameters<Sql["unsafe"]>) => gated(pool.unsafe(...given))
        : Reflect.get(pool, name),
  });
}
