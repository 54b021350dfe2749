/** The attachments of `assay upload`, asserted on the bytes that a server receives. */

import { describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createAttachmentRecorder } from "../attachment_recorder.ts";
import { createFolder, run, variablesOf } from "../commands.ts";
import { createHarness } from "../harness.ts";

const { acme, addProject, ask, url } = await createHarness();
const project = await addProject(acme);

const FIXTURES = join(import.meta.dir, "../fixtures/attachments");
const SECRET = "the secret of the machine";

/** A report whose cases name files: failed, passed and flaky ones, by name. */
function report(cases: { failed?: string[]; passed?: string[]; flaky?: string[]; suite?: string[] }): string {
  const marks = (paths: string[] = []) => paths.map((path) => `[[ATTACHMENT|${path}]]`).join("\n");
  return `<testsuites><testsuite name="s">
    <testcase name="passes"><system-out><![CDATA[${marks(cases.passed)}]]></system-out></testcase>
    <testcase name="is flaky">${cases.flaky ? '<flakyFailure message="m"/>' : ""}<system-out><![CDATA[${marks(cases.flaky)}]]></system-out></testcase>
    <testcase name="fails">${cases.failed ? '<failure message="m"/>' : ""}<system-out><![CDATA[${marks(cases.failed)}]]></system-out></testcase>
    <system-out><![CDATA[${marks(cases.suite)}]]></system-out></testsuite></testsuites>`;
}

/** A folder that holds the workspace `work`, and a secret beside it. */
function createWork(files: Record<string, string>): string {
  const inner = Object.entries(files).map(([name, text]) => [`work/${name}`, text]);
  return join(createFolder({ secret: SECRET, "work/.keep": "", ...Object.fromEntries(inner) }), "work");
}

async function upload(server: string, work: string, args: string[]) {
  const env = { ...variablesOf(server, project), ASSAY_PUBLIC_URL: url, MACHINE_SECRET: SECRET };
  const ended = await run(["upload", ...args], { cwd: work, env });
  return { ...ended, lines: ended.errors.trimEnd().split("\n") };
}

let keys = 0;
const named = () => ["--task", "unit", "--execution-key", `attachments-${++keys}`];

