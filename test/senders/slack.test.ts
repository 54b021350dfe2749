/** Slack: messages through an incoming webhook. */

import { describe, expect, test } from "bun:test";
import { toSlackMessage } from "../../src/senders/slack.ts";
import { BAD, BUG_LINE, BUG_URL, GOOD, HEADERS, hostile, KNOWN, sendTo, shown, testFailures } from "./sending.ts";

const sender = sendTo("slack", (url) => ({ url: `${url}/services/T/B/S3CRET-path` }), "notify");
const ok = { status: 200, body: "ok" };

describe("notify", () => {
  test("is a heading, the failures, where it happened, and two buttons", async () => {
    const { outcome, requests } = await sender.deliver({ scripts: [ok] });
    expect(outcome).toEqual({ status: "sent" });
    const section = (text: string) => ({ type: "section", text: { type: "plain_text", text } });
    const facts = ["Branch: main", "Commit: 0123456789ab"].map((text) => ({ type: "plain_text", text }));
    const button = (text: string, url: string | null) => ({ type: "button", text: { type: "plain_text", text }, url });
    const blocks = [
      { type: "header", text: { type: "plain_text", text: "🔴 Web: main failed", emoji: true } },
      section("1 failed, 9 passed\n• unit &gt; adds: expected 1, got 2"),
      { type: "context", elements: facts },
      { type: "actions", elements: [button("Open in Assay", BAD.url), button("Open the build", BAD.buildUrl)] },
    ];
    const body = { mrkdwn: false, text: "🔴 Web: main failed: 1 failed, 9 passed", blocks };
    expect(shown(requests)).toEqual([{ method: "POST", path: "/services/T/B/S3CRET-path", headers: HEADERS, body }]);
    const good = await sender.deliver({ notice: GOOD, scripts: [ok] });
    expect(good.requests[0]!.body.text).toBe("🟢 Web: main is green again: 10 passed");
  });

  test("links the known bugs between the failures and where it happened", () => {
    const before = toSlackMessage({ ...KNOWN, knownBugs: [] });
    expect(toSlackMessage(KNOWN)).toEqual({
      mrkdwn: false,
      text: before.text,
      blocks: [
        ...before.blocks.slice(0, 2),
        { type: "section", text: { type: "mrkdwn", text: `• <${BUG_URL}|${BUG_LINE}>` } },
        ...before.blocks.slice(2),
      ],
    });
    expect(before.blocks[1]).toEqual({
      type: "section",
      text: { type: "plain_text", text: "1 failed, 9 passed\n• unit &gt; adds (known bug #12): expected 1, got 2" },
    });
  });

  test("a test's name pages nobody, and no build address becomes a link that is none", () => {
    const message = JSON.stringify(toSlackMessage({ ...hostile(), buildUrl: "javascript:alert(1)" }));
    // The only link is that of the known bug.
    expect(message.split("<")).toHaveLength(2);
    expect(message).toContain(`<${BUG_URL}|&lt;!channel&gt;`);
    expect(message).not.toContain("\\u001b");
    expect(message).toContain("&lt;!channel&gt;");
    expect(message).not.toContain('"url":"javascript');
  });

  test("a test's name is shown as it is: no mark is a format, and no address a link", () => {
    const name = "*a* _b_ ~c~ `d` https://evil.example mailto:x@evil.example www.evil.example";
    const message = toSlackMessage({
      ...{ ...BAD, text: name, lines: [name], facts: [{ name: "Branch", value: name }] },
      knownBugs: [{ text: name, url: BUG_URL }],
    } as never);
    const formatted = message.blocks.filter(({ text }: any) => text?.type === "mrkdwn") as any[];
    expect(formatted).toHaveLength(1);
    expect(formatted[0].text.text).not.toMatch(/(?<!\u200b)[*_~`]/);
    const texts = JSON.stringify({ ...message, blocks: message.blocks.slice(0, -1) }).replaceAll(BUG_URL, "");
    expect(texts).toContain("*a*");
    expect(texts).not.toMatch(/https?:\/\/|mailto:\w|www\.\w/);
  });

  test("keeps to Slack's limits, without cutting an entity in two", () => {
    const long = "&".repeat(5_000);
    const lines = Array.from({ length: 500 }, () => long);
    const facts = [{ name: "Branch", value: long }];
    const { blocks, text } = toSlackMessage({ ...BAD, title: long, text: long, lines, facts });
    const [header, section, context] = blocks as any[];
    expect(text.length).toBeLessThanOrEqual(3_000);
    expect(header.text.text.length).toBeLessThanOrEqual(150);
    expect(section.text.text.length).toBeLessThanOrEqual(3_000);
    expect(context.elements[0].text.length).toBeLessThanOrEqual(300);
    for (const part of [text, header.text.text, section.text.text, context.elements[0].text])
      expect(part.replaceAll("&amp;", "")).not.toContain("&");
  });
});

testFailures(sender, ["notify"], {
  // Only 200 with "ok" is success.
  reasons: [
    [200, "no_service", "Answered 200: no_service"],
    [200, "<html>ok</html>", "Answered 200: <html>ok</html>"],
    [400, "invalid_blocks", "Answered 400: invalid_blocks"],
    [404, "channel_not_found", "Answered 404: channel_not_found"],
  ],
});
