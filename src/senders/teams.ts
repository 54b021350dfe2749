/** Messages to Microsoft Teams, as Adaptive Cards through a Workflows webhook. */

import {
  MAX_BUG_LINE_CHARACTERS,
  shorten,
  judge,
  linkedLinesOf,
  linksOf,
  oneLine,
  postJson,
  type Sender,
} from "./sender.ts";
import type { Notification } from "../schema/notifications.ts";

const COLORS = { bad: "Attention", good: "Good", neutral: "Default" };
/** About 28 kB may be sent. */
const MAX_BYTES = 27_000;
const MAX_LINES = 20;

/** Text blocks understand some Markdown: a test's name should not become a link. */
const escape = (text: string, max: number) => shorten(oneLine(text), max).replace(/[[\]*_`\\]/g, "\\$&");

const block = (text: string, more: Record<string, unknown> = {}) => ({ type: "TextBlock", text, wrap: true, ...more });

/** Includes as many lines as fit. */
export function toTeamsMessage(notice: Notification) {
  for (let count = Math.min(notice.lines.length, MAX_LINES); ; count = Math.floor(count / 2)) {
    const message = toCard({ ...notice, lines: notice.lines.slice(0, count) });
    if (count === 0 || Buffer.byteLength(JSON.stringify(message)) < MAX_BYTES) return message;
  }
}

function toCard(notice: Notification) {
  const { tone, title, text, facts, lines, url, buildUrl } = notice;
  const actions = linksOf({ url, buildUrl }).map(({ open, url }) => ({ type: "Action.OpenUrl", title: open, url }));
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      block(escape(title, 300), { size: "Large", weight: "Bolder", color: COLORS[tone] }),
      block(escape(text, 1_000)),
      ...(facts.length === 0
        ? []
        : [
            {
              type: "FactSet",
              facts: facts
                .slice(0, 10)
                .map(({ name, value }) => ({ title: shorten(name, 100), value: escape(value, 300) })),
            },
          ]),
      ...lines.map((line) => block(`- ${escape(line, 250)}`, { spacing: "None" })),
      ...linkedLinesOf(notice).map(({ text, url }) =>
        block(`- [${escape(text, MAX_BUG_LINE_CHARACTERS)}](${url})`, { spacing: "None" }),
      ),
    ],
    ...(actions.length > 0 ? { actions } : {}),
  };
  const attachment = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content };
  return { type: "message", attachments: [attachment] };
}

export const teams: Sender<"teams"> = {
  actions: ["notify", "digest"],
  sample: "notify",

  async send(http, { url }, { notice, now }) {
    const answer = await http.request(postJson(url, {}, toTeamsMessage(notice)));
    return judge(answer, answer.status === 202, now);
  },
};
