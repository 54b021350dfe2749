/** Forms as clients send them, byte by byte. */

import { expect, test } from "bun:test";
import { Problem } from "../../src/http/problem.ts";
import { parseUpload } from "../../src/http/upload.ts";

type Bytes = string | number[];
const join = (parts: readonly Bytes[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

/** A form with a report and these parts, each what stands behind `name="`. */
const parse = (...parts: Bytes[][]) => {
  const open = `--b\r\nContent-Disposition: form-data; name="`;
  const report: Bytes[] = [open, `report"; filename="r.xml"\r\n\r\n<testsuite/>\r\n`];
  const body = join([...report, ...parts.flatMap((part) => [open, ...part, "\r\n"]), "--b--\r\n"]);
  return parseUpload(new Uint8Array(body), "multipart/form-data; boundary=b");
};

const refusal = async (work: Promise<unknown>) => {
  const problem = await work.then(
    () => undefined,
    (error) => error,
  );
  expect(problem).toBeInstanceOf(Problem);
  return (problem as Problem).body.error;
};

const INVALID: Bytes[] = [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xf0, 0xef, 0xbf, 0xbd], [0x80]];

test.each(INVALID)("a field whose value holds %p is refused by its name", async (...bytes) => {
  const error = await refusal(parse([`task_slug"\r\n\r\nunit`], [`branch"\r\n\r\nm`, bytes.flat() as number[], "n"]));
  expect(error).toEqual({ code: "VALIDATION_ERROR", message: `Cannot read "branch": not valid UTF-8` });
});

test("a field whose name is not UTF-8 is refused, of a file as well", async () => {
  for (const rest of [`"\r\n\r\nx`, `"; filename="x.xml"\r\n\r\nx`])
    expect((await refusal(parse(["bran", [0xff], rest]))).message).toBe(`Cannot read "bran\ufffd": not valid UTF-8`);
});

test("U+FFFD that was sent as such is a character like others, beside a file of any bytes and with any name", async () => {
  const { fields, files } = await parse(
    [`branch"\r\n\r\n\ufffdé\u{1f600}\ufffd`],
    [`fil\ufffd"; filename="`, [0xff], `.xml"\r\n\r\n`, [0xff, 0xef, 0xbf, 0xbd, 0xfe]],
  );
  expect({ ...fields }).toEqual({ branch: "\ufffdé\u{1f600}\ufffd" });
  expect(files[1]).toEqual({ name: "\ufffd.xml", bytes: new Uint8Array([0xff, 0xef, 0xbf, 0xbd, 0xfe]) });
});

test("a file whose name is empty, as browsers send where none was chosen, is called after its field", async () => {
  const { files } = await parse([`more"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\nx`]);
  expect(files.map(({ name }) => name)).toEqual(["r.xml", "more"]);
});
