/** Which reports are read in the thread, whatever their size: those of many parts, and those that may expand. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { readSmallUpload, receiveUpload } from "../../src/request/input.ts";
import { isCostly } from "../../src/request/reading_cost.ts";
import { noFacts } from "../../src/request/upload_log.ts";
import { LARGE_BYTES } from "../../src/request/upload_thread.ts";
import { ROUTES } from "../../src/server/app.ts";

const filled = (part: (at: number) => string, length = LARGE_BYTES - 1_000) => {
  let text = "";
  for (let at = 0; text.length < length; at++) text += part(at);
  return text;
};
const isCostlyText = (...texts: string[]) => isCostly(texts.map((text) => ({ bytes: new TextEncoder().encode(text) })));
const frames = "    at Object.&lt;anonymous&gt; (/home/ci/work/shop/test/cart.test.ts:12:34)\n".repeat(12);

test.each<[what: string, text: string]>([
  ["small test cases", filled((at) => `<testcase name="${at}"/>`)],
  ["small failures", filled((at) => `<testcase name="${at}"><failure/></testcase>`)],
  ["objects", filled((at) => `{"name":"${at}","status":"passed"},`)],
  ["lines", filled(() => "ok\n")],
  ["carriage returns", filled(() => "\r")],
  ["brackets", filled(() => "<")],
  ["ampersands", filled(() => "&")],
  ["escapes", filled(() => '\\"')],
])("a report of %s is costly below the limit of the size, and a small part of it is not", (_, text) => {
  expect(isCostlyText(text)).toBe(true);
  expect(isCostlyText(text.slice(0, text.length / 100), "", text.slice(0, text.length / 100))).toBe(false);
  // The files of one upload count together.
  const files = Array.from({ length: 40 }, (_, at) =>
    text.slice((at * text.length) / 40, ((at + 1) * text.length) / 40),
  );
  expect(isCostlyText(...files)).toBe(true);
});

test("an ordinary report of 300 kB is not costly", () => {
  const junit = filled(
    (at) => `  <testcase classname="shop.cart" name="adds article ${at} to an empty cart" time="0.012"></testcase>\n`,
    150_000,
  );
  const failures = filled(
    (at) => `<testcase name="${at}"><failure message="no">${frames}</failure></testcase>\n`,
    150_000,
  );
  expect(isCostlyText(junit, failures)).toBe(false);
});

test.each<BufferEncoding>(["utf8", "utf16le"])(
  "a report of CTest in %s with compressed outputs is costly",
  (encoding) => {
    const ctest = (attributes: string) =>
      `<Site><Testing><Test><Value ${attributes}>eJw=</Value></Test></Testing></Site>`;
    const orders = (attributes: string) => {
      const bytes = Buffer.from(ctest(attributes), encoding);
      return encoding === "utf8" ? [bytes] : [bytes, Buffer.from(bytes).swap16()];
    };
    for (const bytes of orders(`encoding="base64" compression="gzip"`)) expect(isCostly([{ bytes }])).toBe(true);
    for (const bytes of orders(`encoding="base64"`)) expect(isCostly([{ bytes }])).toBe(false);
  },
);

const junit = `<testsuite name="s"><testcase name="a"/></testsuite>`;
const blob = await Bun.file(join(import.meta.dir, "../fixtures/playwright_blob.zip")).bytes();

test.each<[what: string, report: string | Uint8Array<ArrayBuffer>, inThread: boolean]>([
  ["plain", junit, false],
  ["packed with gzip", Bun.gzipSync(junit), true],
  ["packed with zstd", new Uint8Array(Bun.zstdCompressSync(junit)), true],
  ["in a zip archive", blob, true],
])("a small report that is %s, as a body, in a form, and behind an encoding", async (_, report, inThread) => {
  const route = ROUTES.find(({ body }) => body === "upload")!;
  const form = new FormData();
  form.append("file", new File([report], "report"));
  const bodies: [string | Uint8Array<ArrayBuffer> | FormData, Record<string, string>?][] = [
    [report],
    [form],
    [Bun.gzipSync(report), { "content-encoding": "gzip" }],
  ];
  for (const [body, headers = {}] of bodies) {
    const search = "task_slug=unit";
    const request = new Request(`http://assay.example/?${search}`, { method: "POST", body, headers });
    const sent = await receiveUpload(request, route, search, {
      ...{ maxBytes: LARGE_BYTES, grow: () => undefined, facts: noFacts(), filter: undefined },
      attachments: { files: [], warnings: [] } as never,
    });
    expect((await readSmallUpload(sent, route, LARGE_BYTES)) === undefined).toBe(inThread);
  }
});
