/** The viewer of the API's operations in a real browser. */

import { expect, test } from "bun:test";
import type { Visitor } from "../../../src/request/visitors.ts";
import { createAsking } from "../../asking.ts";
import { hasChromium, openChromium } from "../../browser/chromium.ts";
import { createHarness } from "../../harness.ts";

let visitor: Visitor | undefined;
const { url, ask, acme } = await createHarness({
  visitors: { find: async () => visitor, csrf: () => ({ token: "" }), isOwnForm: () => false },
});
const member: Visitor = {
  accountId: crypto.randomUUID(),
  email: "ada@acme.example",
  name: "Ada",
  isQuiet: false,
  plannedDeletions: [],
  sessionId: crypto.randomUUID(),
  teams: [{ teamId: acme.team, teamName: "Acme", role: "viewer" }],
};

test.skipIf(!hasChromium)("sends a request with a key and the visitor's project, under its policy", async () => {
  const { executionId } = await createAsking(ask, acme).upload("pf");
  const { go, becomes, press, evaluate, complaints, words, cdp, appear } = await openChromium(url);
  visitor = member;
  await appear({ width: 375 });
  await go("/docs/operations#/test-runs/listTestRuns");
  await becomes(`document.querySelector(".execute")`, 30);
  await press("Authorize", ".auth-wrapper");
  await becomes(`document.querySelector(".auth-container input")`);
  await evaluate(`document.querySelector(".auth-container input").focus()`);
  await cdp("Input.insertText", { text: acme.key });
  await evaluate(`document.querySelector(".auth-btn-wrapper [type=submit]").click()`);
  await evaluate(`document.querySelector(".close-modal").click()`);
  await evaluate(`document.querySelector(".execute").click()`);
  await becomes(`document.querySelector(".live-responses-table")?.innerText.includes("${executionId}")`);
  // The key is kept in the memory of the page alone.
  expect(await evaluate<number>("localStorage.length + sessionStorage.length")).toBe(0);
  expect(await evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
  expect(complaints).toEqual([]);

  // Without scripts the page leads to the list.
  visitor = undefined;
  await appear({ script: false });
  await go("/docs/operations");
  expect(await words()).toContain("This page needs JavaScript. The list of operations");
});
