/** People of a team for tests: accounts with sessions, whose passwords cost next to nothing. */

import { createPasswords, DUMMY, type Hashing } from "../src/secrets/passwords.ts";
import { createAttempts } from "../src/secrets/attempts.ts";
import { type SignIn, startSession } from "../src/operations/people/accounts.ts";
import type { Role } from "../src/schema/accounts.ts";
import { insertAccount, insertMembership } from "../src/store/accounts.ts";
import type { Database } from "../src/database/connect.ts";

export const PASSWORD = "correct horse battery";
export const CLIENT = { address: "192.0.2.7", userAgent: "Tester/1.0" };

const CHEAP = { algorithm: "argon2id", memoryCost: 8, timeCost: 1 } as const;
const CHEAP_DUMMY = await Bun.password.hash("nobody knows it", CHEAP);

/** Argon2id with the least that it takes, also for accounts that do not exist; counts what it did. */
export function countingHashing(): Hashing & { count: { hash: number; verify: number }; most: number } {
  let running = 0;
  const counted = {
    count: { hash: 0, verify: 0 },
    /** How many were at work at once. */
    most: 0,
    hash: (password: string) => during("hash", () => Bun.password.hash(password, CHEAP)),
    verify: (password: string, hash: string) =>
      during("verify", () => Bun.password.verify(password, hash === DUMMY ? CHEAP_DUMMY : hash)),
  };
  async function during<T>(what: "hash" | "verify", work: () => Promise<T>): Promise<T> {
    counted.count[what]++;
    counted.most = Math.max(counted.most, ++running);
    return await work().finally(() => running--);
  }
  return counted;
}

export function createSignIn(now: () => number = () => performance.now()) {
  const hashing = countingHashing();
  const signIn: SignIn = { passwords: createPasswords(hashing), attempts: createAttempts(now) };
  return { signIn, hashing };
}

let number = 0;

/** Somebody who is signed in, with a role in a team or none. The default address is unique: other files may use the same database. */
export async function createPerson(
  { begin }: Pick<Database, "begin">,
  place: { team: string; role: Role } | undefined,
  {
    password = PASSWORD as string | null,
    name = `Person ${++number}`,
    email = `person-${crypto.randomUUID()}@acme.example`,
  } = {},
) {
  const passwordHash = password === null ? null : await Bun.password.hash(password, CHEAP);
  return await begin(async (sql) => {
    const accountId = (await insertAccount(sql, { email, name, passwordHash }))!;
    if (place) await insertMembership(sql, place.team, accountId, place.role);
    return { email, name, ...(await startSession(sql, accountId, CLIENT)) };
  });
}

/** The message of an operation that refuses, "absent" if it has none, or another error as it is. */
export const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "it was not refused",
    (error: Error) => (error.name === "Refusal" ? error.message || "absent" : String(error.stack)),
  );
