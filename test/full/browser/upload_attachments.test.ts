/** A pull request's job without a stored key uploads what Playwright wrote, and the pages show it. */

import { describe, expect, test } from "bun:test";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addTrustRule } from "../../../src/operations/people/trust_rules.ts";
import { COMMAND_LINE } from "../../../src/schema/audit.ts";
import { createCiIssuer, REPOSITORY } from "../../ci_issuer.ts";
import { createAsking } from "../../asking.ts";
import { createHarness } from "../../harness.ts";
import { createPerson } from "../../people.ts";
import { createPlace, guardProcess } from "../../places.ts";
import { hasChromium, openChromium } from "../../browser/chromium.ts";

const FIXTURES = join(import.meta.dir, "../../fixtures/attachments");
const RESULTS = "test-results/cart-shows-the-cart";
const PUBLIC_URL = "http://assay.acme.example";

describe.skipIf(!hasChromium)("assay upload of a Playwright run", async () => {
  if (!hasChromium) return;
  const directory = createPlace("attachments");
  const { acme, ask, url, database } = await createHarness({
    attachments: { directory },
    publicUrl: PUBLIC_URL,
    outboundAllow: ["127.0.0.1/32"],
  });
  const { project, team } = acme;
  const issuer = await createCiIssuer(PUBLIC_URL);
  await database.begin((sql) =>
    addTrustRule(
      sql,
      project,
      {
        ...{ kind: "github", issuer: issuer.url, repositoryId: REPOSITORY.id, ownerId: REPOSITORY.owner },
        ...{ repository: REPOSITORY.name, events: ["pull_request"], refs: [] },
      },
      COMMAND_LINE,
    ),
  );

  /** The workspace of the job: the fixtures, with a trace, and a report that names video and trace. */
  const work = createPlace("playwright");
  cpSync(FIXTURES, work, { recursive: true });
  writeFileSync(join(work, RESULTS, "trace.zip"), "PK\x05\x06".padEnd(22, "\0"));
  const report = JSON.parse(readFileSync(join(work, "out/playwright.json"), "utf8").replaceAll("/home/dev/shop", work));
  const failed = report.suites[0].specs.find(({ ok }: { ok: boolean }) => !ok).tests[0].results.at(-1);
  failed.attachments.push(
    { name: "video", contentType: "video/webm", path: join(work, RESULTS, "video.webm") },
    { name: "trace", contentType: "application/zip", path: join(work, RESULTS, "trace.zip") },
  );
  writeFileSync(join(work, "out/playwright.json"), JSON.stringify(report));

  async function upload(task: string, file: string): Promise<string> {
    const child = Bun.spawn(
      [process.execPath, join(import.meta.dir, "../../../src/cli/assay.ts"), "upload", file, "--task", task],
      {
        cwd: work,
        env: {
          ...{ PATH: process.env["PATH"]!, HOME: work, GIT_CEILING_DIRECTORIES: work, GITHUB_ACTIONS: "true" },
          ...{ ASSAY_URL: url, ASSAY_PUBLIC_URL: PUBLIC_URL, ASSAY_PROJECT: project },
          ASSAY_ID_TOKEN: await issuer.github({ event_name: "pull_request", ref: "refs/pull/7/merge" }),
          ...{ GITHUB_RUN_ID: "4711", GITHUB_SHA: "1".repeat(40), GITHUB_HEAD_REF: "cart" },
          ...{ GITHUB_REF: "refs/pull/7/merge", GITHUB_EVENT_NAME: "pull_request" },
        },
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    guardProcess(child);
    const [errors, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    expect([code, errors]).toEqual([0, expect.stringContaining("assay: Sent ")]);
    return errors;
  }

  test("pictures, video and trace are below the failure, for the reporters json and junit", async () => {
    await upload("json", "out/playwright.json");
    await upload("junit", "out/junit.xml");
    const { list, get } = createAsking(ask, acme);
    const [{ id, branch }, ...others] = (await list("/executions?pull_request=7")) as [any];
    expect([branch, others]).toEqual(["cart", []]);
    const execution = `/projects/${project}/executions/${id}`;
    const { causes } = await get(`/executions/${id}/failures`);
    const { testCaseId } = causes.flatMap(({ failures }: any) => failures).find((one: any) => one.taskSlug === "json");
    const { go, evaluate, becomes, signIn, complaints } = await openChromium(url);
    await signIn(await createPerson(database, { team, role: "viewer" }));
    const counted = (selector: string) => evaluate<number>(`document.querySelectorAll("${selector}").length`);
    for (const [path, comparisons] of [
      [`${execution}/tasks/json`, 1],
      [`${execution}/tasks/junit`, 1],
      [`/projects/${project}/tests/${testCaseId}`, 1],
      [execution, 2],
    ] as const) {
      await go(path);
      await evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
      await evaluate("document.querySelectorAll('img').forEach((one) => (one.loading = 'eager'))");
      await becomes("[...document.images].every(({ complete, naturalWidth }) => complete && naturalWidth > 0)");
      expect([path, await counted(".comparison input[type=range]")]).toEqual([path, comparisons]);
    }
    await go(`${execution}/tasks/json`);
    await evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))");
    await evaluate("(document.querySelector('video').muted = true, document.querySelector('video').play())");
    await becomes("document.querySelector('video').currentTime > 0");
    expect(await evaluate<string>("document.body.innerText")).toContain("npx playwright show-trace trace.zip");
    expect(complaints).toEqual([]);
  });
});
