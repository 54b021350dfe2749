/** Whether anybody wants to be told: what is imported from the past is no news. */

const NEWS_MS = 24 * 60 * 60_000;

/** `at`: when it happened; ISO 8601 or milliseconds. */
export const isNews = (at: string | number, now: number = Date.now()): boolean =>
  now - new Date(at).getTime() <= NEWS_MS;
