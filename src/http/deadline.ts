/** Gives up on work that takes too long: one ticking clock for all, because most work ends long before. */

const TICK_MS = 500;

export class DeadlineError extends Error {
  override name = "DeadlineError";
}

type Entry = { until: number; expire: () => void };

export function createDeadlines(monotonic: () => number = () => performance.now()) {
  const entries = new Set<Entry>();
  let clock: Timer | undefined;

  function tick(): void {
    const now = monotonic();
    for (const entry of entries) if (entry.until <= now) entry.expire();
    if (entries.size > 0) return;
    clearInterval(clock);
    clock = undefined;
  }

  return {
    /** Rejects with DeadlineError, after `onExpired`, when `work` is not done in time. The work itself goes on. */
    within<T>(seconds: number, work: () => Promise<T>, onExpired: () => void = () => {}): Promise<T> {
      clock ??= setInterval(tick, TICK_MS);
      return new Promise<T>((resolve, reject) => {
        const entry: Entry = {
          until: monotonic() + seconds * 1000,
          expire() {
            entries.delete(entry);
            onExpired();
            reject(new DeadlineError(`No answer within ${seconds} s`));
          },
        };
        entries.add(entry);
        work().then(
          (value) => {
            entries.delete(entry);
            resolve(value);
          },
          (error) => {
            entries.delete(entry);
            reject(error);
          },
        );
      });
    },
  };
}
