/** The search fields of the lists in a browser without scripts. */

import { beforeAll, expect, test } from "bun:test";
import { createAsking } from "../../asking.ts";
import { hasChromium, openChromium } from "../../browser/chromium.ts";
import { createHarness } from "../../harness.ts";
import { createPerson } from "../../people.ts";

const { url, ask, acme, database } = await createHarness();
const own = createAsking(ask, acme);

beforeAll(async () => {
  for (let run = 0; run < 3; run++) await own.upload("pfp", "branch=main");
});

test.skipIf(!hasChromium)(
  "a select writes its word into the field, and actions appear with the first selected test",
  async () => {
    const { go, fill, follow, press, signIn, appear, becomes, evaluate, words, complaints } = await openChromium(url);
    await signIn(await createPerson(database, { team: acme.team, role: "member" }));
    await appear({ script: false });
    await go(`/projects/${acme.project}/tests?q=name:case`);
    await press("Add a filter", "main");
    await fill("Health", "new");
    await follow("Add", "main");
    const field = `document.querySelector("main [name=q]").value`;
    expect(await evaluate<string>(field)).toBe("name:case is:new");
    expect(await words()).toContain("case 2");

    const buttons = `document.querySelector(".for-selected").checkVisibility()`;
    expect(await evaluate<boolean>(buttons)).toBe(false);
    await evaluate(`document.querySelector("td [type=checkbox]").click()`);
    await becomes(buttons);
    await evaluate(`document.querySelector(".for-selected [name=owner]").value = "the web team"`);
    await follow("Set owner", "main");
    expect(await words()).toContain("1 test changed");
    expect(await evaluate<string>(field)).toBe("name:case is:new");

    await go(`/projects/${acme.project}/bugs`);
    await press("Add a filter", "main");
    await fill("Status", "any");
    await follow("Add", "main");
    expect(await evaluate<string>(field)).toBe("is:any");
    await go(`/projects/${acme.project}/bugs?q=is:closed`).catch(() => {});
    expect(await words()).toContain("Cannot read the search: expected one of open,");
    expect(complaints.filter((one) => !one.includes("400"))).toEqual([]);
  },
  60_000,
);
