/** Messages to Discord, through a channel's webhook. */

import type { Notice } from "../schema/integrations.ts";
import { cut, isHttp, judge, oneLine, postJson, type Sender } from "./sender.ts";

const COLORS = { bad: 0xd1242f, good: 0x1a7f37, neutral: 0x6e7781 };

export function toMessage({ tone, title, text, facts, lines, url, buildUrl, occurredAt }: Notice) {
  const list = lines.map((line) => `- ${cut(oneLine(line), 250)}`).join("\n");
  const build = buildUrl && isHttp(buildUrl) ? [{ name: "Build", value: cut(buildUrl, 1_024) }] : [];
  return {
    content: cut(oneLine(title), 2_000),
    embeds: [
      {
        title: cut(oneLine(text) || oneLine(title), 256),
        ...(list === "" ? {} : { description: cut(list, 4_000) }),
        ...(url && isHttp(url) ? { url } : {}),
        color: COLORS[tone],
        fields: [
          ...facts
            .slice(0, 10)
            .map(({ name, value }) => ({ name: cut(name, 256), value: cut(oneLine(value), 100) || "–", inline: true })),
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
  actions: ["notify"],
  sample: "notify",

  async send(http, { url }, { notice, now }) {
    const target = new URL(url);
    // Without it Discord answers before it knows whether the message is right.
    target.searchParams.set("wait", "true");
    const answer = await http.request(postJson(target.href, {}, toMessage(notice)));
    return judge(answer, answer.status === 200, now);
  },
};
