/** The log of a running task in a real browser: follow mode, errors, anchors, and colours that everybody can read. */

import { describe, expect, test } from "bun:test";
import { createAsking } from "../../asking.ts";
import { createHarness, until } from "../../harness.ts";
import { createPerson } from "../../people.ts";
import { hasChromium, openChromium, SCHEMES } from "../../browser/chromium.ts";

const AXE = hasChromium ? await Bun.file(require.resolve("axe-core/axe.min.js")).text() : "";

describe.skipIf(!hasChromium)("a log", async () => {
  if (!hasChromium) return;
  const { url, ask, acme, database } = await createHarness();
  const owner = await createPerson(database, { team: acme.team, role: "owner" });
  const { post } = createAsking(ask, acme);

  /** A task that a runner runs; `print` appends to its log. */
  async function start() {
    const { id } = await post("/executions", { mode: "run", tasks: ["unit"] });
    const sync = (more: object) => post("/leases", { runner: "r", ...more });
    const [lease] = (await sync({ free: 1 })).leases;
    let offset = 0;
    const print = async (text: string) => {
      await sync({ free: 0, held: [{ id: lease.id, log: { offset, text } }] });
      offset += Buffer.byteLength(text);
    };
    return { print, path: `/projects/${acme.project}/executions/${id}/tasks/unit/log` };
  }

  const chromium = await openChromium(url);
  await chromium.signIn(owner);
  const { appear, go, evaluate, becomes, press, complaints } = chromium;
  const box = `document.querySelector("[data-tail]")`;
  const isAtEnd = `${box}.scrollTop > -4`;
  const isFollowing = `document.querySelector("[data-follow]").getAttribute("aria-pressed") === "true"`;
  const seesLine = (number: number) => `(() => {
    const [line, box] = [document.querySelector("#L${number}"), document.querySelector("[data-tail]")];
    const [inner, outer] = [line.getBoundingClientRect(), box.getBoundingClientRect()];
    return inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  })()`;
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join("");

  test("stays at its end while it grows, until a reader scrolls up, and again after Follow", async () => {
    await appear({});
    const { print, path } = await start();
    await print(lines(1, 200));
    await go(path);
    await becomes(`${isAtEnd} && ${isFollowing} && ${seesLine(199)}`);
    const count = `document.querySelectorAll(".numbered > li").length`;
    /** Prints until the page shows it: what is printed before the page listens is shown with what comes next. */
    const grow = async () => {
      const before = await evaluate<number>(count);
      await until(async () => {
        await print("more\n");
        return await evaluate<boolean>(`${count} > ${before}`);
      }, 20);
    };
    await grow();
    await becomes(`${isAtEnd} && ${isFollowing}`);
    await evaluate(`document.querySelector("#L100").scrollIntoView({ block: "center" })`);
    await becomes(`!(${isFollowing})`);
    const topOf = `document.querySelector("#L100").getBoundingClientRect().top`;
    const before = await evaluate<number>(topOf);
    await grow();
    expect(Math.abs((await evaluate<number>(topOf)) - before)).toBeLessThan(2);
    expect(await evaluate<boolean>(isFollowing)).toBe(false);
    await press("Follow");
    await becomes(`${isFollowing} && ${isAtEnd}`);
    await grow();
    expect(await evaluate<boolean>(`${isFollowing} && ${isAtEnd}`)).toBe(true);
    expect(complaints.splice(0)).toEqual([]);
  }, 60_000);

  test("goes from error to error, and keeps the line of the address marked while it grows", async () => {
    await appear({});
    const { print, path } = await start();
    await print(`${lines(1, 50)}error: one\n${lines(51, 150)}error: two\n${lines(151, 300)}`);
    await go(path);
    await press("Next error");
    await becomes(`location.hash === "#L50" && ${seesLine(50)}`);
    await chromium.key("e");
    await becomes(`location.hash === "#L150" && ${seesLine(150)}`);
    await chromium.key("E");
    await becomes(`location.hash === "#L50" && ${seesLine(50)}`);
    await until(async () => {
      await print("more\n");
      return await evaluate<boolean>(`document.querySelector("#L300") !== null`);
    }, 20);
    await becomes(` document.querySelector("#L50").matches(".current")`);
    await becomes(seesLine(50));
    const ground = (number: number) => `getComputedStyle(document.querySelector("#L${number}")).backgroundColor`;
    expect(await evaluate<boolean>(`${ground(50)} !== ${ground(51)}`)).toBe(true);
    expect(complaints.splice(0)).toEqual([]);
  }, 60_000);

  test("the number of a line is the link to it, and does not move the log", async () => {
    await appear({});
    const { print, path } = await start();
    await print(lines(1, 100));
    await go(path);
    await becomes(seesLine(95));
    const { x, y } = await evaluate<{ x: number; y: number }>(
      `(({ left, top }) => ({ x: left + 10, y: top + 8 }))(document.querySelector("#L95").getBoundingClientRect())`,
    );
    for (const type of ["mousePressed", "mouseReleased"])
      await chromium.cdp("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
    await becomes(`location.hash === "#L95"`);
    const { y: after } = await evaluate<{ y: number }>(
      `(({ top }) => ({ y: top + 8 }))(document.querySelector("#L95").getBoundingClientRect())`,
    );
    expect(Math.abs(after - y)).toBeLessThan(2);
  }, 60_000);

  test.each([...SCHEMES])(
    "shows every colour readably on every ground in the %s scheme",
    async (scheme) => {
      await appear({ scheme, height: 16_000 });
      const { print, path } = await start();
      const colours = [...Array(256).keys()];
      const styles =
        "\x1b[2mdim\x1b[0m \x1b[7minverse\x1b[0m \x1b[41;30m FAIL \x1b[0m \x1b[43;97m WARN \x1b[0m\nerror: x\n";
      await print(
        styles +
          colours
            .map((colour) => `\x1b[38;5;${colour}mfront ${colour}\x1b[0m \x1b[48;5;${colour}mground\x1b[0m `)
            .join("\n") +
          colours
            .map(
              (colour) =>
                `\n\x1b[38;5;${colour};48;5;231mabcd\x1b[48;5;16mefgh\x1b[48;5;196mijkl\x1b[48;5;46mmnop\x1b[0m`,
            )
            .join(""),
      );
      await go(`${path}?search=front`);
      await evaluate(`if (!window.axe) ${AXE}`).catch(async () => await evaluate(AXE));
      const unreadable = await evaluate<
        string[]
      >(`axe.run(document, { runOnly: ["color-contrast"] }).then(({ violations }) =>
      violations.flatMap(({ nodes }) => nodes.map(({ html, any }) => html + " " + any[0].data?.contrastRatio)))`);
      expect(unreadable).toEqual([]);
      expect(complaints.splice(0)).toEqual([]);
    },
    60_000,
  );
});
