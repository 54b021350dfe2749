/** A page whose event stream was refused asks by itself, and listens again as soon as there is room. */

import { describe, expect, test } from "bun:test";
import { createAsking } from "../../asking.ts";
import { createHarness } from "../../harness.ts";
import { createPerson } from "../../people.ts";
import { hasChromium, openChromium } from "../../browser/chromium.ts";

/** Keeps the page's stream. */
const NOTE_STREAM = `window.EventSource = class extends EventSource { constructor(url) { super(url); window.stream = this; } };`;

describe.skipIf(!hasChromium)("a page without an event stream", async () => {
  if (!hasChromium) return;
  const { url, ask, acme, database, eventStreams } = await createHarness({ eventStreams: { session: 1 } });
  const owner = await createPerson(database, { team: acme.team, role: "owner" });
  const { post, upload } = createAsking(ask, acme, "later");
  const { id } = await post("/executions", { tasks: ["unit", "later", "last"] });
  const path = `/projects/${acme.project}/executions/${id}`;

  test("shows what is new, and listens as soon as there is room", async () => {
    const chromium = await openChromium(url);
    // The page's ten seconds pass in a fifth of one.
    await chromium.cdp("Page.addScriptToEvaluateOnNewDocument", {
      source: `const wait = setTimeout; window.setTimeout = (work, ms) => wait(work, ms / 50); ${NOTE_STREAM}`,
    });
    await chromium.signIn(owner);
    const mine = { session: owner.sessionId, project: acme.project };
    const taken = await fetch(`${url}/projects/${acme.project}/live`, {
      headers: { cookie: `assay_session=${owner.token}` },
    });
    const reader = taken.body!.getReader();
    await reader.read();
    expect(eventStreams.refusal(mine)).toContain("per session");

    await chromium.go(path);
    const isLive = await chromium.evaluate<boolean>(`document.querySelector("main[data-live]") !== null`);
    expect(isLive).toBe(true);
    const words = `document.querySelector("main").innerText`;
    const before = await chromium.evaluate<string>(words);
    await upload("ppppppp", { execution_id: id });
    await chromium.becomes(`${words} !== ${JSON.stringify(before)}`);
    // Its own stream was refused until now.
    await reader.cancel();
    await chromium.becomes("window.stream?.readyState === EventSource.OPEN");
  }, 60_000);
});

describe.skipIf(!hasChromium)("a live page", async () => {
  if (!hasChromium) return;
  const { url, ask, acme, database } = await createHarness();
  const owner = await createPerson(database, { team: acme.team, role: "owner" });
  const { post, upload, get } = createAsking(ask, acme, "unit");
  const chromium = await openChromium(url);
  const { evaluate, becomes, press } = chromium;
  // Counts how often the page was fetched again: regions are replaced right after its answer was parsed, in the same task.
  await chromium.cdp("Page.addScriptToEvaluateOnNewDocument", {
    source: `window.renewals = 0;
      const parse = DOMParser.prototype.parseFromString;
      DOMParser.prototype.parseFromString = function (...given) { window.renewals++; return parse.apply(this, given); };
      ${NOTE_STREAM}`,
  });

  /** Opens the page of a new execution, and waits for its stream. */
  async function open() {
    const { id } = await post("/executions", { tasks: ["unit", "last"] });
    // Windows share their cookies.
    await chromium.signIn(owner);
    await chromium.go(`/projects/${acme.project}/executions/${id}`);
    await becomes("window.stream?.readyState === EventSource.OPEN");
    return { id: id as string, report: () => upload("ppppppp", { execution_id: id }) };
  }

  const region = `document.querySelector("[data-region=state]")`;

  test("keeps what has not changed, though each answer has another CSRF token", async () => {
    const { report } = await open();
    expect(await evaluate<number>(`${region}.querySelectorAll("input[name=csrf]").length`)).toBeGreaterThan(0);
    const isOld = `${region}.firstElementChild.isOld`;
    await evaluate(`void (${isOld} = true, window.renewals = 0, window.stream.dispatchEvent(new Event("news")))`);
    await becomes("window.renewals > 0");
    expect(await evaluate<boolean>(isOld)).toBe(true);
    await report();
    await becomes(`!${isOld}`);
  }, 60_000);

  test("loses no click on a button that is due to be replaced", async () => {
    const { id, report } = await open();
    await press("End early", "[data-region=state]");
    const meanwhile = async () => {
      await evaluate("void (window.renewals = 0)");
      await report();
      await becomes("window.renewals > 0");
    };
    await chromium.leaving(() => press("Cancel", "[data-region=state]", meanwhile));
    expect((await get(`/executions/${id}`)).status).toBe("cancelled");
  }, 60_000);

  test("is brought up to date after a press that is no click", async () => {
    const { report } = await open();
    const isOld = `${region}.firstElementChild.isOld`;
    await press("End early", "[data-region=state]", async () => {
      await evaluate(`void (${isOld} = true, window.renewals = 0)`);
      await report();
      await becomes("window.renewals > 0");
      expect(await evaluate<boolean>(isOld)).toBe(true);
    });
    await becomes(`!${isOld}`);
    await becomes(`document.querySelector("#end-early").open`);
  }, 60_000);
});