describe("files that a report names", () => {
  test("are sent after it, those of failed and flaky cases in one request", async () => {
    const recorder = createAttachmentRecorder(url);
    const marks = {
      failed: ["shot.png", "ä 😀.log"],
      flaky: ["../flaky.txt"],
      passed: ["passed.png"],
      suite: ["server.log"],
    };
    const work = createWork({
      ...{ "out/report.xml": report(marks), "out/shot.png": "picture", "out/ä 😀.log": "log" },
      ...{ "flaky.txt": "flaky", "out/passed.png": "no", "server.log": "server" },
    });
    const { code, lines, output } = await upload(recorder.url, work, ["out/report.xml", ...named()]);
    expect([code, output]).toEqual([0, expect.stringContaining("FAILED unit")]);
    expect(recorder.requests).toHaveLength(1);
    const { method, path, query, headers, files } = recorder.requests[0]!;
    expect([method, query]).toEqual(["POST", {}]);
    const run = `/projects/${project.project}/executions/[0-9a-f-]{36}/test-runs/unit`;
    expect(path).toMatch(new RegExp(`^${run}/attachments$`));
    expect(headers).toMatchObject({ authorization: `Bearer ${project.key}`, "content-length": expect.any(String) });
    const type = "application/octet-stream";
    expect(files).toEqual([
      { path: "server.log", type, text: "server" },
      { path: "shot.png", type, text: "picture" },
      { path: "ä 😀.log", type, text: "log" },
      { path: "../flaky.txt", type, text: "flaky" },
    ]);
    expect(lines.at(-1)).toBe("assay: Sent 4 attachments, 21 bytes");
  });

  test("are those of all cases with --attachments all, and none with --no-attachments or when all passed", async () => {
    const recorder = createAttachmentRecorder(url);
    const work = createWork({
      // A program printed a line before the report.
      "report.xml": `> npm test\n${report({ failed: ["a.png"], passed: ["b.png"] })}`,
      ...{ "a.png": "a", "b.png": "b" },
      "green.xml": report({ passed: ["b.png"] }),
    });
    await upload(recorder.url, work, ["report.xml", ...named(), "--attachments", "all"]);
    expect(recorder.files().map(({ path }) => path)).toEqual(["a.png", "b.png"]);
    await upload(recorder.url, work, ["report.xml", ...named(), "--no-attachments"]);
    await upload(recorder.url, work, ["green.xml", ...named()]);
    expect(recorder.requests).toHaveLength(1);
    await upload(recorder.url, work, ["green.xml", ...named(), "--attachments=all"]);
    expect(recorder.files().map(({ path }) => path)).toEqual(["a.png", "b.png", "b.png"]);
    const wrong = await upload(recorder.url, work, ["report.xml", "--attachments", "some"]);
    expect(wrong.code).toBe(2);
    expect(wrong.errors).toContain('--attachments: expected "failed" or "all", got "some"');
  });

  test("never leave the attach root, and one line says which are left out", async () => {
    const recorder = createAttachmentRecorder(url);
    const elsewhere = ["../secret", "/proc/self/environ", "/etc/passwd", "~/.ssh/id_rsa", "link", "up/secret"];
    const hostile = [...elsewhere, ".env", ".git/config", "fifo", "gone.png", "https://example.com/a.png", "shot.png"];
    const work = createWork({
      ...{ "report.xml": report({ failed: hostile }), ".env": SECRET, ".git/config": SECRET, "shot.png": "picture" },
    });
    symlinkSync("../secret", join(work, "link"));
    symlinkSync("..", join(work, "up"));
    expect(Bun.spawnSync(["mkfifo", join(work, "fifo")]).exitCode).toBe(0);
    const { code, lines } = await upload(recorder.url, work, ["report.xml", ...named(), "--strict"]);
    expect(code).toBe(0);
    expect(recorder.files()).toEqual([{ path: "shot.png", type: "application/octet-stream", text: "picture" }]);
    expect(JSON.stringify(recorder.requests)).not.toContain(SECRET);
    expect(lines.slice(-2)).toEqual([
      "assay: Sent 1 attachment, 7 bytes",
      'assay: Left out 11 attachments: "../secret", "/proc/self/environ", "/etc/passwd", "link", "up/secret" (outside of the attach root); ' +
        '"~/.ssh/id_rsa", "gone.png" (not found); ".env", ".git/config" (hidden, and may hold secrets); "fifo" (not a regular file); 1 more',
    ]);
  });

  test("may lie elsewhere below --attach-root", async () => {
    const recorder = createAttachmentRecorder(url);
    const work = createWork({ "report.xml": report({ failed: ["../results/shot.png", "other.png", "../secret"] }) });
    const results = join(dirname(work), "results");
    mkdirSync(results);
    writeFileSync(join(results, "shot.png"), "picture");
    writeFileSync(join(results, "other.png"), "other");
    const { lines } = await upload(recorder.url, work, ["report.xml", ...named(), "--attach-root", "../results"]);
    expect(recorder.files().map(({ path, text }) => [path, text])).toEqual([
      ["../results/shot.png", "picture"],
      ["other.png", "other"],
    ]);
    expect(lines.at(-1)).toBe('assay: Left out 1 attachment: "../secret" (outside of the attach root)');
    const none = await upload(recorder.url, work, ["report.xml", ...named(), "--attach-root", "nowhere", "--strict"]);
    expect([none.code, none.errors]).toEqual([0, expect.stringContaining("Attachments were not sent: ENOENT")]);
  });

  test("of real reports of Playwright and Allure are found", async () => {
    const work = createWork({});
    cpSync(FIXTURES, work, { recursive: true });
    const text = readFileSync(join(work, "out/playwright.json"), "utf8");
    writeFileSync(join(work, "out/playwright.json"), text.replaceAll("/home/dev/shop", work));
    const sent = async (...reports: string[]) => {
      const recorder = createAttachmentRecorder(url);
      await upload(recorder.url, work, [...reports, ...named()]);
      return recorder.files();
    };
    const picture = (name: string) => readFileSync(join(FIXTURES, "test-results/cart-shows-the-cart", name)).toString();
    const files = await sent("out/playwright.json");
    expect(files.map(({ path, type }) => [path.replace(`${work}/`, ""), type])).toEqual([
      ["tests/cart.spec.ts-snapshots/cart-linux.png", "image/png"],
      ["test-results/cart-shows-the-cart/cart-actual.png", "image/png"],
      ["test-results/cart-shows-the-cart/cart-diff.png", "image/png"],
      ["test-results/cart-shows-the-cart/test-failed-1.png", "image/png"],
      ["test-results/cart-shows-the-cart/error-context.md", "text/markdown"],
    ]);
    expect(files[1]!.text).toBe(picture("cart-actual.png"));
    const [, actual] = await sent("out/junit.xml");
    const path = "../test-results/cart-shows-the-cart/cart-actual.png";
    expect(actual).toMatchObject({ path, text: picture("cart-actual.png") });
    const allure = await sent("out/allure-results/*.json");
    expect(allure.map(({ path, type }) => [path, type])).toEqual([
      ["89a6adc1-a351-43e3-b23a-3ea0aa993224-attachment.png", "image/png"],
      ["92b6e993-f42c-4a22-b0a5-2e7d94d4dd92-attachment.png", "image/png"],
    ]);
    // These reports hold their files themselves.
    expect(await sent("out/cucumber.json")).toEqual([]);
  });
});

