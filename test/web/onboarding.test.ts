import { describe, expect, test } from "bun:test";
import { createHarness, junit } from "../harness.ts";
import { createBrowser, toWords } from "./browser.ts";

const harness = await createHarness();
const { acme, rival, ask, addProject, database, url } = harness;
const owner = await createBrowser(harness, { team: acme.team, role: "owner" });
const member = await createBrowser(harness, { team: acme.team, role: "member" });
const viewer = await createBrowser(harness, { team: acme.team, role: "viewer" });
const stranger = await createBrowser(harness, { team: rival.team, role: "owner" });
const nobody = await createBrowser(harness, undefined);

type Own = { project: string; key: string };
const pathOf = ({ project }: Pick<Own, "project">) => `/projects/${project}/onboarding`;
const stepOf = (html: string, title: string) =>
  toWords([...html.matchAll(/<tr>[^]*?<\/tr>/g)].map(([row]) => row).find((row) => row.includes(title))!);
const copied = (html: string) =>
  [...html.matchAll(/<pre data-copy[^>]*>([^]*?)<\/pre>/g)].map(([, text]) => toWords(text!));

describe("/projects/:projectId/onboarding", () => {
  test("gives the line to paste, with real ids and the key as a variable", async () => {
    const own = await addProject(acme);
    const { status, html, words } = await member.get(pathOf(own));
    expect(status).toBe(200);
    expect(words).toContain("Send your first report");
    const [curl, , cli] = copied(html);
    expect(curl).toBe(
      `curl -H "Authorization: Bearer $ASSAY_KEY" -H "Accept: text/plain" --data-binary @report.xml \\ "${url}/api/v1/projects/${own.project}/test-runs?branch=main&complete=true"`,
    );
    expect(cli).toBe(
      `export ASSAY_URL='${url}' ASSAY_PROJECT=${own.project} assay upload 'reports/**/*.xml' -- npm test`,
    );
    expect(html).not.toContain(own.key);
    expect(html).toContain(`data-live="/projects/${own.project}/live"`);
    expect(html.length).toBeLessThan(30_000);
  });

  test("the lines work as they stand, also where the branch has an odd name", async () => {
    const own = await addProject(acme);
    const branch = 'it\'s "$(touch x)" `y`!';
    await database.pool`update project set default_branch = ${branch} where id = ${own.project}`;
    const lines = copied((await member.get(pathOf(own))).html);
    const report = `${import.meta.dir}/../fixtures/bun_junit.xml`;
    for (const line of lines.slice(0, 2)) {
      const command = line!.replace("\\ ", "").replace("@report.xml", `@${report}`);
      const child = Bun.spawn(["sh", "-c", command], { env: { ...process.env, ASSAY_KEY: own.key }, stderr: "ignore" });
      expect(await new Response(child.stdout).text()).toContain("/executions/");
    }
    const { body } = await ask(`GET /projects/${own.project}/executions`, { key: own.key });
    expect(body.data.map((execution: { branch: string }) => execution.branch)).toEqual([null, branch]);
  });

  test("shows what fits each CI system at an address of its own", async () => {
    const own = await addProject(acme);
    const first = await member.get(pathOf(own));
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
      "curl",
    ]);
    const answer = await ask(`GET /projects/${own.project}/onboarding`, { key: own.key });
    for (const { href, system } of links) {
      const { html } = await member.get(href!);
      expect(copied(html)[3]).toBe(toWords(Bun.escapeHTML(answer.body.snippets[system!])));
    }
    expect((await member.get(`${pathOf(own)}?ci=make`)).status).toBe(400);
  });

  test("says where the key comes from, to each role", async () => {
    const own = await addProject(acme);
    const ofMember = await member.get(pathOf(own));
    expect(ofMember.html).toContain(`/projects/${own.project}/settings/key`);
    expect(ofMember.words).toContain("The key was shown once");
    const ofViewer = await viewer.get(pathOf(own));
    expect(ofViewer.html).not.toContain("/settings/key");
    expect(ofViewer.words).toContain("Members of the team can generate one");
    await database.pool`update api_key set revoked_at = now() where project_id = ${own.project}`;
    expect((await member.get(pathOf(own))).words).toContain("The project has no key yet. Generate key");
  });

  test("notices the first report, and tells progress by what happened", async () => {
    const own = await addProject(acme);
    const before = await member.get(pathOf(own));
    expect(before.html).toContain(`<a href="${pathOf(own)}">Refresh</a>`);
    expect(stepOf(before.html, "Send commit")).toMatch(/^○ to do /);
    await ask(`POST /projects/${own.project}/onboarding/sample-data`, { key: own.key });
    expect((await member.get(pathOf(own))).words).toContain("Send your first report");
    const { body } = await ask(`POST /projects/${own.project}/test-runs?branch=main&commit=abc1234`, {
      key: own.key,
      body: junit("pppf"),
    });
    const { html, words } = await member.get(pathOf(own));
    expect(words).toContain("Your first report has arrived: 3 passed, 1 failed");
    expect(html).toContain(`<a href="/projects/${own.project}/executions/${body.executionId}">3 passed, 1 failed</a>`);
    expect(stepOf(html, "Upload a first report")).toBe("● done Upload a first report just now");
    expect(stepOf(html, "Send commit")).toMatch(/^● done /);
    expect(words).toContain("2 of 6 steps done");
  });

  test("a step is skipped and taken up again, the others stay as they are", async () => {
    const own = await addProject(acme);
    const skip = (step: string, skipped: boolean) =>
      member.send(`${pathOf(own)}/steps`, { step, skipped: String(skipped) }, pathOf(own));
    for (const step of ["environment", "integration"]) expect((await skip(step, true)).location).toBe(pathOf(own));
    expect((await skip("environment", false)).status).toBe(303);
    const { html } = await member.get(pathOf(own));
    expect(stepOf(html, "Send the environment")).toMatch(/^○ to do .* Skip$/);
    expect(stepOf(html, "Connect your tools")).toBe("– skipped Connect your tools skipped Resume");
    expect((await skip("lunch", true)).status).toBe(400);
  });

  test("is dismissed, and stays where it is", async () => {
    const own = await addProject(acme);
    const dismiss = (dismissed: string) => member.send(`${pathOf(own)}/dismiss`, { dismissed }, pathOf(own));
    expect((await dismiss("true")).location).toBe(`/projects/${own.project}`);
    expect((await member.get(pathOf(own))).words).toContain("Show in the project again");
    expect((await dismiss("false")).location).toBe(pathOf(own));
    expect((await member.get(pathOf(own))).words).toContain("Dismiss");
  });

  test("sample data comes, is told, and goes", async () => {
    const own = await addProject(acme);
    const path = `${pathOf(own)}/sample-data`;
    expect((await member.send(path, {}, pathOf(own))).location).toBe(`/projects/${own.project}`);
    const there = await member.get(pathOf(own));
    expect(there.words).toContain("This project contains sample data: 42 executions, 22 tests and 2 bugs");
    expect(there.words).toContain("2 bugs. Your own results are kept.");
    expect((await member.send(`${path}/delete`, {}, pathOf(own))).location).toBe(pathOf(own));
    expect((await member.get(pathOf(own))).words).toContain("Add sample data");
  });

  test("viewers read it and change nothing; others do not learn of it", async () => {
    const path = pathOf(acme);
    const { html, status } = await viewer.get(path);
    expect(status).toBe(200);
    expect(html).not.toContain(`action="${path}`);
    expect((await owner.get(path)).html).toContain(`action="${path}/sample-data"`);
    expect((await stranger.get(path)).status).toBe(404);
    expect((await nobody.get(path)).location).toBe(`/login?next=${encodeURIComponent(path)}`);
    const forms: [path: string, fields: Record<string, string>][] = [
      [`${path}/steps`, { step: "environment", skipped: "true" }],
      [`${path}/dismiss`, { dismissed: "true" }],
      [`${path}/sample-data`, {}],
      [`${path}/sample-data/delete`, {}],
    ];
    for (const [form, fields] of forms) {
      expect((await viewer.send(form, fields)).status).toBe(403);
      expect((await stranger.send(form, fields)).status).toBe(404);
      expect((await nobody.send(form, fields)).location).toBe("/login");
      expect((await member.send(form, { ...fields, csrf: "x" })).status).toBe(403);
    }
    const { body } = await ask(`GET /projects/${acme.project}/onboarding`, { key: acme.key });
    expect(body.dismissed).toBe(false);
    expect(body.steps.map((step: { status: string }) => step.status)).not.toContain("skipped");
  });
});
