/** Who changed what: pages and messages about builds of a real repository that `assay upload` has reported. */

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createFolder } from "../commands.ts";
import { junit, until } from "../harness.ts";
import { createProbedRepository, startProbeRunner } from "../probing.ts";
import { createAutomating } from "../automating.ts";
import { createReceiver } from "../receiver.ts";
import { createUploads } from "../uploads.ts";
import { createPages } from "./browser.ts";

const pages = await createPages({ outboundAllow: ["127.0.0.0/8"] });
const { look, createProject } = pages;
const { upload } = await createUploads(pages);
const { integrate, automate, settle } = createAutomating(pages, pages.acme);
const receiver = createReceiver();

const PEOPLE = ["Ada Lovelace", "Bob", "Eve"];

/** A repository in which each subject is a commit of its own. */
function createRepository() {
  const folder = createFolder();
  const git = (...args: string[]) => {
    const { success, stdout, stderr } = Bun.spawnSync(["git", ...args], { cwd: folder });
    if (!success) throw new Error(String(stderr));
    return String(stdout).trim();
  };
  git("init", "-q", "-b", "main");
  let count = 0;
  return {
    folder,
    commit(subject: string): string {
      const author = PEOPLE[count++ % PEOPLE.length]!;
      const as = ["-c", `user.name=${author}`, "-c", "user.email=a@b.test"];
      git(...as, "commit", "-q", "--allow-empty", "-m", `${subject}\n\nWith a body.`);
      return git("rev-parse", "HEAD");
    },
    report: (letters: string) => writeFileSync(join(folder, "report.xml"), junit(letters)),
  };
}

test("a test that broke between two builds names the commits between them with their authors", async () => {
  const project = await createProject();
  const { folder, commit, report } = createRepository();
  const send = async (letters: string) => {
    report(letters);
    const { code, errors } = await upload(project, ["report.xml", "--task", "unit", "--complete"], { folder });
    expect([code, errors]).toEqual([0, ""]);
  };
  const integrationId = await integrate("webhook", { url: receiver.url });
  const actions = [{ type: "notify", integrationId }];
  await automate({ trigger: { event: "execution.failed" }, conditions: { projects: [project.project] }, actions });
  commit("Begin");
  const good = commit("Sort the list");
  await send("pp");
  const first = commit("Round <prices>");
  const second = commit("Rename a field");
  await send("fp");

  const [test] = await project.list("/test-cases?sort=failures");
  const { words } = await look("viewer", `${project.path}/tests/${test.id}`);
  expect(words).toContain(
    `2 commits are between the two: ${second.slice(0, 7)} Rename a field by Ada Lovelace ${first.slice(0, 7)} Round <prices> by Eve`,
  );
  expect(words).not.toContain("git log");

  const [build, before] = await project.list("/executions");
  expect([before.commit, before.commitSubject, before.commitAuthor]).toEqual([good, "Sort the list", "Bob"]);
  for (const path of ["", "/executions", `/executions/${build.id}`])
    expect((await look("viewer", `${project.path}${path}`)).words).toContain("Rename a field by Ada Lovelace");
  expect((await look("viewer", project.path)).words).toContain("2 commits by Ada Lovelace, Eve");
  await settle();
  expect(receiver.requests).toHaveLength(1);
  expect(receiver.requests[0]!.body.data.execution).toMatchObject({ commit: second, commitAuthor: "Ada Lovelace" });
});

test("a runner describes the commit that it has checked out", async () => {
  const project = await createProject();
  const repository = await createProbedRepository([{ test: "exit 0" }, { test: "exit 0" }]);
  const runner = startProbeRunner({ url: pages.url, project, tasks: { unit: repository.task } });
  const { id } = await project.post("/executions", { mode: "run", branch: "main", tasks: [{ slug: "unit" }] });
  await until(async () => (await project.get(`/executions/${id}`)).status === "passed", 30);
  expect(await runner.stop()).toBe(0);
  const [, commit] = repository.commits;
  const words = { commit, commitAuthor: "Ada", commitSubject: "change 1" };
  expect(await project.get(`/executions/${id}`)).toMatchObject(words);
});
