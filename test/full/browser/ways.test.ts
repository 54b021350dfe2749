/** Other ways to use the pages: with keys, on paper, without motion, without telling red from green. */

import { describe, expect, test } from "bun:test";
import { createEverything } from "../../everything.ts";
import { createHarness } from "../../harness.ts";
import { hasChromium, openChromium } from "../../browser/chromium.ts";

describe.skipIf(!hasChromium)("the pages", async () => {
  if (!hasChromium) return;
  const { people, fill, running, acme, url } = await createEverything(
    await createHarness({ outboundAllow: ["127.0.0.0/8"] }),
  );
  const chromium = await openChromium(url);
  const { go, appear, evaluate, becomes, key, press, fill: write } = chromium;
  await chromium.signIn(people.owner);
  const base = `/projects/${acme.project}`;
  const execution = fill("/projects/:projectId/executions/:executionId");
  const focused = () => evaluate<string>("document.activeElement.outerHTML.slice(0, 200)");

  test.each([
    execution,
    base,
    `${base}/tests`,
    `${base}/bugs`,
    fill("/teams/:teamId/members"),
    fill("/teams/:teamId/automations/:automationId"),
  ])("%s: Tab reaches everything in the order in which it is read, and shows where it is", async (path) => {
    await appear({});
    await go(path);
    const expected = await evaluate<string[]>(`(() => {
      const all = [...document.querySelectorAll(
        "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")];
      const seen = all.filter((one) => one.checkVisibility() && !one.disabled && !one.closest("details:not([open]) > :not(summary)"));
      // Of radio buttons the one that is chosen.
      const reached = seen.filter((one) => one.type !== "radio" || one.checked);
      reached.forEach((one, index) => (one.dataset.order = index));
      return reached.map((one) => one.outerHTML.slice(0, 80));
    })()`);
    expect(expected.length).toBeGreaterThan(10);
    const reached: number[] = [];
    const unseen: string[] = [];
    const most = Math.min(expected.length, 60);
    // A date is three fields to the keyboard; a log that scrolls is reached as well.
    for (let strokes = 0; reached.length < most && strokes < most + 20; strokes++) {
      await key("Tab");
      const { order, isSeen, html } = await evaluate<{ order: number; isSeen: boolean; html: string }>(`(() => {
        const one = document.activeElement;
        const { outlineStyle, outlineWidth } = getComputedStyle(one);
        const { width, height, right, bottom } = one.getBoundingClientRect();
        const isThere = (width > 0 && height > 0 && right > 0 && bottom > 0) || one instanceof SVGElement;
        return { order: Number(one.dataset.order ?? -1), html: one.outerHTML.slice(0, 120),
          isSeen: isThere && outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 };
      })()`);
      if (order === -1 && !/type="date"|<pre|scroll|<div/.test(html)) throw new Error(`Nobody expected ${html}`);
      if (order === -1 || reached.at(-1) === order) continue;
      reached.push(order);
      if (!isSeen) unseen.push(html);
    }
    expect(reached).toEqual(Array.from({ length: most }, (_, index) => index));
    expect(unseen).toEqual([]);
  });

  test("the first Tab offers to skip the bar", async () => {
    await appear({});
    await go(execution);
    await key("Tab");
    expect(await focused()).toContain("Skip to the content");
    await key("Enter");
    await becomes("location.hash === '#main'");
  });

  test("/ goes to the search, Escape leaves it, j and k walk the rows, Enter follows", async () => {
    await appear({});
    await go(execution);
    await key("/");
    expect(await focused()).toContain('data-key="/"');
    await key("Escape");
    expect(await evaluate<string>("document.activeElement.localName")).toBe("body");
    await key("j");
    const first = await focused();
    expect(first).toContain("<summary");
    await key("j");
    const second = await focused();
    expect(second).not.toBe(first);
    await key("k");
    expect(await focused()).toBe(first);
    const isOpen = () => evaluate<boolean>("document.activeElement.parentElement.open");
    const before = await isOpen();
    await key("Enter");
    expect(await isOpen()).toBe(!before);
    // In a field they are letters.
    await key("/");
    await write("Search tests, bugs, commits", "");
    await key("j");
    expect(await evaluate<string>("document.activeElement.value")).toBe("j");
  });

  test("? lists the keys, o opens a row, g and a letter go to a section", async () => {
    await appear({});
    await go(execution);
    await key("?");
    await becomes(
      "document.querySelector('dialog.keys').open && document.querySelector('dialog.keys').innerText.includes('bugs')",
    );
    await key("?");
    await becomes("!document.querySelector('dialog.keys').open");
    await key("j");
    const before = await evaluate<boolean>("document.activeElement.parentElement.open");
    await key("o");
    expect(await evaluate<boolean>("document.activeElement.parentElement.open")).toBe(!before);
    await key("g");
    await key("b");
    await becomes("location.pathname.endsWith('/bugs')");
  });

  test("j goes to the first row of a list; after a key that changes a row, its place keeps the focus", async () => {
    await appear({});
    await go(execution.replace(/executions.*/, "bugs"));
    await key("j");
    const row = () =>
      evaluate<number>("[...document.querySelectorAll('main tbody tr')].indexOf(document.activeElement.closest('tr'))");
    expect(await row()).toBe(0);
    await key("j");
    expect(await row()).toBe(1);
    const { complaints } = chromium;
    complaints.length = 0;
    await chromium.leaving(() => key("a"));
    await becomes("location.search.includes('changed=take')");
    expect(await row()).toBe(1);
    expect(complaints).toEqual([]);
  });

  test("texts are copied where the browser has no clipboard, as on plain http", async () => {
    await appear({});
    await go(execution.replace(/executions.*/, "onboarding"));
    await becomes("document.querySelector('button.copy')");
    await evaluate(`Object.defineProperty(navigator, "clipboard", { value: undefined })`);
    await evaluate(`document.addEventListener("copy", () => (window.copied = document.activeElement.value))`);
    await press("Copy", "main");
    await becomes("document.querySelector('button.copy').textContent === 'Copied'");
    const source = "document.querySelector('[data-copy]').textContent.trim()";
    expect(await evaluate<string>("window.copied")).toBe(await evaluate<string>(source));
  });

  test("are printed on white, without what is only pressed, with all of what was opened", async () => {
    await appear({ scheme: "dark" });
    await go(execution);
    await press("AssertionError: expected 2 items", "main");
    await chromium.cdp("Emulation.setEmulatedMedia", { media: "print" });
    const printed = await evaluate<{ hidden: boolean[]; ground: string; cut: number }>(`({
      hidden: [".bar", ".actions"].map((one) => !document.querySelector(one).checkVisibility()),
      ground: getComputedStyle(document.body).backgroundColor,
      cut: [...document.querySelectorAll("details[open] pre")].filter((one) => one.scrollHeight > one.clientHeight + 1).length,
    })`);
    expect(printed).toEqual({ hidden: [true, true], ground: "rgb(255, 255, 255)", cut: 0 });
    const { data } = await chromium.cdp<{ data: string }>("Page.printToPDF", { printBackground: true });
    expect(Buffer.from(data, "base64").subarray(0, 5).toString()).toBe("%PDF-");
    await chromium.cdp("Emulation.setEmulatedMedia", { media: "" });
  });

  test("move only what runs, and nothing for who wants no motion", async () => {
    const moving = () =>
      evaluate<string[]>(
        `[...new Set([...document.querySelectorAll("*")].filter((one) => getComputedStyle(one).animationName !== "none"
          || getComputedStyle(one).transitionDuration !== "0s").map((one) => one.className))]`,
      );
    const path = `${base}/executions/${running.id}`;
    await appear({});
    await go(path);
    expect(await moving()).toEqual(["mark running"]);
    await appear({ features: [{ name: "prefers-reduced-motion", value: "reduce" }] });
    expect(await moving()).toEqual([]);
  });

  test("are light or dark, as the system is", async () => {
    await go(execution);
    const ground = () => evaluate<string>("getComputedStyle(document.body).backgroundColor");
    await appear({ scheme: "light" });
    expect(await ground()).toBe("rgb(250, 250, 248)");
    await appear({ scheme: "dark" });
    expect(await ground()).toBe("rgb(20, 22, 25)");
  });

  test("tell every status by a shape of its own, for who does not tell red from green", async () => {
    await appear({});
    await chromium.cdp("Emulation.setEmulatedVisionDeficiency", { type: "deuteranopia" });
    const shapes = new Map<string, Set<string>>();
    const note = (found: [string, string][]) => {
      for (const [status, shape] of found) shapes.set(status, (shapes.get(status) ?? new Set()).add(shape));
    };
    for (const path of [
      base,
      `${base}/executions`,
      fill("/projects/:projectId/executions/:executionId/tasks/:taskSlug"),
    ]) {
      await go(path);
      note(await evaluate(`[...document.querySelectorAll(".mark")].map((one) => [one.classList[1], one.textContent])`));
    }
    for (const status of ["passed", "failed", "flaky", "skipped", "running"])
      expect([...shapes.keys()]).toContain(status);
    const marks = [...shapes].filter(([status]) =>
      ["passed", "failed", "flaky", "skipped", "running"].includes(status),
    );
    const all = marks.map(([, shape]) => [...shape].join(" "));
    expect(new Set(all).size).toBe(all.length);

    await go(fill("/projects/:projectId/tests/:testId"));
    const bars = await evaluate<[string, number][]>(
      `[...document.querySelectorAll(".bars a")].map((one) => [one.lastElementChild.getAttribute("class"),
        one.querySelectorAll("rect").length === 1 ? 0 : Number(one.lastElementChild.getAttribute("height"))])`,
    );
    const heights = new Map(bars);
    expect(heights.size).toBeGreaterThan(1);
    expect(new Set(heights.values()).size).toBe(heights.size);
    // What is drawn is drawn for them, too.
    expect((await chromium.picture()).length).toBeGreaterThan(1_000);
    await chromium.cdp("Emulation.setEmulatedVisionDeficiency", { type: "none" });
  });
});
