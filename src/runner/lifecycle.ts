/** Whether a runner goes on, stops or has failed, and the signal that wakes its loop. */

export type Lifecycle = {
  /** The runner takes no more tasks. */
  isEnding(): boolean;
  /** The user has asked the runner to stop. */
  isStopping(): boolean;
  /** An error has ended the runner. */
  hasFailed(): boolean;
  /** Throws the error that has ended the runner, if there is one. */
  throwFailure(): void;
  /** Only the first error is kept. */
  fail(error: unknown): void;
  /** Returns how often the user has asked for it, this time included. */
  stop(): number;
  /** A task has been taken: with `once` there is not another one. */
  noteTask(): void;
  /** Resolves the promise that `nextWake` returned last. */
  wake(): void;
  /** Call it before reading the state that a wake announces: a wake before this call does not resolve the promise. */
  nextWake(): Promise<void>;
};

export function createLifecycle(once: boolean): Lifecycle {
  let stops = 0;
  let hasTaken = false;
  let failure: unknown;
  let awake = Promise.withResolvers<void>();
  return {
    isEnding: () => stops > 0 || failure !== undefined || (once && hasTaken),
    isStopping: () => stops > 0,
    hasFailed: () => failure !== undefined,
    throwFailure() {
      if (failure !== undefined) throw failure;
    },
    fail: (error) => void (failure ??= error),
    stop: () => ++stops,
    noteTask: () => void (hasTaken = true),
    wake: () => awake.resolve(),
    nextWake() {
      awake = Promise.withResolvers();
      return awake.promise;
    },
  };
}
