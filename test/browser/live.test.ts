/** A page whose event stream was refused asks by itself, and listens again as soon as there is room. */

import { describe, expect, test } from "bun:test";
import { createHarness, junit, until } from "../harness.ts";
import { createPerson } from "../people.ts";
import { hasChromium, openChromium } from "./chromium.ts";

describe.skipIf(!hasChromium)("a page without an event stream", async () => {
  if (!hasChromium) return;
  const { url, ask, acme, database, eventStreams } = await createHarness({ eventStreams: { session: 1 } });
  const owner = await createPerson(database, { team: acme.team, role: "owner" });
  const { body } = await ask(`POST /projects/${acme.project}/executions`, {
    key: acme.key,
    body: { tasks: ["unit", "later", "last"] },
  });
  const report = (task: string, letters: string) =>
    ask(`POST /projects/${acme.project}/test-runs?execution_id=${body.id}&task_slug=${task}`, {
      key: acme.key,
      body: junit(letters),
    });
  const path = `/projects/${acme.project}/executions/${body.id}`;

  test("shows what is new, and listens as soon as there is room", async () => {
    const chromium = await openChromium(url);
    // The page's ten seconds pass in a fifth of one.
    await chromium.cdp("Page.addScriptToEvaluateOnNewDocument", {
      source: `const wait = setTimeout; window.setTimeout = (work, ms) => wait(work, ms / 50);`,
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
    await report("later", "ppppppp");
    await chromium.becomes(`${words} !== ${JSON.stringify(before)}`);
    // Its own stream was refused until now.
    await reader.cancel();
    await until(() => eventStreams.refusal(mine) === undefined, 10).catch(() => {});
    await until(() => eventStreams.refusal(mine) !== undefined, 10);
  }, 60_000);
});
