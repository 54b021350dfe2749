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
        { type: "section", text: { type: "mrkdwn", text: `• <${BUG_URL}|${BUG_LINE}>`, verbatim: true } },
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

  // The rules of docs.slack.dev/messaging/formatting-message-text: "&", "<" and ">" are entities in every text; where the type is mrkdwn, "*", "_",
  // "~", "`" and ":name:" format, without an escape, and without "verbatim" addresses, channels and people become links.
  test("these bytes are sent for a name of everything that Slack formats", () => {
    const name =
      "<!channel> <@U1> <#C1|c> & *a* _b_ ~c~ `d` :x: @here #general https://x.example mailto:x@x.example www.x.example";
    const message = toSlackMessage({
      ...{ ...BAD, title: name, text: name, lines: [name], facts: [{ name: "Branch", value: name }] },
      knownBugs: [{ text: name, url: BUG_URL }],
    } as never);
    const mentions = "&lt;!channel&gt; &lt;@U1&gt; &lt;#C1|c&gt; &amp;";
    const addresses = "@here #general https:\u200b//x.example mailto:\u200bx@x.example www.\u200bx.example";
    const plain = `${mentions} *a* _b_ ~c~ \`d\` :x: ${addresses}`;
    const label = `${mentions} \u200b*a\u200b* \u200b_b\u200b_ \u200b~c\u200b~ \u200b\`d\u200b\` :\u200bx: ${addresses}`;
    const [header, section, bug, context] = message.blocks as any[];
    expect([message.mrkdwn, message.text]).toEqual([false, `🔴 ${plain}: ${plain}`]);
    expect(header.text).toEqual({ type: "plain_text", text: expect.stringContaining(mentions), emoji: true });
    expect(section.text).toEqual({ type: "plain_text", text: `${plain}\n• ${plain}` });
    expect(bug.text).toEqual({ type: "mrkdwn", text: `• <${BUG_URL}|${label}>`, verbatim: true });
    expect(context.elements).toEqual([{ type: "plain_text", text: `Branch: ${plain}` }]);
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
