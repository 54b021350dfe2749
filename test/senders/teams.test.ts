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
    const content = {
      $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
      type: "AdaptiveCard",
      version: "1.4",
      body: [
        {
          type: "TextBlock",
          text: "Web: main failed",
          wrap: true,
          size: "Large",
          weight: "Bolder",
          color: "Attention",
        },
        { type: "TextBlock", text: "1 failed, 9 passed", wrap: true },
        {
          type: "FactSet",
          facts: [
            { title: "Branch", value: "main" },
            { title: "Commit", value: "0123456789ab" },
          ],
        },
        { type: "TextBlock", text: "- unit > adds: expected 1, got 2", wrap: true, spacing: "None" },
      ],
      actions: [
        { type: "Action.OpenUrl", title: "Open in Assay", url: BAD.url },
        { type: "Action.OpenUrl", title: "Open the build", url: BAD.buildUrl },
      ],
    };
    expect(shown(requests)).toEqual([
      {
        method: "POST",
        path: "/workflows/1?sig=S3CRET-sig",
        headers: HEADERS,
        body: {
          type: "message",
          attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content }],
        },
      },
    ]);
    const good = await sender.deliver({ notice: GOOD, scripts: [{ status: 202 }] });
    expect(good.requests[0]!.body.attachments[0].content.body).toEqual([
      { ...content.body[0], text: "Web: main is green again", color: "Good" },
      { type: "TextBlock", text: "10 passed", wrap: true },
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
  for (const url of [
    "https://acme.webhook.office.com/webhookb2/1",
    "https://ACME.Webhook.Office.com/webhookb2/1",
    "https://outlook.office.com/webhook/1",
  ]) {
    const { issues } = v.safeParse(CONFIGS.teams, { url });
    expect(issues?.map(({ message }) => message)).toEqual([
      "expected the address of a Workflows webhook: connectors at office.com are retired",
    ]);
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
