/** Every page in a real browser, light and dark, on a desk and on a telephone: whole, without a complaint, for everybody. */

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createSetupToken } from "../../../src/operations/people/accounts.ts";
import { createFirstProject } from "../../../src/operations/projects/first_project.ts";
import { createEverything, LOOKED_AT } from "../../everything.ts";
import { createAsking } from "../../asking.ts";
import { createDatabase, createHarness, createServer } from "../../harness.ts";
import { type Chromium, hasChromium, openChromium, SCHEMES, WIDTHS } from "../../browser/chromium.ts";

setDefaultTimeout(60_000);

const AXE = hasChromium ? await Bun.file(require.resolve("axe-core/axe.min.js")).text() : "";

const STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** The rules whose answer depends on the width or the scheme: the others are asked once for each of both. */
const LOOKS = [
  "color-contrast",
  "link-in-text-block",
  "scrollable-region-focusable",
  "target-size",
  "region",
  "bypass",
];

/**
 * What it finds: rule, where, why. Beyond what is asked for, it holds pages to WCAG 2.2, and to the best practices for
 * headings, landmarks and names. Strips and grids are drawn smaller than a finger: what they link to stands in the list
 * beside them, which is how that rule wants it.
 */
async function axe({ evaluate }: Chromium, isWhole: boolean): Promise<string[]> {
  await evaluate(`if (!window.axe) ${AXE}`).catch(async () => await evaluate(AXE));
  return await evaluate<string[]>(`axe.run(document, {
    runOnly: ${JSON.stringify(isWhole ? STANDARDS : LOOKS)},
    resultTypes: ["violations"],
  }).then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes
    .filter(({ target }) => id !== "target-size" || !document.querySelector(target)?.closest(".strip, .grid"))
    .map(({ target, failureSummary }) =>
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
        expect([how, await axe(chromium, (width === WIDTHS[0]) === (scheme === SCHEMES[0]))]).toEqual([how, []]);
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

  describe("a project with two weeks of builds", async () => {
    const busy = await addProject(acme);
    const { list, upload } = createAsking(everything.ask, busy);
    const at = `/projects/${busy.project}`;
    const send = (letters: string, days: number, more: Record<string, string> = {}) =>
      upload(letters, {
        ...{ branch: "main", complete: "true", commit: String(1_000_000 + days) },
        ...{ completed_at: new Date(clock.getTime() - days * 86_400_000).toISOString(), ...more },
      });
    for (let days = 14; days > 1; days--) for (const letters of ["fppppp", "pppppp"]) await send(letters, days);
    await send("pfpppp", 9, { branch: "old" });
    await send("pfpppp", 1, { branch: "feature/a" });
    const red = (await send("pffffs", 0)).executionId;
    const execution = `${at}/executions/${red}`;
    const [flaky] = await list("/test-cases?health=flaky");

    test.each([
      ["its page", at],
      ["its red execution", execution],
    ])("%s holds", async (_, path) => {
      await chromium.signIn(people.owner);
      await holds(path);
    });

    test("an execution and a test are one sheet of paper", async () => {
      await chromium.signIn(people.owner);
      await chromium.appear({ scheme: "dark" });
      for (const path of [execution, `${at}/tests/${flaky.id}`]) {
        await chromium.go(path);
        const { data } = await chromium.cdp<{ data: string }>("Page.printToPDF", {
          paperWidth: 8.27,
          paperHeight: 11.69,
        });
        expect([
          path,
          Buffer.from(data, "base64")
            .toString("latin1")
            .match(/\/Type \/Page\b(?!s)/g)?.length,
        ]).toEqual([path, 1]);
      }
    });
  });
});