describe("--attach", () => {
  test("sends files for the run as a whole, also of a green one", async () => {
    const recorder = createAttachmentRecorder(url);
    const work = createWork({ "report.xml": report({}), "logs/a.log": "a", "logs/b.log": "b", "config.txt": "c" });
    symlinkSync("../../secret", join(work, "logs/c.log"));
    const args = ["--attach", "logs/*.log", "--attach", "config.txt", "--attach", "none*"];
    const { code, lines } = await upload(recorder.url, work, ["report.xml", ...named(), ...args, "--strict"]);
    expect(code).toBe(0);
    expect(recorder.files().map(({ path, text }) => [path, text])).toEqual([
      ["logs/a.log", "a"],
      ["logs/b.log", "b"],
      ["config.txt", "c"],
    ]);
    expect(lines).toEqual([
      'assay: No file matches "none*"',
      "assay: Sent 3 attachments, 3 bytes",
      'assay: Left out 1 attachment: "logs/c.log" (outside of the attach root)',
    ]);
  });

  test("sends of a command's files those that it has written", async () => {
    const recorder = createAttachmentRecorder(url);
    const work = createWork({ "old.log": "old", "report.txt": report({}) });
    utimesSync(join(work, "old.log"), 1_000_000_000, 1_000_000_000);
    const command = ["--", "sh", "-c", "cat report.txt > report.xml; echo new > new.log"];
    const { lines } = await upload(recorder.url, work, ["report.xml", ...named(), "--attach", "*.log", ...command]);
    expect(recorder.files().map(({ path, text }) => [path, text])).toEqual([["new.log", "new\n"]]);
    expect(lines.find((line) => line.includes("is stale"))).toContain("does the command write its file there?");
  });
});

