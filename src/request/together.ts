/** Has what many callers ask for at one moment done in one transaction, and lets each go his own way where that fails. */

import type { Caller } from "./callers.ts";
import type { Database, Tx } from "../store/connect.ts";
import { lockLiveKeysAtOnce } from "../store/keys.ts";
import type { Turn } from "../store/locks.ts";

/**
 * In a transaction, for one project. Reads at once, and writes nothing before it is known which are admitted, nor for those
 * that are not.
 */
export type WorkTogether<Input, Output> = (
  sql: Tx,
  projectId: string,
  inputs: readonly Input[],
  admitted: Promise<readonly boolean[]>,
) => Promise<{
  /** What comes of each, in their order; undefined where nothing is done for it. */
  outputs: readonly (Output | undefined)[];
  /** Until all of it is stored. Its last statement has been sent: the commit may follow at once. */
  written: Promise<unknown>;
}>;

type Member = {
  key: Caller;
  turns: readonly Turn[];
  input: unknown;
  /** In the transaction, with what has come of it. Who throws undoes it for all. */
  settle: (sql: Tx, output: unknown) => Promise<void> | undefined;
  resolve: (isDone: boolean) => void;
};

type Group = {
  running: number;
  waiting: Member[];
  /** Turns that its transactions want. */
  wanted: Set<string>;
};

/** Transactions of a project: while one waits for the database the next one is made ready. */
export const AT_ONCE = 2;
/** Of one transaction. */
const MAX_MEMBERS = 32;

/** `patienceMs`: who has waited so long for a transaction to end goes his own way. */
export function createTogether({ begin }: Pick<Database, "begin">, patienceMs = 2_000) {
  const groups = new Map<WorkTogether<never, unknown>, Map<string, Group>>();

  /** Those that wait, but for whoever would have to wait for a transaction of ours. */
  function take(group: Group): Member[] {
    const isFree = ({ turns }: Member) => !turns.some((turn) => group.wanted.has(String(turn)));
    const taken = group.waiting.filter(isFree).slice(0, MAX_MEMBERS);
    if (taken.length > 0) group.waiting = group.waiting.filter((member) => !taken.includes(member));
    return taken;
  }

  function letGo(group: Group): void {
    for (const member of group.waiting.splice(0)) member.resolve(false);
  }

  async function run(work: WorkTogether<never, unknown>, projectId: string, members: Member[]): Promise<void> {
    let done: readonly Member[] = [];
    try {
      const { settled, written } = await begin(async (sql) => {
        const holders = lockLiveKeysAtOnce(sql, members);
        const admitted = holders.then((holders) => members.map((member) => holders.has(member)));
        const inputs = members.map(({ input }) => input as never);
        const { outputs, written } = await work(sql, projectId, inputs, admitted);
        // Whoever does not come to wait for it hears of the failure from the commit.
        written.catch(() => {});
        const settled = members.filter((_, index) => outputs[index] !== undefined);
        const settling = members.map((member, index) =>
          outputs[index] === undefined ? undefined : member.settle(sql, outputs[index]),
        );
        if (settling.some((one) => one !== undefined)) await Promise.all(settling);
        return { settled, written };
      });
      // What fails here the database has taken back at the commit.
      await written;
      done = settled;
    } catch {
      // Whose fault it was comes out when each goes his own way.
    }
    for (const member of members) member.resolve(done.includes(member));
  }

  function start(work: WorkTogether<never, unknown>, projectId: string, group: Group): void {
    while (group.running < AT_ONCE) {
      const members = take(group);
      if (members.length === 0) break;
      const turns = members.flatMap((member) => member.turns.map(String));
      for (const turn of turns) group.wanted.add(turn);
      group.running++;
      const timer = setTimeout(() => letGo(group), patienceMs);
      void run(work, projectId, members).then(() => {
        clearTimeout(timer);
        group.running--;
        for (const turn of turns) group.wanted.delete(turn);
        start(work, projectId, group);
      });
    }
    if (group.running === 0) groups.get(work)?.delete(projectId);
  }

  /** False: nothing has been done for this one. */
  return function join<Input, Output>(
    work: WorkTogether<Input, Output>,
    projectId: string,
    member: Omit<Member, "input" | "settle" | "resolve"> & {
      input: Input;
      settle: (sql: Tx, output: Output) => Promise<void> | undefined;
    },
  ): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const ofWork = groups.get(work as never) ?? new Map<string, Group>();
    groups.set(work as never, ofWork);
    const group = ofWork.get(projectId) ?? { running: 0, waiting: [], wanted: new Set() };
    ofWork.set(projectId, group);
    group.waiting.push({ ...member, resolve } as Member);
    start(work as never, projectId, group);
    return promise;
  };
}
