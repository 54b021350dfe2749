/** Attachments in the dashboard: where they are shown, and who reads their content. */

import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { createPlace } from "../places.ts";
import { drawPage } from "../png.ts";
import { createPages } from "./browser.ts";

const directory = createPlace("attachments");
const { own, look, fill, people, url } = await createPages({ attachments: { directory } });

const names = ["cart-expected.png", "cart-actual.png", "cart-diff.png", "page.html", "trace.zip", "<b>&.bin"];
const contents = [drawPage(10), drawPage(20), drawPage(20, 10), "<script>alert(1)</script>", "PK\x03\x04", "\0"];
const form = new FormData();
names.forEach((name, index) => form.append("attachment", new Blob([contents[index]!]), name));
const failed = {
  name: "shows the cart",
  status: "failed",
  message: "differs",
  attachments: names.map((path) => ({ path })),
};
form.append("file", new Blob([JSON.stringify({ passed: 0, failed: 1, skipped: 0, cases: [failed] })]), "report.json");
const run = await own.uploadReport(form, "task_slug=e2e&branch=main");
const base = own.path;
const execution = `${base}/executions/${run.executionId}`;
const [{ testCaseId, attachments }] = await own.list(`/executions/${run.executionId}/test-runs/e2e/cases`);
const pathTo = (name: string) => `${base}/attachments/${attachments.find((one: any) => one.name === name).id}`;

test.each([
  ["the execution", execution],
  ["the task", `${execution}/tasks/e2e`],
  ["the result", `${execution}/tasks/e2e?case=${testCaseId}`],
  ["the test", `${base}/tests/${testCaseId}`],
  ["the bug", `${base}/bugs/${run.bugReports[0].id}`],
])("the page of %s shows them", async (_, path) => {
  const { status, html } = await look("viewer", path);
  expect(status).toBe(200);
  for (const name of names.slice(0, 3)) expect(html).toContain(`<img src="${pathTo(name)}"`);
  expect(html).toContain(`type="range"`);
  // HTML is shown as the text that it is.
  expect(html).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
  expect(html).toContain("npx playwright show-trace trace.zip");
  expect(html).toContain(`download="&lt;b&gt;&amp;.bin"`);
});

test("a shared link shows none of them", async () => {
  const { html } = await fill("member", `${execution}/share`);
  const path = new URL(/https?:[^\s"<&]+\/shared\/[^\s"<&)]+/.exec(html)![0]).pathname;
  const shared = await look("nobody", path);
  expect(shared.status).toBe(200);
  expect(shared.html).not.toContain("/attachments/");
  expect(shared.words).not.toContain("cart-actual.png");
});

test("members read the content, and browsers ask again each time", async () => {
  const path = pathTo("cart-actual.png");
  const cookie = `assay_session=${people.viewer.token}`;
  const first = await fetch(`${url}${path}`, { headers: { cookie } });
  expect([first.status, first.headers.get("content-type"), first.headers.get("cache-control")]).toEqual([
    ...[200, "image/png", "private, no-cache"],
  ]);
  expect(Buffer.from(await first.bytes()).equals(Buffer.from(contents[1] as Uint8Array))).toBe(true);
  const again = await fetch(`${url}${path}`, { headers: { cookie, "if-none-match": first.headers.get("etag")! } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
  const part = await fetch(`${url}${path}`, { headers: { cookie, range: "bytes=1-3" } });
  expect([part.status, await part.text()]).toEqual([206, "PNG"]);
});

test("content that the store has lost is a page that does not exist", async () => {
  rmSync(directory, { recursive: true });
  expect((await look("viewer", pathTo("cart-actual.png"))).status).toBe(404);
  // The pages that show it are still there.
  expect((await look("viewer", execution)).status).toBe(200);
});