describe("what goes by itself", () => {
  test("is a large file, streamed, and a path that a form does not carry", async () => {
    const recorder = createAttachmentRecorder(url);
    const work = createWork({ "report.xml": report({ failed: ["video.webm", '100 %22"\\.png', "small.png"] }), x: "" });
    writeFileSync(join(work, "video.webm"), "");
    truncateSync(join(work, "video.webm"), 5_000_000);
    writeFileSync(join(work, '100 %22"\\.png'), "odd");
    writeFileSync(join(work, "small.png"), "small");
    const { lines } = await upload(recorder.url, work, ["report.xml", ...named()]);
    const sent = recorder.requests.map(({ method, query, headers, files }) => [
      ...[method, query, headers["content-length"], files.map(({ text }) => text.length)],
    ]);
    const type = { content_type: "application/octet-stream" };
    expect(sent).toEqual([
      ["PUT", { path: "video.webm", name: "video.webm", ...type }, "5000000", [5_000_000]],
      ["PUT", { path: '100 %22"\\.png', name: ".png", ...type }, "3", [3]],
      ["POST", {}, expect.any(String), [5]],
    ]);
    expect(lines.at(-1)).toBe("assay: Sent 3 attachments, 5000008 bytes");
  });

  test("is no more than 200 files of a run", async () => {
    const recorder = createAttachmentRecorder(url);
    const files = Array.from({ length: 205 }, (_, index) => `f${index}`);
    const work = createWork({ "report.xml": report({}), ...Object.fromEntries(files.map((name) => [name, name])) });
    const { lines } = await upload(recorder.url, work, ["report.xml", ...named(), "--attach", "f*"]);
    expect([recorder.requests.length, recorder.files().length]).toEqual([1, 200]);
    expect(lines.at(-1)).toStartWith("assay: Left out 5 attachments: ");
    expect(lines.at(-1)).toEndWith("(more than 200 of a run)");
  });
});

describe("a server that does not take them is no failure", () => {
  const files = { "a.png": "a", "b.png": "b", "c.png": "c", "d.png": "d" };
  const createFailed = () => createWork({ "report.xml": report({ failed: Object.keys(files) }), ...files });

  test("one without such an address gets one request", async () => {
    const recorder = createAttachmentRecorder(url);
    recorder.play(() => ({ status: 404, body: { error: { code: "NOT_FOUND", message: "No such path" } } }));
    const { code, lines } = await upload(recorder.url, createFailed(), ["report.xml", ...named(), "--strict"]);
    expect([code, lines]).toEqual([0, ["assay: Attachments were not sent: the server takes none: No such path"]]);
    expect(recorder.requests.map(({ method }) => method)).toEqual(["POST"]);
  });

  test("one that is away is asked again, for as long as the patience lasts", async () => {
    const recorder = createAttachmentRecorder(url);
    recorder.play(() => ({ status: recorder.requests.length < 3 ? 503 : 201 }));
    const args = ["report.xml", ...named(), "--patience", "3"];
    const { lines } = await upload(recorder.url, createFailed(), args);
    expect([recorder.requests.length, lines]).toEqual([3, ["assay: Sent 4 attachments, 4 bytes"]]);
    expect(recorder.requests.map(({ files }) => files.length)).toEqual([4, 4, 4]);
    recorder.play(() => ({ status: 503, body: { error: { code: "INTERNAL", message: "The store is away" } } }));
    const away = await upload(recorder.url, createFailed(), ["report.xml", ...named(), "--patience", "0", "--strict"]);
    expect([away.code, away.lines]).toEqual([0, ["assay: Attachments were not sent: The store is away"]]);
  });

  test("a body that is too large is sent in parts", async () => {
    const recorder = createAttachmentRecorder(url);
    recorder.play(({ files }) => ({ status: files.length > 2 ? 413 : 201 }));
    const { lines } = await upload(recorder.url, createFailed(), ["report.xml", ...named()]);
    const parts = recorder.requests.map(({ files }) => files.map(({ path }) => basename(path, ".png")).join(""));
    expect(parts).toEqual(["abcd", "ab", "cd"]);
    expect(lines).toEqual(["assay: Sent 4 attachments, 4 bytes"]);
  });

  test("what it refuses or does not keep is told", async () => {
    const recorder = createAttachmentRecorder(url);
    const warnings = ['"a.png" is larger than 50 MB'];
    recorder.play(() => ({ status: 201, body: { attachments: [{}, {}, {}], warnings } }));
    const kept = await upload(recorder.url, createFailed(), ["report.xml", ...named()]);
    expect(kept.lines).toEqual(["assay: Sent 3 attachments, 4 bytes", 'assay: Warning: "a.png" is larger than 50 MB']);
    const error = { code: "VALIDATION_ERROR", message: "no ##[error]\u001b[31m" };
    recorder.play(() => ({ status: 400, body: { error } }));
    const refused = await upload(recorder.url, createFailed(), ["report.xml", ...named()]);
    const left = 'assay: Left out 4 attachments: "a.png", "b.png", "c.png", "d.png" (no # #[error] [31m)';
    expect(refused.lines).toEqual([left]);
  });
});

