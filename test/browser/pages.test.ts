/** Every page in a real browser, light and dark, on a desk and on a telephone: whole, without a complaint, for everybody. */

import { describe, expect, test } from "bun:test";
import { createSetupToken } from "../../src/operations/accounts.ts";
import { createFirstProject } from "../../src/operations/first_project.ts";
import { createEverything, LOOKED_AT } from "../everything.ts";
import { createDatabase, createHarness, createServer } from "../harness.ts";
import { type Chromium, hasChromium, openChromium, SCHEMES, WIDTHS } from "./chromium.ts";

const AXE = hasChromium ? await Bun.file(require.resolve("axe-core/axe.min.js")).text() : "";

/** What it finds: rule, how bad, where. Best practice is held to as well, for headings, landmarks and names. */
async function axe({ evaluate }: Chromium): Promise<string[]> {
  await evaluate(`if (!window.axe) ${AXE}`).catch(async () => await evaluate(AXE));
  return await evaluate<string[]>(`axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    resultTypes: ["violations"],
  }).then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
    id + ": " + target.join(" ") + ": " + failureSummary.split("\\n").slice(1).join(" ").trim())))`);
}

describe.skipIf(!hasChromium)("every page", async () => {
  if (!hasChromium) return;
  const clock = new Date();
  const everything = await createEverything(
    await createHarness({ outboundAllow: ["127.0.0.0/8"], clock: () => clock }),
  );
  const { people, fill, running, acme, addProject, url } = everything;
  const empty = await addProject(acme);
  const chromium = await openChromium(url);

  const { database } = await createDatabase();
  const fresh = await createServer(database);
  await createFirstProject(database);
  const setup = `${fresh.url}/setup?token=${await createSetupToken(database)}`;

  const own = LOOKED_AT.filter(({ path }) => !/^\/(setup|login|invitations)/.test(path)).map(({ path }) => fill(path));
  const base = `/projects/${acme.project}`;
  const pages: [name: string, path: string][] = [
    ...own.map((path): [string, string] => [path, path]),
    ["a running execution", `${base}/executions/${running.id}`],
    ["its log", `${base}/executions/${running.id}/tasks/e2e/log?shard=1`],
    ["what is found", `${base}/search?q=voucher`],
    ["a page that does not exist", "/nowhere"],
    ...["", "/executions", "/tests", "/bugs", "/uploads", "/shares", "/onboarding"].map((path): [string, string] => [
      `an empty project${path}`,
      `/projects/${empty.project}${path}`,
    ]),
  ];

  async function holds(path: string): Promise<void> {
    const { go, appear, evaluate, complaints } = chromium;
    for (const width of WIDTHS)
      for (const scheme of SCHEMES) {
        const how = `${width} ${scheme}`;
        await appear({ width, scheme });
        // The style knows both: the page itself is the same.
        if (width === WIDTHS[0] && scheme === SCHEMES[0]) {
          complaints.length = 0;
          await go(path);
        }
        const { headings, wide, script } = await evaluate<{ headings: number; wide: string[]; script: number }>(`({
          headings: document.querySelectorAll("h1").length,
          script: document.scripts.length,
          wide: document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *, header *")]
            .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest(".scroll, pre"))
            .map((one) => one.outerHTML.slice(0, 120)).slice(0, 5),
        })`);
        expect({ how, headings, wide, script }).toEqual({ how, headings: 1, wide: [], script: 1 });
        expect([how, await axe(chromium)]).toEqual([how, []]);
      }
    expect(complaints.filter((complaint) => !(path === "/nowhere" && complaint.includes("404")))).toEqual([]);
  }

  test.each([
    ["/login", "/login"],
    ["/setup", setup],
    ["an invitation", fill("/invitations/:token")],
    ["what is shared", fill("/shared/:token")],
  ])("%s: for who is not signed in", async (_, path) => {
    await chromium.signOut();
    await holds(path);
  });

  test.each(pages)(
    "%s: one heading, nothing beside the window, nothing that axe finds, no complaint",
    async (_, path) => {
      await chromium.signIn(people.owner);
      await holds(path);
    },
  );
});
