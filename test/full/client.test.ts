/** The npm package assay-client: TypeScript checks a program that uses it, and Node runs it against a server. Needs the npm registry. */

import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packNpmPackages } from "../../tools/npm_packages.ts";
import { createHarness } from "../harness.ts";
import { createPlace, readOutput } from "../places.ts";

const isReachable = Bun.spawnSync(["npm", "ping", "--fetch-retries=0", "--fetch-timeout=10000"]).success;
if (!isReachable) console.warn("The npm registry cannot be reached: assay-client is not tried");

const { acme, url } = await createHarness({ rateLimitPerMinute: 1000 });
const folder = createPlace("client");

const run = (command: string[], env: Record<string, string> = {}) =>
  readOutput(
    Bun.spawn(command, {
      cwd: folder,
      env: { PATH: process.env["PATH"]!, HOME: folder, ...env },
      stdout: "pipe",
      stderr: "pipe",
    }),
  );

const PROGRAM = `
import { AssayError, createClient, listAll, type ExecutionFailedWebhook, type StreamEvent, type WebhookBody } from "assay-client";

const assay = createClient({ url: process.env["ASSAY_URL"]!, key: process.env["ASSAY_KEY"]!, projectId: process.env["ASSAY_PROJECT"] });

const stop = new AbortController();
const seen: StreamEvent["event"][] = [];
const watching = (async () => {
  for await (const one of await assay.streamEvents({}, { signal: stop.signal })) {
    seen.push(one.event);
    if (one.event !== "execution.failed") continue;
    const status: string = one.data.execution.status;
    return status;
  }
  return "none";
})();

const report = { cases: [{ name: "adds an item", status: "passed" as const }, { name: "removes it", status: "failed" as const }] };
const sent = await assay.uploadReport({ task_slug: "unit", branch: "main", body: report, idempotencyKey: "build-1" });
const repeated = await assay.uploadReport({ task_slug: "unit", branch: "main", body: report, idempotencyKey: "build-1" });
await assay.uploadReport({ task_slug: "xml", body: '<testsuite name="s"><testcase classname="s" name="a b/ü"/></testsuite>' });
const form = new FormData();
form.append("report", new Blob(['<testsuite name="s"><testcase classname="s" name="a"/></testsuite>']), "a.xml");
await assay.uploadReport({ task_slug: "form", body: form });

const runs: string[] = [];
for await (const { taskSlug, passed } of listAll(assay.listTestRuns, { limit: 1 })) runs.push(\`\${taskSlug} \${passed}\`);
const names: string[] = [];
for await (const one of listAll(assay.listTestRunCases, { executionId: sent.executionId, taskSlug: "unit" })) names.push(one.name);

await assay.uploadAttachment({ executionId: sent.executionId, taskSlug: "unit", path: "log.txt", body: "hello" });
const { data: attachments } = await assay.listTestRunAttachments({ executionId: sent.executionId, taskSlug: "unit" });
const file = await assay.downloadAttachment({ attachmentId: attachments[0]!.id });

await assay.setOwners({ body: "* @acme/all\\n" });
const none: undefined = await assay.deleteExecution({ executionId: repeated.executionId, idempotencyKey: undefined } as { executionId: string });
const problem = await assay.getExecution({ executionId: sent.executionId }).catch((error: unknown) => error);
if (!(problem instanceof AssayError)) throw problem;
const elsewhere = await createClient({ url: "http://127.0.0.1:" + new URL(process.env["ASSAY_URL"]!).port + "/login", key: "k", projectId: "p" })
  .listTestRuns().catch((error: unknown) => error);
const missing = await createClient({ url: process.env["ASSAY_URL"]!, key: "k" }).getProject().catch(String);

export const isFailed = (body: WebhookBody): body is ExecutionFailedWebhook => body.type === "execution.failed";

const status = await watching;
stop.abort();
console.log(JSON.stringify({
  same: sent.executionId === repeated.executionId, runs: runs.sort(), names: names.sort(), text: await file.text(), none: none === undefined,
  problem: [problem.status, problem.code, typeof problem.requestId], elsewhere: elsewhere instanceof AssayError && elsewhere.status,
  missing, status, seen: seen.includes("test_run.completed"),
}));
`;

/** The programs in the documents about the client. */
const DOCUMENTED = ["docs/api.md", "tools/npm/assay-client/README.md"].flatMap((path) => [
  ...readFileSync(join(import.meta.dir, "../..", path), "utf8").matchAll(/```js\n([^`]+)```/g),
]);

/** What the types must refuse. */
const WRONG = `
import { createClient } from "assay-client";
const assay = createClient({ url: "http://127.0.0.1", key: "k" });
// @ts-expect-error
await assay.getExecution({});
// @ts-expect-error
await assay.listTestRuns({ limt: 5 });
// @ts-expect-error
await assay.createExecution({ body: { mode: "fast" } });
// @ts-expect-error
(await assay.getProject()).nam;
`;

test.skipIf(!isReachable)(
  "a program of strict TypeScript is checked, and calls, uploads, downloads, lists and streams in Node",
  async () => {
    const { "assay-client": tarball } = await packNpmPackages(join(folder, "packed"));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const packages = [tarball!, "typescript@5.9.3", "@types/node@24.10.1"];
    expect(await run(["npm", "install", "--no-audit", "--no-fund", ...packages])).toMatchObject({ code: 0 });
    writeFileSync(join(folder, "program.ts"), PROGRAM);
    writeFileSync(join(folder, "wrong.ts"), WRONG);
    const options = ["--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2022"];
    expect(await run(["npx", "--no-install", "tsc", ...options, "program.ts", "wrong.ts"])).toEqual({
      code: 0,
      output: "",
      errors: "",
    });
    const env = { ASSAY_URL: url, ASSAY_PROJECT: acme.project, ASSAY_KEY: acme.key };
    const ended = await run(["node", "program.js"], env);
    expect([ended.errors, ended.code]).toEqual(["", 0]);
    expect(JSON.parse(ended.output)).toEqual({
      ...{
        same: true,
        runs: ["form 1", "unit 1", "xml 1"],
        names: ["adds an item", "removes it"],
        text: "hello",
        none: true,
      },
      ...{ problem: [404, "NOT_FOUND", "string"], elsewhere: 404, missing: "TypeError: projectId is missing" },
      ...{ status: "failed", seen: true },
    });
    expect(DOCUMENTED).toHaveLength(2);
    for (const [index, [, program]] of DOCUMENTED.entries()) {
      writeFileSync(join(folder, `documented${index}.js`), program!);
      expect(await run(["node", `documented${index}.js`], env)).toMatchObject({ code: 0, errors: "" });
    }
  },
  180_000,
);
