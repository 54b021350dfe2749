/** Microsoft Teams: Adaptive Cards through a Workflows webhook. */

import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { CONFIGS } from "../../src/schema/integrations.ts";
import { toMessage } from "../../src/senders/teams.ts";
import { BAD, hostile, sendTo, testFailures } from "./sending.ts";

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
    expect(requests.map(({ method, path, body }) => ({ method, path, body }))).toEqual([
      {
        method: "POST",
        path: "/workflows/1?sig=S3CRET-sig",
        body: {
          type: "message",
          attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content }],
        },
      },
    ]);
  });

  test("a test's name becomes no link, and a card stays below 28 kB", () => {
    expect(JSON.stringify(toMessage(hostile()))).not.toContain("[x](javascript");
    const long = "ü".repeat(5_000);
    const lines = Array.from({ length: 500 }, () => long);
    const facts = Array.from({ length: 30 }, () => ({ name: "Branch", value: long }));
    const body = JSON.stringify(toMessage({ ...BAD, title: long, text: long, lines, facts }));
    expect(Buffer.byteLength(body)).toBeLessThan(28_000);
  });
});

test("connectors that are retired are refused with a hint", () => {
  const url = "https://acme.webhook.office.com/webhookb2/1";
  const { issues } = v.safeParse(CONFIGS.teams, { url });
  expect(issues?.[0]?.message).toContain("retired");
});

test("a refusal tells the reason", async () => {
  const body = { error: { code: "DirectApiAuthorizationRequired", message: "no" } };
  const { outcome } = await sender.deliver({ scripts: [{ status: 401, body }] });
  expect(outcome).toMatchObject({
    status: "refused",
    error: expect.stringContaining("DirectApiAuthorizationRequired"),
  });
});

testFailures(sender);