test("a server keeps what it is sent, by the names and at the cases of the report, once", async () => {
  const work = createWork({ "server.log": "log" });
  cpSync(FIXTURES, work, { recursive: true });
  const report = join(work, "out/playwright.json");
  writeFileSync(report, readFileSync(report, "utf8").replaceAll("/home/dev/shop", work));
  writeFileSync(join(work, "video.webm"), "");
  truncateSync(join(work, "video.webm"), 5_000_000);
  const args = [report, ...named(), "--attach", "server.log", "--attach", "video.webm"];
  const { lines } = await upload(url, work, args);
  expect(lines[0]).toStartWith("assay: Sent 7 attachments, ");
  const { key } = project;
  const [{ id }] = (await ask(`GET /projects/${project.project}/executions?limit=1`, { key })).body.data;
  const path = `/projects/${project.project}/executions/${id}/test-runs/unit/attachments`;
  const kept = async () => (await ask(`GET ${path}`, { key })).body.data;
  const inShort = ({ name, bytes, testCaseIds }: any) => [name, bytes, testCaseIds.length];
  const size = (name: string) => readFileSync(join(FIXTURES, name)).length;
  const folder = "test-results/cart-shows-the-cart";
  expect((await kept()).map(inShort).toSorted()).toEqual(
    [
      ["server.log", 3, 0],
      ["video.webm", 5_000_000, 0],
      // The report holds this one itself.
      ["request.json", 13, 1],
      ["cart-expected.png", size("tests/cart.spec.ts-snapshots/cart-linux.png"), 1],
      ["cart-actual.png", size(`${folder}/cart-actual.png`), 1],
      ["cart-diff.png", size(`${folder}/cart-diff.png`), 1],
      ["screenshot", size(`${folder}/test-failed-1.png`), 1],
      ["error-context", size(`${folder}/error-context.md`), 1],
    ].toSorted(),
  );
  const before = await kept();
  await upload(url, work, args);
  expect(await kept()).toEqual(before);
});

test("a server reads a blob report of Playwright, and keeps the files of failed cases that are in its archive", async () => {
  const work = createWork({});
  cpSync(join(import.meta.dir, "../fixtures/playwright_blob.zip"), join(work, "report.zip"));
  const { output } = await upload(url, work, ["report.zip", ...named()]);
  expect(output).toContain("FAILED unit: 3 passed, 3 failed (3 new), 2 skipped, 1 flaky");
  const { key } = project;
  const [{ id }] = (await ask(`GET /projects/${project.project}/executions?limit=1`, { key })).body.data;
  const path = `/projects/${project.project}/executions/${id}/test-runs/unit/attachments`;
  const kept = (await ask(`GET ${path}`, { key })).body.data;
  expect(kept.map(({ name, bytes }: any) => [name, bytes]).toSorted()).toEqual([
    ["cart", 8],
    ["file", 7],
  ]);
});
