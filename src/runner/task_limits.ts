/** Ends a task before its command ends by itself: for a stop, its time limit, or a command that prints nothing. */

/** The reason with which a runner that is stopped ends its tasks. */
export const RUNNER_STOPPED = "The runner was stopped";

/** Why a task ends; `isStop`: somebody wants it, so what it has reported so far does not count. */
export type TaskEnding = { message: string; isStop: boolean };

export type TaskLimits = {
  /** Aborted when the task is to end. */
  signal: AbortSignal;
  /** undefined: the task may go on. */
  ending(): TaskEnding | undefined;
  /** A command has printed something. */
  heard(): void;
  /** Silence counts while a command runs, */
  running<T>(action: () => Promise<T>): Promise<T>;
  /** and not while that waits for the runner. */
  waiting<T>(action: () => Promise<T>): Promise<T>;
  /** The limits do not apply any more. */
  end(): void;
};

/** `onEnd` gets the reason. The reason of `stop` is a text. */
export function watchTask(
  { stop, seconds, silenceSeconds }: { stop: AbortSignal; seconds: number; silenceSeconds: number | undefined },
  onEnd: (message: string) => void,
): TaskLimits {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), seconds * 1000);
  const silence = watchSilence(silenceSeconds);
  const signal = AbortSignal.any([stop, timeout.signal, silence.signal]);
  const ending = (): TaskEnding | undefined => {
    if (stop.aborted) return { message: String(stop.reason), isStop: true };
    if (timeout.signal.aborted) return { message: `Timed out after ${seconds} s`, isStop: false };
    if (silence.signal.aborted)
      return { message: `The command printed nothing for ${silenceSeconds} s`, isStop: false };
    return undefined;
  };
  const tell = () => onEnd(ending()!.message);
  signal.addEventListener("abort", tell);
  return {
    signal,
    ending,
    heard: silence.heard,
    running: (action) => silence.during("running", action),
    waiting: (action) => silence.during("waiting", action),
    end() {
      signal.removeEventListener("abort", tell);
      clearTimeout(timer);
      silence.end();
    },
  };
}

/** Its signal is aborted when a command runs that waits for nobody, and nothing is heard for so long; undefined: never. */
function watchSilence(seconds: number | undefined) {
  const silent = new AbortController();
  const now = { running: 0, waiting: 0 };
  let heardAt = performance.now();
  const heard = () => void (heardAt = performance.now());
  const look = () => {
    if (now.running === 0 || now.waiting > 0) heard();
    const left = heardAt + seconds! * 1000 - performance.now();
    if (left <= 0) silent.abort();
    else timer = setTimeout(look, left);
  };
  let timer = seconds === undefined ? undefined : setTimeout(look, seconds * 1000);
  return {
    signal: silent.signal,
    heard,
    async during<T>(what: keyof typeof now, action: () => Promise<T>): Promise<T> {
      now[what]++;
      heard();
      try {
        return await action();
      } finally {
        now[what]--;
        heard();
      }
    },
    end: () => clearTimeout(timer),
  };
}
