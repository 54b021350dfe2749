/** Alerts in PagerDuty: bad news triggers, good news resolves what the bad news has triggered, the rest is information. */

import {
  shorten,
  judge,
  linksOf,
  listAt,
  MAX_BUG_LINE_CHARACTERS,
  oneLine,
  postJson,
  type Sender,
  textAt,
} from "./sender.ts";
import type { Notification } from "../schema/notifications.ts";

const says = (body: unknown): string | undefined => {
  return [textAt(body, "message"), ...listAt(body, "errors").map(String)].filter(Boolean).join(": ") || undefined;
};

/** Returns at most 255 characters; a longer topic stays unique by its digest. */
const toDedupKey = (topic: string): string =>
  topic.length <= 255 ? topic : `${topic.slice(0, 190)} ${Bun.SHA256.hash(topic, "hex")}`.toWellFormed();

/** A task of the branch has recovered. The incident is about the branch, and stays open until all have. */
const isStillRed = ({ data }: Notification): boolean => listAt(data, "execution", "stillRed").length > 0;

export const pagerduty: Sender<"pagerduty"> = {
  actions: ["notify"],
  sample: "notify",
  stateOf: ({ notice }) => (isStillRed(notice) ? undefined : toDedupKey(notice.topic)),

  async send(http, { baseUrl, routingKey, severity }, { notice, now }) {
    if (isStillRed(notice))
      return { status: "inapplicable", error: "Nothing to send: other tasks of the branch are still red" };
    const { tone, title, text, facts, lines, knownBugs = [], url, buildUrl, topic, occurredAt } = notice;
    const links = [
      ...linksOf({ url, buildUrl }).map(({ name, url }) => ({ href: url, text: name })),
      ...knownBugs.map(({ text, url }) => ({ href: url, text: shorten(oneLine(text), MAX_BUG_LINE_CHARACTERS) })),
    ];
    const payload = {
      summary: shorten(`${oneLine(title)}: ${oneLine(text)}`, 1_024),
      source: "Assay",
      severity: tone === "neutral" ? "info" : severity,
      timestamp: occurredAt,
      custom_details: {
        ...Object.fromEntries(facts.map(({ name, value }) => [name, shorten(oneLine(value), 1_000)])),
        ...(lines.length > 0 ? { details: lines.slice(0, 20).map((line) => shorten(oneLine(line), 250)) } : {}),
      },
    };
    const key = { routing_key: routingKey, dedup_key: toDedupKey(topic) };
    const body =
      tone !== "good" ? { ...key, event_action: "trigger", payload, links } : { ...key, event_action: "resolve" };
    const answer = await http.request(postJson(`${baseUrl}/v2/enqueue`, {}, body));
    return judge(answer, answer.status === 202, now, says);
  },
};
