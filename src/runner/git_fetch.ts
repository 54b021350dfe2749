/** Fetches of git that fail: the reason that git prints, and how often the runner tries again. */

import { setTimeout as wait } from "node:timers/promises";
import type { Mask } from "../secrets/mask.ts";

/** The result of a git command. `output` is masked, and only the end of a long one. */
export type GitRun = { exitCode: number; output: string };

/** Runs what fetches, and runs it again if it throws a GitFetchError, until `stop` is aborted. Throws the last error. */
export type RetryFetch = <T>(attempt: () => Promise<T>, stop: AbortSignal) => Promise<T>;

export type FetchRetries = {
  /** The time before each further try. */
  delaysMs: readonly number[];
  /** A fetch that has failed for longer is not tried again: an address that does not respond takes minutes for each try. */
  withinMs: number;
};

/** A server that restarts is back after this time. Other runners try again later. */
const FETCH_RETRIES: FetchRetries = { delaysMs: [2_000, 8_000], withinMs: 60_000 };
const MAX_OUTPUT_LENGTH = 16_384;
/** The maximum length of git's reason in a message, in characters. */
const MAX_REASON_LENGTH = 300;

/** The repository, or a part of it, cannot be fetched now: a later try or another runner may succeed. */
export class GitFetchError extends Error {
  override name = "GitFetchError";

  constructor(problem: string, { output }: GitRun) {
    const reason = gitReasonIn(output);
    super(reason === "" ? problem : `${problem}: ${reason}`);
  }
}

/** `note` gets a line for each further try. */
export function createFetchRetry(
  note: (text: string) => void,
  { delaysMs, withinMs }: FetchRetries = FETCH_RETRIES,
): RetryFetch {
  return async (attempt, stop) => {
    const began = performance.now();
    for (const delayMs of delaysMs) {
      try {
        return await attempt();
      } catch (error) {
        const isTooLate = performance.now() - began > withinMs;
        if (!(error instanceof GitFetchError) || stop.aborted || isTooLate) throw error;
        note(`git cannot fetch, trying again in ${delayMs / 1000} s`);
        // The signal ends the wait with an error of its own.
        await wait(delayMs, undefined, { signal: stop }).catch(() => {});
        if (stop.aborted) throw error;
      }
    }
    return await attempt();
  };
}

/** Passes the output of a command on, and keeps its end. It is masked before it is cut, because half a secret is not recognised. */
export function collectOutput(mask: Mask, passOn: (bytes: Uint8Array) => void) {
  const masked = mask.stream();
  const decoder = new TextDecoder();
  let text = "";
  const append = (bytes: Uint8Array) =>
    void (text = (text + decoder.decode(bytes, { stream: true })).slice(-MAX_OUTPUT_LENGTH));
  return {
    onOutput(bytes: Uint8Array): void {
      append(masked.push(bytes));
      passOn(bytes);
    },
    end(): string {
      append(masked.end());
      return text;
    },
  };
}

/** Git LFS says why first, and git only that it failed. */
const OF_LFS = /^(Error downloading object|batch response): /;
/** What git did not accept, and a program that git does not find. */
const OTHER_REASON = /^( ! \[|git: )/;

/** Returns the line of git's output that says why it failed, short and without credentials; empty if there is none. */
export function gitReasonIn(output: string): string {
  const lines = output.split(/[\r\n]+/);
  const fatal = lines.findIndex((line) => line.startsWith("fatal:"));
  // The reason is then in the line before, which ssh prints.
  const isOfSsh = fatal > 0 && lines[fatal]!.startsWith("fatal: Could not read from remote repository");
  const line =
    lines.find((line) => OF_LFS.test(line)) ??
    (fatal === -1
      ? (lines.find((line) => line.startsWith("error:")) ?? lines.findLast((line) => OTHER_REASON.test(line)))
      : lines[isOfSsh ? fatal - 1 : fatal]) ??
    "";
  // "unable to connect to HOST:" is continued in the next line.
  const whole = fatal !== -1 && line.endsWith(":") ? `${line} ${lines[fatal + 1] ?? ""}` : line;
  const text = hideCredentials(whole.replace(/\p{Cc}/gu, " ").trim());
  return (text.length > MAX_REASON_LENGTH ? `${text.slice(0, MAX_REASON_LENGTH)}…` : text).toWellFormed();
}

/**
 * Hides the user, password and query of each address. They may be unknown to the mask: git's own configuration, submodules and
 * LFS servers also set addresses. A password may contain "@" and quotes, so everything up to the last "@" is hidden.
 */
function hideCredentials(line: string): string {
  return line.replace(/\S+/g, (word) => {
    const scheme = word.indexOf("://");
    if (scheme === -1) return word;
    const start = scheme + "://".length;
    const at = word.lastIndexOf("@");
    const rest = at < start ? word.slice(start) : `***${word.slice(at)}`;
    return word.slice(0, start) + rest.replace(/\?.*/, "?***");
  });
}
