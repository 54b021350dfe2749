/** What screenshots.ts runs: every page by its name, of which pictures are taken. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { createSetupToken } from "../../../src/operations/people/accounts.ts";
import { createFirstProject } from "../../../src/operations/projects/first_project.ts";
import { LOOKED_AT, createEverything } from "../../everything.ts";
import { createDatabase, createHarness, createServer } from "../../harness.ts";
import { type Chromium, openChromium, SCHEMES, WIDTHS } from "../../browser/chromium.ts";

const folder = process.env["PICTURES_FOLDER"]!;
const part = process.env["PICTURES_PART"] ?? "";

/** `/projects/:projectId/tests/:testId` becomes `projects-tests-testId`; what all share is left out. */
const nameOf = (path: string) =>
  path
    .split("/")
    .filter((segment) => segment !== "" && segment !== ":projectId" && segment !== ":teamId")
    .map((segment) => segment.replace(":", ""))
    .join("-") || "home";

/** Opens all failures, and waits for what is loaded only when it is seen. */
async function openPictures({ evaluate, becomes }: Chromium): Promise<void> {
  await evaluate(`(document.querySelectorAll("details").forEach((one) => (one.open = true)),
    [...document.images].forEach((one) => (one.loading = "eager")))`);
  await becomes("[...document.images].every(({ complete }) => complete)");
  await evaluate("Promise.all([...document.images].map((one) => one.decode())).then(() => true)");
}

test("a picture of every page", async () => {
  const harness = await createHarness({ outboundAllow: ["127.0.0.0/8"] });
  const everything = await createEverything(harness, (plain) => plain, { days: 26 });
  const { people, fill, there, running, cases, bug, acme, addProject } = everything;
  const empty = await addProject(acme);
  const { database } = await createDatabase();
  const fresh = await createServer(database);
  await createFirstProject(database);
  const setup = `${fresh.url}/setup?token=${await createSetupToken(database)}`;

  const ofOwner = LOOKED_AT.filter(({ path }) => !/^\/(setup|login|invitations)/.test(path)).map(
    ({ path }) => [nameOf(path), fill(path)] as const,
  );
  const base = `/projects/${acme.project}`;
  const flaky = cases.find(({ health }: { health: string }) => health === "flaky")!;
  const [shared] = await harness.database.pool<{ id: string }[]>`
    select execution_id as id from probe where number > 1 limit 1`;
  const more = [
    ["projects-executions-running", `${base}/executions/${running.id}`],
    ["projects-executions-probe", `${base}/executions/${shared!.id}`],
    ["projects-executions-tasks-attachments", `${base}/executions/${there["executionId"]}/tasks/visual`],
    ["projects-executions-tasks-running-log", `${base}/executions/${running.id}/tasks/e2e/log?shard=1`],
    ["projects-tests-flaky", `${base}/tests/${flaky.id}`],
    ["projects-bugs-manual", `${base}/bugs/${bug.id}`],
    ["projects-search-found", `${base}/search?q=voucher`],
    ["projects-search-nothing", `${base}/search?q=nowhere`],
    ["projects-tests-broken", `${base}/tests?health=broken`],
    ...["", "/executions", "/tests", "/bugs", "/uploads", "/shares", "/onboarding"].map(
      (path) => [`empty${path.replace("/", "-")}`, `/projects/${empty.project}${path}`] as const,
    ),
    ["teams-integrations-new-github", `/teams/${acme.team}/integrations/new?kind=github`],
    ["nowhere", "/nowhere"],
  ] as const;
  const ofNobody = [
    ["login", "/login"],
    ["setup", setup],
    ["invitation", fill("/invitations/:token")],
  ] as const;

  const chromium = await openChromium(everything.url);
  const take = async (pages: readonly (readonly [string, string])[]) => {
    for (const [name, path] of pages)
      if (name.includes(part))
        for (const width of WIDTHS)
          for (const scheme of SCHEMES) {
            await chromium.appear({ width, scheme });
            await chromium.go(path);
            if (name.endsWith("-attachments")) await openPictures(chromium);
            await Bun.write(join(folder, `${name}-${width}-${scheme}.png`), await chromium.picture());
          }
  };
  await take(ofNobody);
  await chromium.signIn(people.owner);
  await take([...ofOwner, ...more]);
  // The one of the README.
  await chromium.appear({});
  await chromium.go(base);
  await Bun.write(join(folder, "dashboard.png"), await chromium.picture({ maxHeight: 1_010 }));
  expect(chromium.complaints.filter((complaint) => !complaint.includes("404"))).toEqual([]);
  console.log(`The pictures are in ${folder}`);
});
