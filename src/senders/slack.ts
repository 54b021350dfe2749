/** Messages to Slack, through an incoming webhook. */

import {
  MAX_BUG_LINE_CHARACTERS,
  shorten,
  judge,
  linkedLinesOf,
  linksOf,
  oneLine,
  postJson,
  type Sender,
  unlink,
} from "./sender.ts";
import type { Notification } from "../schema/notifications.ts";

/** Separates marks and names of emoji in the label of a link, because Slack has no escape for them. */
const unmark = (text: string): string => text.replace(/[*_~`]/g, "\u200b$&").replace(/:(?=[\w+'-]+:)/g, ":\u200b");

/** Escapes text, because a test named <!channel> would otherwise notify everyone. Truncates first, so that no entity is split. */
const escape = (text: string, max: number): string => {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  for (let length = max; ; length -= Math.ceil(length / 10)) {
    const escaped = unlink(shorten(text, length)).replace(/[&<>]/g, (char) => entities[char]!);
    if (escaped.length <= max) return escaped;
  }
};

const MARKS = { bad: "🔴", good: "🟢", neutral: "⚪" };

const button = (label: string, url: string) => ({ type: "button", text: { type: "plain_text", text: label }, url });

export function toSlackMessage(notice: Notification) {
  const { tone, title, text, facts, lines, url, buildUrl } = notice;
  const heading = `${MARKS[tone]} ${oneLine(title)}`;
  const list = lines.map((line) => `• ${shorten(oneLine(line), 250)}`).join("\n");
  const buttons = linksOf({ url, buildUrl }).map(({ open, url }) => button(open, shorten(url, 3_000)));
  const context = facts.slice(0, 10).map(({ name, value }) => ({
    type: "plain_text",
    text: escape(`${name}: ${oneLine(value)}`, 300),
  }));
  return {
    // Names contain marks such as "*" and "_" literally.
    mrkdwn: false,
    text: escape(`${heading}: ${oneLine(text)}`, 3_000),
    blocks: [
      { type: "header", text: { type: "plain_text", text: escape(heading, 150), emoji: true } },
      {
        type: "section",
        text: { type: "plain_text", text: escape(list === "" ? oneLine(text) : `${oneLine(text)}\n${list}`, 3_000) },
      },
      ...linkedLinesOf(notice).map(({ text, url }) => ({
        type: "section",
        text: {
          type: "mrkdwn",
          text: `• <${url}|${escape(unmark(oneLine(text)), 2 * MAX_BUG_LINE_CHARACTERS)}>`,
          // Otherwise Slack looks for addresses, channels and people in the text.
          verbatim: true,
        },
      })),
      ...(context.length > 0 ? [{ type: "context", elements: context }] : []),
      ...(buttons.length > 0 ? [{ type: "actions", elements: buttons }] : []),
    ],
  };
}

export const slack: Sender<"slack"> = {
  actions: ["notify", "digest"],
  sample: "notify",

  async send(http, { url }, { notice, now }) {
    const answer = await http.request(postJson(url, {}, toSlackMessage(notice)));
    // Slack answers with the error as text.
    const says = () => (answer.text === "" ? undefined : oneLine(answer.text));
    return judge(answer, answer.status === 200 && answer.text.trim() === "ok", now, says);
  },
};
