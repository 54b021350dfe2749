/** Gives up on work that takes too long: one ticking clock for all, because most work ends long before. */

const TICK_MS = 500;

export class DeadlineError extends Error {
  override name = "DeadlineError";
}

/** A ring of all running entries, and its head: for an old Set, the garbage collector would have to visit every young entry. */
type Entry = { until: number; expire: () => void; before: Entry; after: Entry };

export function createDeadlines(monotonic: () => number = () => performance.now()) {
  const head = { until: Infinity, expire() {} } as Entry;
  head.before = head.after = head;
  let clock: Timer | undefined;

  function tick(): void {
    const now = monotonic();
    for (let entry = head.after; entry !== head; entry = entry.after) if (entry.until <= now) entry.expire();
    if (head.after !== head) return;
    clearInterval(clock);
    clock = undefined;
  }

  function remove(entry: Entry): void {
    entry.before.after = entry.after;
    entry.after.before = entry.before;
  }

  return {
    /** Rejects with DeadlineError, after `onExpired`, when `work` is not done in time. The work itself goes on. */
    within<T>(seconds: number, work: () => Promise<T>, onExpired: () => void = () => {}): Promise<T> {
      clock ??= setInterval(tick, TICK_MS);
      return new Promise<T>((resolve, reject) => {
        const until = monotonic() + seconds * 1000;
        // Calls `work` before the deadline is registered: if it throws at once, there is nothing to wait for.
        const working = work();
        const entry: Entry = {
          until,
          expire() {
            remove(entry);
            onExpired();
            reject(new DeadlineError(`No answer within ${seconds} s`));
          },
          before: head.before,
          after: head,
        };
        head.before = head.before.after = entry;
        working.then(
          (value) => {
            remove(entry);
            resolve(value);
          },
          (error) => {
            remove(entry);
            reject(error);
          },
        );
      });
    },
  };
}

export type Deadlines = ReturnType<typeof createDeadlines>;
