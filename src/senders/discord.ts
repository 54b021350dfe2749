/** Messages to Discord, through a channel's webhook. */

import {
  MAX_BUG_LINE_CHARACTERS,
  shorten,
  isHttp,
  judge,
  linkedLinesOf,
  oneLine,
  postJson,
  type Sender,
} from "./sender.ts";
import type { Notification } from "../schema/notifications.ts";

const COLORS = { bad: 0xd1242f, good: 0x1a7f37, neutral: 0x6e7781 };

/** The maximum length of all lines together, and of those that are links beside others. */
const MAX_LIST_CHARACTERS = 3_000;
const MAX_LINKED_CHARACTERS = 2_000;

/** Markdown would turn parts of a test's name into links. Truncates first, because every character may become two. */
const escape = (text: string, max: number) => shorten(oneLine(text), max / 2).replace(/[\\*_~`|[\]<]/g, "\\$&");

export function toDiscordMessage(notice: Notification) {
  const { tone, title, text, facts, lines, url, buildUrl, occurredAt } = notice;
  // The texts of an embed may have 6,000 characters in total.
  let room = lines.length > 0 ? MAX_LINKED_CHARACTERS : MAX_LIST_CHARACTERS;
  const bugs = linkedLinesOf(notice)
    .map(({ text, url }) => `\n- [${escape(text, 2 * MAX_BUG_LINE_CHARACTERS)}](${url})`)
    .filter((line) => (room -= line.length) >= 0)
    .join("");
  const names = lines.map((line) => `- ${escape(line, 250)}`).join("\n");
  const list = `${shorten(names, MAX_LIST_CHARACTERS - bugs.length).replace(/\\…$/, "…")}${bugs}`.trimStart();
  const build = buildUrl && isHttp(buildUrl) ? [{ name: "Build", value: shorten(buildUrl, 1_024) }] : [];
  return {
    content: escape(title, 2_000),
    embeds: [
      {
        title: escape(oneLine(text) || title, 256),
        ...(list === "" ? {} : { description: list }),
        ...(url && isHttp(url) ? { url } : {}),
        color: COLORS[tone],
        fields: [
          ...facts
            .slice(0, 10)
            .map(({ name, value }) => ({ name: shorten(name, 50), value: escape(value, 100) || "–", inline: true })),
          ...build,
        ],
        timestamp: occurredAt,
      },
    ],
    // Otherwise a test named @everyone would page everybody.
    allowed_mentions: { parse: [] },
  };
}

export const discord: Sender<"discord"> = {
  actions: ["notify", "digest"],
  sample: "notify",

  async send(http, { url }, { notice, now }) {
    const target = new URL(url);
    // Without this parameter Discord answers before it has validated the message.
    target.searchParams.set("wait", "true");
    const answer = await http.request(postJson(target.href, {}, toDiscordMessage(notice)));
    return judge(answer, answer.status === 200, now);
  },
};
