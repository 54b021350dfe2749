/** What programs and people of ill will call things is text on every page: nothing of it runs, loads, leads away or hides. */

import { describe, expect, test } from "bun:test";
import { createEverything, LOOKED_AT } from "../../everything.ts";
import { createAsking } from "../../asking.ts";
import { createHarness, junit } from "../../harness.ts";
import { hasChromium, openChromium, WIDTHS } from "../../browser/chromium.ts";
import { quoteSearchText } from "../../../src/rules/search_words.ts";

const SCRIPT = "<script>alert(1)</script>";
const ATTACK = `"'><img src=x onerror="alert(2)">${SCRIPT}</textarea></pre></title>\u202e javascript:alert(3) \${7*7}`;
/** As long as the shortest limit of a name allows. */
const hostile = (plain: string) => `${plain}${ATTACK}`;
const LONG = "x".repeat(10_000);

describe.skipIf(!hasChromium)("on every page", async () => {
  if (!hasChromium) return;
  const everything = await createEverything(await createHarness({ outboundAllow: ["127.0.0.0/8"] }), hostile);
  const { people, fill, running, acme, ask, url } = everything;
  const { project } = acme;
  const { uploadReport, send } = createAsking(ask, acme);
  const base = `/projects/${project}`;

  // What has no limit in a report is cut, not refused.
  const cases = [LONG, `${"日本語".repeat(3_000)}`, `${SCRIPT}${LONG}`].map(
    (name) =>
      `<testcase classname="${Bun.escapeHTML(name)}" name="${Bun.escapeHTML(name)}" file="${Bun.escapeHTML(name)}" time="1"><failure message="${Bun.escapeHTML(name)}">${Bun.escapeHTML(`at ${name} (javascript:alert(1):1:1)`)}</failure></testcase>`,
  );
  const long = await uploadReport(
    `<testsuite name="long">${cases.join("")}</testsuite>`,
    "task_slug=long&branch=main&complete=true",
  );

  const chromium = await openChromium(url);
  const { go, appear, evaluate, complaints } = chromium;
  await chromium.cdp("Page.addScriptToEvaluateOnNewDocument", {
    source: `for (const name of ["alert", "confirm", "prompt", "open", "eval"]) window[name] = () => console.error("called: " + name);
      window.onerror = (message) => console.error("onerror: " + message);`,
  });

  const pages = [
    ...LOOKED_AT.filter(({ path }) => !/^\/(setup|login|docs)/.test(path)).map(({ path }) => fill(path)),
    `${base}/executions/${running.id}`,
    `${base}/executions/${running.id}/tasks/e2e/log?shard=1`,
    `${base}/search?${new URLSearchParams({ q: ATTACK })}`,
    `${base}/tests?${new URLSearchParams({ q: ATTACK })}`,
    `${base}/tests?${new URLSearchParams({ q: quoteSearchText(ATTACK) })}`,
    `${base}/executions?${new URLSearchParams({ branch: hostile("feature/two-currencies-in-one-cart") })}`,
    `${base}/executions/${long.executionId}`,
    `${base}/executions/${long.executionId}/tasks/long`,
    `${base}/tests?health=new`,
    `/login?${new URLSearchParams({ next: `javascript:alert(1)//${ATTACK}` })}`,
    `/nowhere/${encodeURIComponent(ATTACK)}`,
  ];

  test.each(pages)("%s", async (path) => {
    await chromium.signIn(people.owner);
    for (const width of WIDTHS) {
      await appear({ width });
      complaints.length = 0;
      await go(path);
      // What opens is looked at open.
      await evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
      const found = await evaluate(`({
        elements: [...document.querySelectorAll("script:not([src^='/assets/']), img:not([src^='/projects/']), video:not([src^='/projects/']), iframe, object, embed, style, base, meta[http-equiv]")]
          .map((one) => one.outerHTML),
        handlers: [...document.querySelectorAll("*")].flatMap((one) => one.getAttributeNames().filter((name) => /^on|^style$/.test(name))),
        addresses: [...document.querySelectorAll("[href], [src], [action], [formaction]")]
          .flatMap((one) => ["href", "src", "action", "formaction"].flatMap((name) => one.getAttribute(name) ?? []))
          .filter((address) => !/^(https?:|[/#?]|\\.\\.?[/])/.test(address) || /^\\/[/\\\\]/.test(address)),
        turned: /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.documentElement.outerHTML),
        wide: document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
          .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest(".scroll, pre"))
          .map((one) => one.outerHTML.slice(0, 100)).slice(0, 5),
      })`);
      expect(found).toEqual({ elements: [], handlers: [], addresses: [], turned: false, wide: [] } as never);
      // The attack contains a word that no search has.
      const status = path.startsWith("/nowhere") ? "404" : path.includes("/tests?q=%22%27") ? "400" : "none";
      expect(complaints.filter((complaint) => !complaint.includes(status))).toEqual([]);
    }
  });

  test("and it is told as it is, wherever names are told", async () => {
    await chromium.signIn(people.owner);
    const { executionId } = everything.there;
    for (const path of [
      "/",
      base,
      `${base}/executions`,
      `${base}/executions/${executionId}`,
      `${base}/tests`,
      `${base}/bugs`,
      `${base}/bugs/${everything.bug.id}`,
      fill("/teams/:teamId/environments/:environmentId"),
      fill("/teams/:teamId/integrations"),
      fill("/teams/:teamId/automations"),
      fill("/teams/:teamId/members"),
      fill("/teams/:teamId/runners"),
    ]) {
      await go(path);
      expect([path, await evaluate("document.body.innerText.includes('<script>alert(1)')")]).toEqual([path, true]);
    }
  });

  test("an address that is none of the web is no link, and is not taken for one", async () => {
    for (const build of [
      "javascript:alert(1)",
      "data:text/html,<script>alert(1)</script>",
      "//evil.example",
      "vbscript:x",
    ]) {
      const { status, body } = await send(junit("p"), { build_url: build });
      if (status >= 400) continue;
      await chromium.signIn(people.owner);
      await go(`${base}/executions/${body.executionId}`);
      const links = await evaluate<string[]>(`[...document.querySelectorAll("main a")].map((one) => one.href)`);
      expect(links.filter((link) => !link.startsWith(url))).toEqual([]);
    }
  });
});
