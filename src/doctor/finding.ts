/** Describes the result of one check of an installation. */

import { counted } from "../wording/numbers.ts";

export type Finding = {
  level: "ok" | "warn" | "fail";
  /** The part of the installation that was checked, such as "disk". */
  area: string;
  /** One sentence without a period. */
  message: string;
  /** The action that removes the cause; only for "warn" and "fail". */
  remedy?: string;
};

/** Findings of one area. */
export const findingsOf = (area: string) => ({
  ok: (message: string): Finding => ({ level: "ok", area, message }),
  warn: (message: string, remedy: string): Finding => ({ level: "warn", area, message, remedy }),
  fail: (message: string, remedy: string): Finding => ({ level: "fail", area, message, remedy }),
});

/** Returns a number of seconds in its largest unit: "3 hours". */
export function toRoughTime(seconds: number): string {
  const [value, unit]: [number, string] =
    seconds < 120
      ? [seconds, "second"]
      : seconds < 7_200
        ? [seconds / 60, "minute"]
        : seconds < 172_800
          ? [seconds / 3_600, "hour"]
          : [seconds / 86_400, "day"];
  return counted(Math.round(value), unit);
}
