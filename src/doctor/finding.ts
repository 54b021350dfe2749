/** Describes the result of one check of an installation. */

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
