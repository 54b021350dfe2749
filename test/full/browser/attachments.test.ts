/** Attachments in a real browser: the slider of a comparison, and files that want to run. */

import { describe, expect, test } from "bun:test";
import { createEverything } from "../../everything.ts";
import { createAsking } from "../../asking.ts";
import { createHarness, until } from "../../harness.ts";
import { hasChromium, openChromium } from "../../browser/chromium.ts";

describe.skipIf(!hasChromium)("attachments", async () => {
  if (!hasChromium) return;
  const everything = await createEverything(await createHarness({ outboundAllow: ["127.0.0.0/8"] }));
  const { people, there, acme, ask, url } = everything;
  const { project } = acme;
  const task = `/projects/${project}/executions/${there["executionId"]}/tasks/visual`;
  const chromium = await openChromium(url);
  const { go, evaluate, cdp, complaints } = chromium;

  async function attach(path: string, content: string): Promise<string> {
    const run = `/executions/${there["executionId"]}/test-runs/visual`;
    const { body } = await createAsking(ask, acme).call("PUT", `${run}/attachments?path=${path}`, content);
    return `/projects/${project}/attachments/${body.attachment.id}`;
  }

  const open = "document.querySelectorAll('details').forEach((one) => (one.open = true))";
  const splits = `({
    shown: getComputedStyle(document.querySelector(".divider")).display !== "none",
    clip: getComputedStyle(document.querySelector(".compared > :first-child")).clipPath,
    isStacked: document.querySelector(".compared > :first-child").offsetTop ===
      document.querySelector(".compared > :last-child").offsetTop &&
      document.querySelector(".compared > :first-child").offsetLeft ===
      document.querySelector(".compared > :last-child").offsetLeft,
  })`;

  test("a comparison has a slider that keys move", async () => {
    await chromium.signIn(people.viewer);
    complaints.length = 0;
    await go(task);
    await evaluate(open);
    expect(await evaluate(splits)).toEqual({ shown: true, clip: "inset(0px 0px 0px 50%)", isStacked: true });
    await evaluate("document.querySelector('.divider > input').focus()");
    for (let times = 0; times < 3; times++)
      for (const type of ["rawKeyDown", "keyUp"])
        await cdp("Input.dispatchKeyEvent", { type, key: "ArrowRight", code: "ArrowRight", windowsVirtualKeyCode: 39 });
    await until(async () => (await evaluate<{ clip: string }>(splits)).clip === "inset(0px 0px 0px 53%)");
    const broken = "[...document.images].filter((one) => one.complete && one.naturalWidth === 0).length";
    // A window that nobody looks at loads nothing that is put off until it is seen.
    await evaluate("for (const one of document.images) one.loading = 'eager'");
    await until(async () => await evaluate<boolean>("[...document.images].every((one) => one.complete)"));
    expect(await evaluate(broken)).toBe(0);
    await evaluate("Promise.all([...document.images].map((one) => one.decode())).then(() => true)");
    expect(complaints).toEqual([]);
  });

  test("without scripts it is three pictures beside each other", async () => {
    await chromium.signIn(people.viewer);
    await cdp("Emulation.setScriptExecutionDisabled", { value: true });
    await go(task);
    expect(await evaluate(splits)).toEqual({ shown: false, clip: "none", isStacked: false });
    await cdp("Emulation.setScriptExecutionDisabled", { value: false });
  });

  const SCRIPT = `document.cookie = "stolen=1"; localStorage.setItem("stolen", "1"); fetch("/account").then(() => alert(1)); alert(1)`;
  test.each([
    ["page.html", `<!doctype html><html><body><script>${SCRIPT}</script><img src=x onerror='${SCRIPT}'></body></html>`],
    ["picture.svg", `<svg xmlns="http://www.w3.org/2000/svg" onload='${SCRIPT}'><script>${SCRIPT}</script></svg>`],
    ["page.xhtml", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>${SCRIPT}</script></html>`],
  ])("%s full of script does nothing to whoever opens it", async (name, content) => {
    const path = await attach(name, content);
    await chromium.signIn(people.owner);
    complaints.length = 0;
    await go(path);
    const seen = await evaluate<{ type: string; text: string; scripts: number; origin: string }>(
      `({ type: document.contentType, text: document.body.innerText, scripts: document.scripts.length, origin: self.origin })`,
    );
    // Shown as text, in an origin of its own.
    expect(seen).toEqual({ type: "text/plain", text: content, scripts: 0, origin: "null" });
    await go(`/projects/${project}`);
    expect(await evaluate("[document.cookie, localStorage.length]")).toEqual(["", 0]);
    expect(complaints).toEqual([]);
  });
});
