/** Attachments in S3: a real server of its protocol, which goes away and comes back. */

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createHarness, createServer, junit } from "../harness.ts";
import { createPlace } from "../places.ts";
import { BUCKET, createS3 } from "../s3.ts";

const s3 = await createS3();
const directory = createPlace("attachments");
const { ask, acme, url, database } = await createHarness({ attachments: { directory, s3: s3.settings } });
const { key, project } = acme;

const { body: run } = await ask(`POST /projects/${project}/test-runs?task_slug=e2e`, { key, body: junit("f") });
const put = (path: string, body: string | Uint8Array) =>
  ask(`PUT /projects/${project}/executions/${run.executionId}/test-runs/e2e/attachments?path=${path}`, { key, body });
const read = (id: string, headers: Record<string, string> = {}, server = url) =>
  fetch(`${server}/api/v1/projects/${project}/attachments/${id}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    redirect: "manual",
  });

const video = Buffer.concat([Buffer.from("\0\0\0 ftypisom"), crypto.getRandomValues(new Uint8Array(60_000))]);

test("content is an object of the bucket, and comes back whole and in parts", async () => {
  const { status, body } = await put("video.mp4", video);
  expect(status).toBe(201);
  const { id, sha256 } = body.attachment;
  const objects = readdirSync(join(s3.directory, BUCKET, s3.settings.prefix), { recursive: true }) as string[];
  expect(objects.some((path) => path.includes(join(project, sha256.slice(0, 2), sha256.slice(2, 4), sha256)))).toBe(
    true,
  );
  expect(readdirSync(join(directory, "incoming"))).toEqual([]);
  const whole = await read(id);
  expect([whole.status, whole.headers.get("content-type")]).toEqual([200, "video/mp4"]);
  expect(whole.headers.get("content-length")).toBe(String(video.byteLength));
  expect(Buffer.from(await whole.bytes()).equals(video)).toBe(true);
  const part = await read(id, { range: "bytes=100-299" });
  expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 100-299/${video.byteLength}`]);
  expect(Buffer.from(await part.bytes()).equals(video.subarray(100, 300))).toBe(true);
});

/** Replaces the stored object, and its size and digest in the bucket with it, as somebody with access to the bucket can. */
async function replaceObject(sha256: string, content: Uint8Array): Promise<void> {
  const { prefix, sessionToken: _, presign: __, ...settings } = s3.settings;
  await new Bun.S3Client(settings as Bun.S3Options).write(
    `${prefix}/${project}/${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${sha256}`,
    content,
  );
}

test.each([
  ["small", 10_000],
  ["large", 3_000_000],
])("%s content that was replaced in the bucket is never served as if it were right", async (name, size) => {
  const content = crypto.getRandomValues(new Uint8Array(65_536));
  const file = Buffer.concat([Buffer.from("\0\0\0 ftypisom"), Buffer.alloc(size - 12, content)]);
  const { body } = await put(`${name}.mp4`, file);
  const { id, sha256 } = body.attachment;
  // A small file is refused before the answer begins; a larger one ends without its last chunk.
  const refusal = name === "small" ? 500 : "broken off";
  const readWhole = (headers = {}) =>
    read(id, headers)
      .then(async (response) => (response.ok ? Buffer.from(await response.bytes()) : response.status))
      .catch(() => "broken off");
  expect(file.equals((await readWhole()) as Buffer)).toBe(true);
  const changed = Buffer.from(file);
  changed[100]! ^= 1;
  for (const other of [changed, file.subarray(0, -1), Buffer.concat([file, file.subarray(0, 1)])]) {
    await replaceObject(sha256, other);
    expect(await readWhole()).toBe(refusal);
  }
  await replaceObject(sha256, file.subarray(0, size - 100));
  expect(await readWhole({ range: `bytes=${size - 150}-` })).toBe(refusal);
  await replaceObject(sha256, changed);
  // A part of a large file is all that is read of it.
  expect(await readWhole({ range: "bytes=0-9" })).toEqual(name === "small" ? 500 : file.subarray(0, 10));
  await replaceObject(sha256, file);
  expect(file.equals((await readWhole()) as Buffer)).toBe(true);
});

test("with ATTACHMENTS_PRESIGN a client reads from the bucket itself, for some minutes and as a download", async () => {
  const presigning = await createServer(database, {
    attachments: { directory, s3: { ...s3.settings, presign: true } },
  });
  const { body } = await put("notes.bin", new Uint8Array([0, 1, 2]));
  const response = await read(body.attachment.id, {}, presigning.url);
  expect(response.status).toBe(307);
  const address = new URL(response.headers.get("location")!);
  expect(Number(address.searchParams.get("X-Amz-Expires"))).toBe(300);
  expect(address.searchParams.get("response-content-disposition")).toStartWith("attachment;");
  // The bucket answers whoever has the address, and nobody whose address is another one.
  expect([...(await (await fetch(address)).bytes())]).toEqual([0, 1, 2]);
  address.searchParams.set("X-Amz-Signature", "0".repeat(64));
  expect((await fetch(address)).status).toBe(403);
});

test("while it is away a file is refused with Retry-After and its report taken; afterwards all is well", async () => {
  const { body: before } = await put("before.txt", "before");
  await s3.stop();
  const refused = await put("meanwhile.txt", "meanwhile");
  expect([refused.status, refused.body.error.code, refused.headers.get("retry-after")]).toEqual([
    ...[500, "INTERNAL_ERROR", "10"],
  ]);
  const form = new FormData();
  form.append("attachment", new Blob(["meanwhile"]), "log.txt");
  form.append("file", new Blob([junit("pf")]), "report.xml");
  const upload = await ask(`POST /projects/${project}/test-runs?task_slug=unit`, { key, body: form });
  expect([upload.status, upload.body.failed]).toEqual([201, 1]);
  expect(upload.body.warnings).toEqual([
    'Attachment "log.txt" was not stored: the store of attachments is not available',
  ]);
  expect((await read(before.attachment.id)).status).toBe(500);
  await s3.restart();
  expect(await (await read(before.attachment.id)).text()).toBe("before");
  expect((await put("meanwhile.txt", "meanwhile")).status).toBe(201);
});
