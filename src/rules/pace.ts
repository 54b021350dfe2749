/** How often runners come: as seldom as the budget of the key they share asks for, more often while somebody looks. */

const USUAL_SECONDS = 20;
/** A lease lasts 90 s, and a window of the rate limit 60. */
const LONGEST_SECONDS = 55;

export type Pace = {
  /** How many runners of the project there are. */
  runners: number;
  isWatched: boolean;
  /** Requests that the key has in a minute, and how many of them are left. */
  limit: number;
  remaining: number;
};

/** Seconds until a runner that holds something should come again: all of them together take two thirds of the budget. */
export function nextSeconds({ runners, isWatched, limit, remaining }: Pace): number {
  const seconds = Math.max(USUAL_SECONDS, Math.ceil((runners * 90) / limit));
  if (!isWatched || remaining < limit / 6) return Math.min(LONGEST_SECONDS, seconds);
  const watched = Math.max(3, Math.ceil((runners * 120) / limit));
  return Math.min(LONGEST_SECONDS, remaining < limit / 3 ? Math.max(watched, 10) : watched);
}
