/** The lines for the shell that the onboarding page shows work as they stand. */

import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { unescape } from "../../browser.ts";
import { junit } from "../../harness.ts";
import { createPlace, removePlace } from "../../places.ts";
import { createPages } from "../../web/browser.ts";

const { createProject, look } = await createPages();

const place = createPlace("lines");
afterAll(() => removePlace(place));
await Bun.write(join(place, "report.xml"), junit("ppf"));

/** Runs the line as it stands, in a shell that has the key, and returns what it prints. */
async function runText(line: string, key: string): Promise<string> {
  const child = Bun.spawn(["sh", "-euc", line.replace(/^curl /, "curl -sS ")], {
    cwd: place,
    env: { PATH: process.env["PATH"], ASSAY_KEY: key },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([line, code, err]).toEqual([line, 0, ""]);
  return out;
}

test("the lines of the first report work", async () => {
  const mine = await createProject();
  const { html } = await look("member", `${mine.path}/onboarding`);
  const lines = [...html.matchAll(/<pre data-copy[^>]*>([^]*?)<\/pre>/g)].map(([, line]) => unescape(line!));
  for (const line of lines.slice(0, 2)) expect(await runText(line, mine.key)).toContain("/executions/");
  expect(await mine.list("/executions")).toHaveLength(2);
});
