/** Notifications: what integrations send. */

import type { EventType } from "./events.ts";

/** `text`: the title, and the sentence that proves which commit broke its test; `url`: the page of the bug report. */
type LinkedBug = LinkedLine & { number: number };

/** A line with the address of its page. */
export type LinkedLine = { text: string; url: string };

/** Something that has happened, for people and for programs; every sender makes its own request of it. */
export type Notification = {
  type: EventType | "schedule" | "digest" | "dispatch" | "test";
  occurredAt: string;
  tone: "bad" | "good" | "neutral";
  title: string;
  /** The title of an issue about it. */
  subject: string;
  /** One line. */
  text: string;
  facts: { name: string; value: string }[];
  /** A line each: failed tests. */
  lines: string[];
  /** Known bugs that its failures belong to, one line each. Notifications without one have no list. */
  knownBugs?: readonly LinkedBug[];
  /** The lines of a digest, which only messages have. */
  links?: readonly LinkedLine[];
  /** The address of its dashboard page. */
  url: string | null;
  buildUrl: string | null;
  branch: string | null;
  commit: string | null;
  pullRequest: string | null;
  /** Identifies the problem; equal for a failure and its recovery. */
  topic: string;
  /** The state of the commit. */
  state: "success" | "failure" | "error" | null;
  /** The webhook's `data`. */
  data: Record<string, unknown>;
};
