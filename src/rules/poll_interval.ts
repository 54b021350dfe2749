/** Computes how often runners poll: as rarely as the rate limit of their shared key requires, and more often while a visitor watches. */

const DEFAULT_SECONDS = 20;
/** Below the duration of a lease, 90 s, and of a window of the rate limit, 60 s. */
const MAX_SECONDS = 55;

type PollLoad = {
  /** Number of runners of the project. */
  runners: number;
  isWatched: boolean;
  /** Requests that the key may send per minute, and how many of them remain. */
  limit: number;
  remaining: number;
};

/** Returns the seconds until a runner that holds a lease should poll again. All runners together use two thirds of the limit. */
export function pollIntervalSeconds({ runners, isWatched, limit, remaining }: PollLoad): number {
  const seconds = Math.max(DEFAULT_SECONDS, Math.ceil((runners * 90) / limit));
  if (!isWatched || remaining < limit / 6) return Math.min(MAX_SECONDS, seconds);
  const watched = Math.max(3, Math.ceil((runners * 120) / limit));
  return Math.min(MAX_SECONDS, remaining < limit / 3 ? Math.max(watched, 10) : watched);
}
