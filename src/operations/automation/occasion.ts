/** Declares the input and the result of an action of an automation. */

import type { ActionResult, AutomationRun } from "../../schema/automation_runs.ts";
import type { Notification } from "../../schema/notifications.ts";
import type { AutomationRow, TeamProject } from "../../store/automations.ts";
import type { EventRow } from "../../store/events.ts";

export type AutomationServices = {
  publicUrl: string;
  now: Date;
  dryRun?: boolean;
  /** Gets internal errors; the user gets a failed run. */
  onBug: (error: unknown) => void;
};

/** The subject of an action. */
export type Occasion = {
  teamId: string;
  automation: AutomationRow;
  event: EventRow | null;
  project: TeamProject | null;
  notice: Notification;
  depth: number;
  cause: AutomationRun["cause"];
};

export type ActionAnswer = Omit<ActionResult, "type">;

export const skipped = (reason: string): ActionAnswer => ({ status: "skipped", reason });
export const failed = (reason: string): ActionAnswer => ({ status: "failed", reason });
