/** Has what many callers ask for at one moment done in one transaction, and lets each go his own way where that fails. */

import type { Caller } from "./callers.ts";
import { type Database, isUndone, type Tx } from "../database/connect.ts";
import { lockLiveKeysAtOnce } from "../store/keys.ts";
import type { Turn } from "../database/locks.ts";

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
  /** Whether it is done is not known. */
  reject: (error: unknown) => void;
};

type Group = {
  /** One transaction of it goes on. */
  isRunning: boolean;
  /** Whether it is looked after at the end of this turn. */
  isScheduled: boolean;
  waiting: Member[];
  /** So many are likely to want the next transaction: those that the last one has answered, and those that waited for it. */
  expected: number;
  /** Of `performance.now()`: until then they are waited for. */
  until: number;
  lingering: ReturnType<typeof setTimeout> | undefined;
};

/** Of one transaction. */
const MAX_MEMBERS = 32;
/** What whoever has been answered takes to ask again. A transaction of eight costs little more than one of four. */
const LINGER_MS = 3;

/** `patienceMs`: who has waited so long for a transaction to end goes his own way. */
export function createTogether({ beginAhead }: Pick<Database, "beginAhead">, patienceMs = 2_000) {
  const groups = new Map<WorkTogether<never, unknown>, Map<string, Group>>();

  async function run(work: WorkTogether<never, unknown>, projectId: string, members: readonly Member[]): Promise<void> {
    let settled: readonly Member[] = [];
    let isAnswered = false;
    try {
      const { written } = await beginAhead(async (sql, begun) => {
        // Nothing is written before both are known.
        const holders = Promise.all([lockLiveKeysAtOnce(sql, members), begun]).then(([holders]) => holders);
        const admitted = holders.then((holders) => members.map((member) => holders.has(member)));
        const inputs = members.map(({ input }) => input as never);
        const { outputs, written } = await work(sql, projectId, inputs, admitted);
        // Whoever does not come to wait for it hears of the failure from the commit.
        written.catch(() => {});
        const settling = members.map((member, index) =>
          outputs[index] === undefined ? undefined : settle(member, sql, outputs[index]),
        );
        if (settling.some((one) => one !== undefined)) await Promise.all(settling);
        settled = members.filter((_, index) => outputs[index] !== undefined);
        return { written };
      });
      isAnswered = true;
      // What fails here the database has taken back at the commit.
      await written;
      for (const member of members) member.resolve(settled.includes(member));
    } catch (error) {
      // The commit may have come through, and its answer was lost: what is done once more would be there twice.
      const lost = !isAnswered && !isUndone(error) ? settled : [];
      // Whose fault it was comes out when each goes his own way.
      for (const member of members) lost.includes(member) ? member.reject(error) : member.resolve(false);
    }
  }

  function look(work: WorkTogether<never, unknown>, projectId: string, group: Group): void {
    const { isRunning, waiting, expected, until } = group;
    if (isRunning || waiting.length === 0) return;
    if (waiting.length < Math.min(expected, MAX_MEMBERS) && performance.now() < until) return;
    clearTimeout(group.lingering);
    const members = waiting.splice(0, MAX_MEMBERS);
    group.isRunning = true;
    const patience = setInterval(() => {
      for (const member of waiting.splice(0)) member.resolve(false);
    }, patienceMs);
    void run(work, projectId, members).then(() => {
      clearInterval(patience);
      group.isRunning = false;
      group.expected = members.length + waiting.length;
      group.until = performance.now() + LINGER_MS;
      group.lingering = setTimeout(() => {
        group.until = 0;
        if (waiting.length === 0) groups.get(work)?.delete(projectId);
        else look(work, projectId, group);
      }, LINGER_MS);
      look(work, projectId, group);
    });
  }

  /** False: nothing has been done for this one. Fails where that is not known. */
  return function join<Input, Output>(
    work: WorkTogether<Input, Output>,
    projectId: string,
    member: Omit<Member, "input" | "settle" | "resolve" | "reject"> & {
      input: Input;
      settle: (sql: Tx, output: Output) => Promise<void> | undefined;
    },
  ): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const ofWork = groups.get(work as never) ?? new Map<string, Group>();
    groups.set(work as never, ofWork);
    const group = ofWork.get(projectId) ?? {
      isRunning: false,
      isScheduled: false,
      waiting: [],
      expected: 0,
      until: 0,
      lingering: undefined,
    };
    ofWork.set(projectId, group);
    group.waiting.push({ ...member, resolve, reject } as Member);
    if (!group.isScheduled) {
      group.isScheduled = true;
      // Those that have come in one turn go together.
      setImmediate(() => {
        group.isScheduled = false;
        look(work as never, projectId, group);
      });
    }
    return promise;
  };
}

/** Who throws at once does so beside the others, who are at it already and must be heard as well. */
function settle(member: Member, sql: Tx, output: unknown): Promise<void> | undefined {
  try {
    return member.settle(sql, output);
  } catch (error) {
    return Promise.reject(error);
  }
}
