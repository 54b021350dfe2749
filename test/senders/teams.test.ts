/** Microsoft Teams: Adaptive Cards through a Workflows webhook. */

import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { CONFIGS } from "../../src/schema/integration_configs.ts";
import { toTeamsMessage } from "../../src/senders/teams.ts";
import { BAD, BUG_LINE, BUG_URL, GOOD, HEADERS, hostile, KNOWN, sendTo, shown, testFailures } from "./sending.ts";

const sender = sendTo("teams", (url) => ({ url: `${url}/workflows/1?sig=S3CRET-sig` }), "notify");

describe("notify", () => {
  test("is one Adaptive Card", async () => {
    const { outcome, requests } = await sender.deliver({ scripts: [{ status: 202 }] });
    expect(outcome).toEqual({ status: "sent" });
    const text = (text: string, more: object = {}) => ({ type: "TextBlock", text, wrap: true, ...more });
    const open = (title: string, url: string | null) => ({ type: "Action.OpenUrl", title, url });
    const facts = [
      { title: "Branch", value: "main" },
      { title: "Commit", value: "0123456789ab" },
    ];
    const content = {
      ...{ $schema: "http://adaptivecards.io/schemas/adaptive-card.json", type: "AdaptiveCard", version: "1.4" },
      body: [
        text("Web: main failed", { size: "Large", weight: "Bolder", color: "Attention" }),
        text("1 failed, 9 passed"),
        { type: "FactSet", facts },
        text("- unit > adds: expected 1, got 2", { spacing: "None" }),
      ],
      actions: [open("Open in Assay", BAD.url), open("Open the build", BAD.buildUrl)],
    };
    const card = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content };
    const body = { type: "message", attachments: [card] };
    expect(shown(requests)).toEqual([{ method: "POST", path: "/workflows/1?sig=S3CRET-sig", headers: HEADERS, body }]);
    const good = await sender.deliver({ notice: GOOD, scripts: [{ status: 202 }] });
    expect(good.requests[0]!.body.attachments[0].content.body).toEqual([
      { ...content.body[0], text: "Web: main is green again", color: "Good" },
      text("10 passed"),
      content.body[2],
    ]);
  });

  test("links the known bugs below the failures", () => {
    const bodyOf = (notice: typeof KNOWN): object[] => toTeamsMessage(notice).attachments[0]!.content.body;
    expect(bodyOf(KNOWN)).toEqual([
      ...bodyOf({ ...KNOWN, knownBugs: [] }),
      { type: "TextBlock", text: `- [${BUG_LINE}](${BUG_URL})`, wrap: true, spacing: "None" },
    ]);
  });

  test("a test's name becomes no link, and a card stays below 28 kB", () => {
    const risky = JSON.stringify(toTeamsMessage(hostile()));
    expect(risky).not.toMatch(/\[x\]\(javascript|[^\\]\]\(https:\/\/evil/);
    // Much in the second has to be escaped.
    for (const long of ["ü".repeat(5_000), "\\".repeat(500)]) {
      const lines = Array.from({ length: 500 }, () => long);
      const facts = Array.from({ length: 30 }, () => ({ name: "Branch", value: long }));
      const body = JSON.stringify(toTeamsMessage({ ...BAD, title: long, text: long, lines, facts }));
      expect(Buffer.byteLength(body)).toBeLessThan(28_000);
    }
  });
});

test("connectors that are retired are refused with a hint", () => {
  const hint = "expected the address of a Workflows webhook: connectors at office.com are retired";
  for (const place of [
    "acme.webhook.office.com/webhookb2",
    "ACME.Webhook.Office.com/webhookb2",
    "outlook.office.com/webhook",
  ]) {
    const { issues } = v.safeParse(CONFIGS.teams, { url: `https://${place}/1` });
    expect(issues?.map(({ message }) => message)).toEqual([hint]);
  }
  expect(v.is(CONFIGS.teams, { url: "https://prod-1.westus.logic.azure.com/workflows/1?sig=2" })).toBe(true);
});

test("the signature in the address is hidden, however the receiver writes it back", async () => {
  const signed = sendTo("teams", (url) => ({ url: `${url}/workflows/1?sv=1.0&sig=S3CRET-sig` }), "notify");
  for (const write of [
    (path: string) => JSON.stringify({ path }).replaceAll("&", "\\u0026"),
    (path: string) => JSON.stringify(Object.fromEntries(new URL(path, "http://x").searchParams)),
  ]) {
    const { attempt } = await signed.deliver({ scripts: [({ path }) => ({ status: 400, body: write(path) })] });
    expect(attempt.answer).not.toContain("S3CRET-sig");
  }
});

const refused = { code: "DirectApiAuthorizationRequired", message: "no" };
const unreadable = { code: "TriggerInputSchemaMismatch", message: "The input body does not match" };
testFailures(sender, ["notify"], {
  reasons: [
    [401, { error: refused }, `Answered 401: ${JSON.stringify(refused)}`],
    [400, { error: unreadable }, `Answered 400: ${JSON.stringify(unreadable)}`],
  ],
});
