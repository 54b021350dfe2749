/** Determines the data that may be deleted for its age. A deletion of more than a day's worth is announced, and begins a day later. */

export const AGED_KINDS = ["results", "attachments", "executions"] as const;
export type AgedKind = (typeof AGED_KINDS)[number];

/** Days that each kind is kept; 0: forever. Attachments and results are deleted with their execution at the latest. */
export type RetentionSettings = Record<AgedKind, number>;

/** Servers whose settings differ delete what none of them keeps. */
export function toCommonRetention(settings: readonly RetentionSettings[]): RetentionSettings {
  const longest = (kind: AgedKind) => {
    const days = settings.map((one) => one[kind]);
    return days.includes(0) ? 0 : Math.max(...days);
  };
  return { results: longest("results"), attachments: longest("attachments"), executions: longest("executions") };
}

export type ServerRetention = { host: string; settings: RetentionSettings };

/** `ownDays`: the retention of the project itself, of results; null: it has none. An execution is kept as long as its results. */
export function toKeptDays(kind: AgedKind, settings: RetentionSettings, ownDays: number | null): number {
  const results = ownDays ?? settings.results;
  if (kind === "results") return results;
  if (kind === "attachments") return settings.attachments;
  return results === 0 || settings.executions === 0 ? 0 : Math.max(results, settings.executions);
}

export type PlannedDeletion = {
  /** The retention that it was announced for. */
  days: number;
  /** Null: an administrator has decided to keep the data. */
  beginsAt: string | null;
};

export type PlannedDeletionRow = PlannedDeletion & {
  projectId: string;
  projectName: string;
  kind: AgedKind;
  /** Runs with results, attachments or executions, when it was announced. */
  objects: number;
  /** All of them are older. */
  before: string;
};

export const ANNOUNCED_MS = 86_400_000;

/**
 * The first round after a day without rounds also finds more than a day's worth, and waits: a server cannot know whether its setting or the
 * time was different before.
 */
export function decideDeletion(
  { days, hasMore }: { days: number; hasMore: boolean },
  planned: PlannedDeletion | undefined,
  now: Date,
): "delete" | "wait" | "announce" {
  if (planned?.beginsAt === null) return "wait";
  if (!hasMore) return "delete";
  // Fewer days than those that were announced delete more than was announced.
  if (!planned || days < planned.days) return "announce";
  return Date.parse(planned.beginsAt!) <= now.getTime() ? "delete" : "wait";
}
