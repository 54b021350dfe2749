/** Decides whether something is recent enough for a notification. Imported results of the past are not. */

const MAX_AGE_MS = 24 * 60 * 60_000;

/** `at` is the time of the occurrence, in ISO 8601 or milliseconds. */
export const isRecent = (at: string | number, now: number = Date.now()): boolean =>
  now - new Date(at).getTime() <= MAX_AGE_MS;
