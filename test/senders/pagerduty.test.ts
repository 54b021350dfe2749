/** PagerDuty: alerts that a green run resolves. */

import { expect, test } from "bun:test";
import { BAD, BUG_LINE, BUG_URL, GOOD, HEADERS, hostile, KNOWN, sendTo, shown, testFailures } from "./sending.ts";

const sender = sendTo("pagerduty", (url) => ({ baseUrl: url, routingKey: "S3CRET-routing-key" }), "notify");
const accepted = { status: 202, body: { status: "success" } };
const LINKS = [
  { href: BAD.url, text: "Assay" },
  { href: BAD.buildUrl, text: "Build" },
];

test("bad news triggers an alert, good news resolves that one", async () => {
  const bad = await sender.deliver({ scripts: [accepted] });
  expect(bad.outcome).toEqual({ status: "sent" });
  const asked = (body: object) => [
    {
      ...{ method: "POST", path: "/v2/enqueue", headers: HEADERS },
      body: { routing_key: "S3CRET-routing-key", dedup_key: BAD.topic, ...body },
    },
  ];
  const payload = {
    ...{ summary: "Web: main failed: 1 failed, 9 passed", source: "Assay", severity: "error" },
    timestamp: BAD.occurredAt,
    custom_details: { Branch: "main", Commit: "0123456789ab", details: ["unit > adds: expected 1, got 2"] },
  };
  expect(shown(bad.requests)).toEqual(asked({ event_action: "trigger", payload, links: LINKS }));
  const good = await sender.deliver({ notice: GOOD, scripts: [accepted] });
  expect(good.outcome).toEqual({ status: "sent" });
  expect(shown(good.requests)).toEqual(asked({ event_action: "resolve" }));
});

test("a task that is green again does not resolve the alert while others of its branch are red", async () => {
  const data = { ...GOOD.data, execution: { stillRed: ["e2e"] } };
  const { outcome, requests } = await sender.deliver({ notice: { ...GOOD, data } });
  expect([outcome.status, requests.length]).toEqual(["inapplicable", 0]);
});

test("an alert links the known bugs", async () => {
  const { requests } = await sender.deliver({ notice: KNOWN, scripts: [accepted] });
  expect(requests[0]!.body.links).toEqual([...LINKS, { href: BUG_URL, text: BUG_LINE }]);
});

test("good news about a long topic resolves what the bad news has triggered", async () => {
  const topic = "😀".repeat(300);
  const keys: string[] = [];
  for (const notice of [BAD, GOOD]) {
    const { requests } = await sender.deliver({ notice: { ...notice, topic }, scripts: [accepted] });
    keys.push(requests[0]!.body.dedup_key);
  }
  expect(keys[0]).toBe(keys[1]!);
  expect(keys[0]!.length).toBeLessThanOrEqual(255);
  const whole = await sender.deliver({ notice: { ...BAD, topic: "x".repeat(255) }, scripts: [accepted] });
  expect(whole.requests[0]!.body.dedup_key).toBe("x".repeat(255));
});

test("the severity is the integration's", async () => {
  const config = (url: string) => ({ baseUrl: url, routingKey: "S3CRET-routing-key", severity: "critical" });
  const critical = sendTo("pagerduty", config, "notify");
  const severities: unknown[] = [];
  for (const tone of ["bad", "neutral"] as const) {
    const { requests } = await critical.deliver({ notice: { ...BAD, tone }, scripts: [accepted] });
    severities.push(requests[0]!.body.payload.severity);
  }
  expect(severities).toEqual(["critical", "info"]);
});

test("no terminal colour reaches the summary, the details or the facts", async () => {
  const { requests } = await sender.deliver({ notice: hostile(), scripts: [accepted] });
  const { summary, custom_details } = requests[0]!.body.payload;
  expect(`${summary} ${custom_details.details.join(" ")} ${custom_details["Branch"]}`).not.toContain("\u001b");
});

test("keeps to its limits, and long branches apart", async () => {
  const branch = "feature/".repeat(60);
  const keys = new Set<string>();
  for (const last of ["a", "b"]) {
    const notice = { ...BAD, title: "x".repeat(2_000), topic: `${branch}${last}` };
    const { requests } = await sender.deliver({ notice, scripts: [accepted] });
    expect(requests[0]!.body.payload.summary).toHaveLength(1_024);
    expect(requests[0]!.body.dedup_key.length).toBeLessThanOrEqual(255);
    keys.add(requests[0]!.body.dedup_key);
  }
  expect(keys.size).toBe(2);
});

const body = { message: "Event object is invalid", errors: ["routing_key is blank"] };
testFailures(sender, ["notify"], {
  reasons: [
    [200, "", "Answered 200"],
    [400, body, "Answered 400: Event object is invalid: routing_key is blank"],
  ],
});
