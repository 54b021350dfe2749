/** Writes numbers, counted things, durations and days for people. */

/** Returns "1,210". */
export const toCount = (value: number): string => value.toLocaleString("en-US");

/** Returns "1 failure" or "3 failures"; `plural`: of a name that takes more than an s. */
export const counted = (value: number, name: string, plural = `${name}s`): string =>
  `${toCount(value)} ${value === 1 ? name : plural}`;

/** Returns "812 bytes", "1.4 kB", "48.2 MB" or "1.5 GB". */
export const toSize = (bytes: number): string =>
  bytes < 1_000
    ? counted(bytes, "byte")
    : bytes < 1_000_000
      ? `${(bytes / 1_000).toFixed(1)} kB`
      : bytes < 1_000_000_000
        ? `${(bytes / 1_000_000).toFixed(1)} MB`
        : `${(bytes / 1_000_000_000).toFixed(1)} GB`;

/** Returns "4:12" for a minute or more, "8.3 s" for a second or more, "830 ms" below. */
export function toDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const pad = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}

/** Returns "4 Nov", in UTC. */
export const toDay = (iso: string): string =>
  new Date(iso).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
