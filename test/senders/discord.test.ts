/** Discord: messages through a channel's webhook. */

import { describe, expect, test } from "bun:test";
import { toDiscordMessage } from "../../src/senders/discord.ts";
import { BAD, BUG_LINE, BUG_URL, GOOD, HEADERS, hostile, KNOWN, sendTo, shown, testFailures } from "./sending.ts";

const sender = sendTo("discord", (url) => ({ url: `${url}/api/webhooks/1/S3CRET-token` }), "notify");

describe("notify", () => {
  test("is a line and an embed, and asks whether it was right", async () => {
    const { outcome, requests } = await sender.deliver({ scripts: [{ status: 200, body: { id: "1" } }] });
    expect(outcome).toEqual({ status: "sent" });
    const embed = {
      ...{
        title: "1 failed, 9 passed",
        description: "- unit > adds: expected 1, got 2",
        url: BAD.url,
        color: 0xd1242f,
      },
      fields: [
        { name: "Branch", value: "main", inline: true },
        { name: "Commit", value: "0123456789ab", inline: true },
        { name: "Build", value: BAD.buildUrl },
      ],
      timestamp: BAD.occurredAt,
    };
    const body = { content: "Web: main failed", embeds: [embed], allowed_mentions: { parse: [] } };
    expect(shown(requests)).toEqual([
      { method: "POST", path: "/api/webhooks/1/S3CRET-token?wait=true", headers: HEADERS, body },
    ]);
    const good = await sender.deliver({ notice: GOOD, scripts: [{ status: 200 }] });
    expect(good.requests[0]!.body.embeds[0].color).toBe(0x1a7f37);
  });

  test("links the known bugs below the failures", () => {
    const before = toDiscordMessage({ ...KNOWN, knownBugs: [] });
    const [embed] = before.embeds;
    expect(toDiscordMessage(KNOWN)).toEqual({
      ...before,
      embeds: [{ ...embed!, description: `${embed!.description}\n- [${BUG_LINE}](${BUG_URL})` }],
    });
    const [alone] = toDiscordMessage({ ...KNOWN, lines: [] }).embeds;
    expect(alone!.description).toBe(`- [${BUG_LINE}](${BUG_URL})`);
    const [risky] = toDiscordMessage(hostile()).embeds;
    // The only link is that of the known bug.
    expect(risky!.description!.match(/(?<!\\)[[\]]/g)).toEqual(["[", "]"]);
  });

  test("mentions nobody, and keeps to Discord's limits", () => {
    const long = "x".repeat(9_000);
    const lines = Array.from({ length: 500 }, () => long);
    const facts = Array(10).fill({ name: "Branch", value: long });
    const knownBugs = Array(5).fill({ number: 1, text: "*".repeat(900), url: BUG_URL });
    for (const notice of [
      hostile(),
      { ...BAD, title: long, text: long, lines, facts: [{ name: long, value: long }] },
      { ...BAD, text: long, lines, facts, buildUrl: `https://ci.test/${long}` },
      { ...BAD, title: long, text: long, lines, knownBugs },
    ]) {
      const { content, embeds, allowed_mentions } = toDiscordMessage(notice);
      const [embed] = embeds as any[];
      expect(allowed_mentions).toEqual({ parse: [] });
      expect(content.length).toBeLessThanOrEqual(2_000);
      expect(embed.title.length).toBeLessThanOrEqual(256);
      expect(embed.description.length).toBeLessThanOrEqual(4_096);
      const all = embed.fields.map(({ name, value }: any) => name + value).join("") + embed.title + embed.description;
      expect(all.length).toBeLessThanOrEqual(6_000);
    }
  });
});

test("a thread's webhook keeps its thread", async () => {
  const thread = sendTo("discord", (url) => ({ url: `${url}/api/webhooks/1/S3CRET?thread_id=5&wait=false` }), "notify");
  const { requests } = await thread.deliver({ notice: hostile(), scripts: [{ status: 200 }] });
  expect(requests.map(({ path, body }) => [path, body.allowed_mentions])).toEqual([
    ["/api/webhooks/1/S3CRET?thread_id=5&wait=true", { parse: [] }],
  ]);
});

test("a test's name becomes no link", () => {
  const { content, embeds } = toDiscordMessage({ ...hostile(), title: "[log in](https://phish.test)", knownBugs: [] });
  expect([content, embeds[0]!.description]).not.toContainEqual(expect.stringMatching(/(^|[^\\])\[/));
});

test.each([520, 522, 524])("a %d of the proxy before Discord is retried", async (status) => {
  expect((await sender.deliver({ scripts: [{ status }] })).outcome.status).toBe("retry");
});

const form = { message: "Invalid Form Body", errors: { embeds: ["0"] } };
testFailures(sender, ["notify"], {
  reasons: [
    [401, { message: "Invalid Webhook Token", code: 50027 }, "Answered 401: Invalid Webhook Token"],
    [400, form, 'Answered 400: Invalid Form Body: {"embeds":["0"]}'],
  ],
});
