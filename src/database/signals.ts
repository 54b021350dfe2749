/** Wakes waiting requests when something happens on any server; no connection is held while waiting. */

import type { OpenListener, Sql, Tx } from "./connect.ts";

/** Channels that a committed transaction notifies all servers on; each message is an id. */
const CHANNELS = ["execution_ended", "key_revoked", "lease"] as const;
type Channel = (typeof CHANNELS)[number];
/** "sync": a runner's next call has come; it is told within a server only. */
type Topic = Channel | "sync";

const ENDINGS: ReadonlySet<Woken> = new Set<Woken>(["closed", "sync", "key_revoked"]);

/** What ended the wait: a topic, the time, or a server that stops. */
type Woken = Topic | "time" | "closed";

export type Watch = {
  /** Resolves as soon as something has happened since the last call or, with the first, since the watch began. */
  next(ms: number): Promise<Woken>;
  end(): void;
};

export type Signals = {
  /** Watches all of these topics; the caller must end the watch. */
  watch(things: readonly (readonly [topic: Topic, id: string])[]): Watch;
  /** Notifies watches within this server only. */
  tell(topic: Topic, id: string): void;
  /** Ends all waits, for the drain. */
  close(): void;
};

/** Interval in which waiting requests check again, because a connection may be dead without notice. */
const LOOK_AGAIN_MS = 10_000;
/** While nothing can be listened to. */
const LOOK_SOON_MS = 1_000;
const LISTEN_AGAIN_MS = 250;

/** Wakes all watches of the id once the transaction commits. */
const notify = (sql: Tx, channel: Channel, id: string) => sql`select pg_notify(${channel}, ${id})`;

export const notifyExecutionEnded = (sql: Tx, executionId: string) => notify(sql, "execution_ended", executionId);

/** Requests of the key that wait are answered, with 401. */
export const notifyKeyRevoked = (sql: Tx, keyId: string) => notify(sql, "key_revoked", keyId);

/** Wakes the runners of a project: there are new tasks, tasks to stop, or viewers. */
export const notifyLeases = (sql: Tx, projectId: string) => notify(sql, "lease", projectId);

/** Creates signals. The listening connection is opened for the first watch. */
export function createSignals(openListener: OpenListener): Signals {
  const watching = new Map<string, Set<(topic: Woken) => void>>();
  let listener: Sql | undefined;
  let isListening = false;
  let closed = false;

  const keyOf = (topic: Topic, id: string) => `${topic} ${id}`;

  function tell(topic: Topic, id: string): void {
    for (const wake of watching.get(keyOf(topic, id)) ?? []) wake(topic);
  }

  /** Wakes all waiting, because notifications of other servers may have been lost. */
  function wakeAll(how?: "closed"): void {
    for (const [key, wakes] of watching) {
      const topic = key.split(" ")[0] as Topic;
      // It is not known whether the key was revoked: "key_revoked" would end the wait of a live key.
      const look = topic === "key_revoked" ? "time" : topic;
      if (how || topic !== "sync") for (const wake of wakes) wake(how ?? look);
    }
  }

  async function listen(): Promise<void> {
    listener ??= openListener({
      onNotify: (channel, id) => tell(channel as Channel, id),
      onClose() {
        if (!isListening) return;
        isListening = false;
        void listen();
      },
    });
    while (!closed && !isListening) {
      try {
        await listener.unsafe(CHANNELS.map((channel) => `listen ${channel}`).join("; "));
        isListening = true;
        wakeAll();
      } catch {
        await Bun.sleep(LISTEN_AGAIN_MS);
      }
    }
  }

  return {
    tell,

    watch(things) {
      if (!listener && !closed) void listen();
      let woken: Woken | undefined;
      let resolve: ((topic: Woken) => void) | undefined;
      const wake = (topic: Woken) => {
        // A reason that ends the wait is not overwritten by one that only causes another look.
        if (woken === undefined || !ENDINGS.has(woken) || topic === "closed") woken = topic;
        resolve?.(woken);
      };
      const keys = things.map(([topic, id]) => keyOf(topic, id));
      for (const key of keys) watching.set(key, (watching.get(key) ?? new Set()).add(wake));
      return {
        async next(ms) {
          if (closed) return "closed";
          const { promise, resolve: done } = Promise.withResolvers<Woken>();
          resolve = done;
          if (woken) done(woken);
          const timer = setTimeout(() => done("time"), Math.min(ms, isListening ? LOOK_AGAIN_MS : LOOK_SOON_MS));
          try {
            return await promise;
          } finally {
            clearTimeout(timer);
            resolve = undefined;
            woken = undefined;
          }
        },
        end() {
          for (const key of keys) {
            const wakes = watching.get(key);
            wakes?.delete(wake);
            if (wakes?.size === 0) watching.delete(key);
          }
        },
      };
    },

    close() {
      closed = true;
      wakeAll("closed");
      void listener?.end({ timeout: 1 });
    },
  };
}
