/** Hashes and verifies passwords with argon2id, few at a time: each takes a core and 19 MiB for some 50 ms. */

import { refuse } from "../schema/refusal.ts";
import { createLimit } from "../turns.ts";

/** OWASP's second recommendation for argon2id. */
const ARGON2ID = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
const MAX_CONCURRENT = 2;
/** Maximum number of waiting requests; a further one would wait for seconds. */
const MAX_WAITING = 100;
/** The hash of a random password, verified for unknown accounts so that they take as long as known ones. */
export const DUMMY =
  "$argon2id$v=19$m=19456,t=2,p=1$j3YF/lCwlLauc86sLLuKfB1IWgtp7mRshWeMXobvcrI$Au6qlwwoFjnJy9sJSpe8okbqlmwZ0LueFQ0M80h46Vo";

/** The hash function. Tests replace it to count calls. */
export type Hashing = {
  hash(password: string): Promise<string>;
  /** May throw where the hash is damaged. */
  verify(password: string, hash: string): Promise<boolean>;
};

const argon2id: Hashing = {
  hash: (password) => Bun.password.hash(password, ARGON2ID),
  verify: (password, hash) => Bun.password.verify(password, hash),
};

export function createPasswords(hashing: Hashing = argon2id) {
  const limit = createLimit(MAX_CONCURRENT);

  /** Refuses where too many wait already. */
  async function withSlot<T>(work: () => Promise<T>): Promise<T> {
    if (limit.waiting() >= MAX_WAITING) refuse("Too many people are signing in, try again in a moment");
    return await limit.run(work);
  }

  return {
    hash: (password: string): Promise<string> => withSlot(() => hashing.hash(password)),

    /** Returns false without a hash, or with a damaged one, after the same time. */
    verify: (password: string, hash: string | null): Promise<boolean> =>
      withSlot(async () => {
        // The engine throws on an empty password, at once.
        const isRight = await hashing.verify(password === "" ? "\0" : password, hash ?? DUMMY).catch(() => false);
        return isRight && hash !== null && password !== "";
      }),
  };
}

export type Passwords = ReturnType<typeof createPasswords>;
