/** Files of a form are separated from it wherever the chunks end. */

import { expect, test } from "bun:test";
import { boundaryOf, type PartHeaders, separateParts } from "../../src/http/form_parts.ts";

type File = PartHeaders & { content: string };

async function separate(form: Uint8Array<ArrayBuffer>, type: string, chunkSize: number) {
  const files: File[] = [];
  const separator = separateParts(boundaryOf(type)!, "attachment", (headers) => {
    const parts: Uint8Array[] = [];
    return {
      write: async (chunk) => void parts.push(chunk.slice()),
      close: async () => void files.push({ ...headers, content: Buffer.concat(parts).toString("latin1") }),
    };
  });
  const kept: Uint8Array[] = [];
  for (let at = 0; at < form.byteLength; at += chunkSize)
    kept.push(...(await separator.push(form.slice(at, at + chunkSize))));
  kept.push(...(await separator.end()));
  return { files, kept: Buffer.concat(kept) };
}

async function toBytes(form: FormData) {
  const response = new Response(form);
  return { type: response.headers.get("content-type")!, bytes: new Uint8Array(await response.arrayBuffer()) };
}

const binary = Buffer.from(Uint8Array.from({ length: 1_000 }, (_, index) => index % 256)).toString("latin1");

test("what is kept is the form without the files, for chunks of every size", async () => {
  const form = new FormData();
  form.append("attachment", new Blob([Buffer.from(binary, "latin1")], { type: "image/png" }), 'a "quoted"/ü.png');
  form.append("file", new Blob(["<testsuite/>"]), "report.xml");
  form.append("attachment", new Blob([""]), "empty.txt");
  form.append("task_slug", "unit");
  form.append("attachment", new Blob(["\r\n--almost\r\n"]), "last.txt");
  const { type, bytes } = await toBytes(form);
  for (const size of [1, 2, 3, 7, 64, 1_000, bytes.byteLength]) {
    const { files, kept } = await separate(bytes, type, size);
    expect(files).toEqual([
      { filename: 'a "quoted"/ü.png', contentType: "image/png", content: binary },
      { filename: "empty.txt", contentType: expect.any(String), content: "" },
      { filename: "last.txt", contentType: expect.any(String), content: "\r\n--almost\r\n" },
    ]);
    const rest = await new Response(kept, { headers: { "content-type": type } }).formData();
    expect([...rest.keys()]).toEqual(["file", "task_slug"]);
    expect(await (rest.get("file") as unknown as Blob).text()).toBe("<testsuite/>");
  }
});

test("a form without such files is kept as it is", async () => {
  const form = new FormData();
  form.append("file", new Blob([Buffer.from(binary, "latin1")]), "report.xml");
  form.append("attachment", "a text, and no file");
  const { type, bytes } = await toBytes(form);
  for (const size of [1, 10, bytes.byteLength]) {
    const { files, kept } = await separate(bytes, type, size);
    expect(files).toEqual([]);
    expect(kept.equals(bytes)).toBe(true);
  }
});

test("a file that breaks off is refused", async () => {
  const form = new FormData();
  form.append("attachment", new Blob(["text"]), "a.txt");
  const { type, bytes } = await toBytes(form);
  await expect(separate(bytes.slice(0, -30), type, 10)).rejects.toThrow("not whole, valid multipart/form-data");
});

test("headers without an end are refused before they are kept", async () => {
  const bytes = Buffer.from(`--b\r\nContent-Disposition: form-data; name="${"x".repeat(40_000)}`);
  await expect(separate(new Uint8Array(bytes), "multipart/form-data; boundary=b", 1_000)).rejects.toThrow(
    "the headers of a part are too long",
  );
});
