import { describe, expect, test } from "bun:test";
import { createPages } from "./browser.ts";
import { toWords } from "../browser.ts";

const { createProject, look, fill, database, url } = await createPages();

const stepOf = (html: string, title: string) =>
  toWords([...html.matchAll(/<tr>[^]*?<\/tr>/g)].map(([row]) => row).find((row) => row.includes(title))!);
const copied = (html: string) =>
  [...html.matchAll(/<pre data-copy[^>]*>([^]*?)<\/pre>/g)].map(([, text]) => toWords(text!));

describe("/projects/:projectId/onboarding", () => {
  test("gives the line to paste, with real ids and the key as a variable", async () => {
    const own = await createProject();
    const page = `${own.path}/onboarding`;
    const { status, html, words } = await look("member", page);
    expect(status).toBe(200);
    expect(words).toContain("Send your first report");
    const [curl, , cli] = copied(html);
    expect(curl).toBe(
      `curl -H "Authorization: Bearer $ASSAY_KEY" -H "Accept: text/plain" --data-binary @report.xml "${url}/api/v1/projects/${own.project}/test-runs?complete=true"`,
    );
    expect(cli).toBe(`export ASSAY_URL='${url}' ASSAY_PROJECT=${own.project} assay upload report.xml -- npm test`);
    expect(html).not.toContain(own.key);
    expect(html).toContain(`data-live="/projects/${own.project}/live"`);
    expect(html.length).toBeLessThan(30_000);
  });

  test("shows what fits each CI system at an address of its own", async () => {
    const own = await createProject();
    const page = `${own.path}/onboarding`;
    const first = await look("member", page);
    expect(copied(first.html)[3]).toContain("secrets.ASSAY_KEY");
    const links = [...first.html.matchAll(/href="([^"]+\?ci=(\w+)#ci)"/g)].map(([, href, system]) => ({
      href,
      system,
    }));
    expect(links.map(({ system }) => system)).toEqual([
      "githubActions",
      "gitlabCi",
      "jenkins",
      "circleci",
      "azurePipelines",
      "buildkite",
    ]);
    const { snippets } = await own.get("/onboarding");
    for (const { href, system } of links) {
      const { html } = await look("member", href!);
      expect(copied(html)[3]).toBe(toWords(Bun.escapeHTML(snippets[system!])));
    }
    expect((await look("member", `${page}?ci=make`)).status).toBe(400);
  });

  test("says where the key comes from, to each role", async () => {
    const own = await createProject();
    const page = `${own.path}/onboarding`;
    const ofMember = await look("member", page);
    expect(ofMember.html).toContain(`${own.path}/settings/key`);
    expect(ofMember.words).toContain("The key was shown once");
    const ofViewer = await look("viewer", page);
    expect(ofViewer.html).not.toContain("/settings/key");
    expect(ofViewer.words).toContain("Members of the team can generate one");
    await database.pool`update api_key set revoked_at = now() where project_id = ${own.project}`;
    expect((await look("member", page)).words).toContain("The project has no key yet. Generate key");
  });

  test("notices the first report, and tells progress by what happened", async () => {
    const own = await createProject();
    const page = `${own.path}/onboarding`;
    const before = await look("member", page);
    expect(before.html).toContain(`<a href="${page}">Refresh</a>`);
    expect(stepOf(before.html, "Send commit")).toMatch(/^○ to do /);
    await own.post("/onboarding/sample-data");
    expect((await look("member", page)).words).toContain("Send your first report");
    const { executionId } = await own.upload("pppf", "branch=main&commit=abc1234");
    const { html, words } = await look("member", page);
    expect(words).toContain("Your first report has arrived: 3 passed, 1 failed");
    expect(html).toContain(`<a href="/projects/${own.project}/executions/${executionId}">3 passed, 1 failed</a>`);
    expect(stepOf(html, "Upload a first report")).toBe("● done Upload a first report just now");
    expect(stepOf(html, "Send commit")).toMatch(/^● done /);
    expect(words).toContain("3 of 7 steps done");
  });

  test("a step is skipped and taken up again, the others stay as they are", async () => {
    const own = await createProject();
    const page = `${own.path}/onboarding`;
    const skip = (step: string, skipped: boolean) =>
      fill("member", `${page}/steps`, { step, skipped: String(skipped) });
    for (const step of ["environment", "integration"]) expect((await skip(step, true)).location).toBe(page);
    expect((await skip("environment", false)).status).toBe(303);
    const { html } = await look("member", page);
    expect(stepOf(html, "Send the environment")).toMatch(/^○ to do .* Skip$/);
    expect(stepOf(html, "Connect your tools")).toBe("– skipped Connect your tools skipped Resume");
    expect((await skip("lunch", true)).status).toBe(400);
  });

  test("is dismissed, and stays where it is", async () => {
    const own = await createProject();
    const page = `${own.path}/onboarding`;
    const dismiss = (dismissed: string) => fill("member", `${page}/dismiss`, { dismissed });
    expect((await dismiss("true")).location).toBe(own.path);
    expect((await look("member", page)).words).toContain("Show in the project again");
    expect((await dismiss("false")).location).toBe(page);
    expect((await look("member", page)).words).toContain("Dismiss");
  });

  test("sample data comes, is told, and goes", async () => {
    const own = await createProject();
    const page = `${own.path}/onboarding`;
    const path = `${page}/sample-data`;
    expect((await fill("member", path)).location).toBe(own.path);
    const there = await look("member", page);
    expect(there.words).toContain("This project contains sample data: 42 executions, 22 tests and 2 bugs");
    expect(there.words).toContain("2 bugs. Your own results are kept.");
    expect((await fill("member", `${path}/delete`)).location).toBe(page);
    expect((await look("member", page)).words).toContain("Add sample data");
  });
});
