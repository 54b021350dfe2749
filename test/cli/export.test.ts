/** `assay export`: a complete file or none, its verification, and its attachments. */

import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createSocketServer } from "node:net";
import { join } from "node:path";
import { createExportLines, IncompleteExportError } from "../../src/cli/export_lines.ts";
import { createFolder, run, type Variables, variablesOf } from "../commands.ts";
import { createEverything } from "../everything.ts";
import { createHarness } from "../harness.ts";

const harness = await createHarness({ ownDatabase: true, outboundAllow: ["127.0.0.0/8"] });
const { ask, acme, rival, url } = await createEverything(harness, undefined, { days: 2 });
const directory = createFolder();

const assay = (args: string[], more: Variables = {}) =>
  run(["export", ...args], { cwd: directory, env: { ...variablesOf(url, acme), ...more } });

const read = (name: string): string => readFileSync(join(directory, name), "utf8");
const withoutTime = (text: string): string => text.replace(/"takenAt":"[^"]*"/, "");

describe("assay export", () => {
  test("writes what the API answers, and verifies it", async () => {
    const { text } = await ask(`GET /projects/${acme.project}/export`, { key: acme.key });
    const { code, output, errors } = await assay(["all.ndjson"]);
    expect([code, errors]).toEqual([0, ""]);
    expect(output).toMatch(/^Exported the project: \d+ lines, \d+ bytes: 1 project, 1 owners, \d+ testCase, /);
    expect(withoutTime(read("all.ndjson"))).toBe(withoutTime(text));
    const verified = await assay(["--verify", "all.ndjson"], { ASSAY_URL: "", ASSAY_KEY: "" });
    expect([verified.code, verified.errors]).toEqual([0, ""]);
    expect(verified.output).toMatch(/^"all.ndjson" is complete and shows the project at 20\S+: \d+ lines/);
    const again = await assay(["all.ndjson"]);
    expect([again.code, again.errors]).toEqual([
      1,
      `Cannot write "${directory}/all.ndjson": the file exists already\n`,
    ]);
  });

  test.each([
    [["--verify", "none.ndjson"], `Cannot read "${directory}/none.ndjson": it does not exist`],
    [["none/all.ndjson"], `Cannot write "${directory}/none/all.ndjson": its directory does not exist`],
    [["--verify", "."], `Cannot read "${directory}": it is a directory`],
  ])("%j is refused in one sentence", async (args, message) => {
    expect(await assay(args)).toMatchObject({ code: 1, errors: `${message}\n` });
  });

  test("writes to the standard output, and counts as JSON on the other one", async () => {
    const { code, output, errors } = await assay(["-", "--types", "project,testCase", "--json"]);
    expect(code).toBe(0);
    const lines = output.trim().split("\n");
    const { counts } = JSON.parse(lines.at(-1)!);
    expect(JSON.parse(errors)).toMatchObject({ file: "-", lines: lines.length, bytes: output.length, counts });
    expect(Object.keys(counts)).toEqual(["project", "testCase"]);
  });

  test("limits executions to a time, its beginning included", async () => {
    const { output } = await assay(["-", "--types", "execution"]);
    const times = output
      .trim()
      .split("\n")
      .slice(1, -1)
      .map((line) => JSON.parse(line).createdAt);
    const countOf = (text: string) => JSON.parse(text.trim().split("\n").at(-1)!).counts.execution ?? 0;
    expect(countOf((await assay(["-", "--types", "execution", "--since", times[1]])).output)).toBe(2);
    expect(countOf((await assay(["-", "--types", "execution", "--until", times[1]])).output)).toBe(times.length - 2);
    expect(countOf((await assay(["-", "--types", "execution", "--since", "2200-01-01"])).output)).toBe(0);
  });

  test("refuses wrong usage", async () => {
    for (const [args, problem] of [
      [[], "Expected one file, got 0"],
      [
        ["a", "--since", "yesterday"],
        '--since: expected a date such as 2026-01-31 or 2026-01-31T12:00:00Z, got "yesterday"',
      ],
      [["-", "--verify"], "--attachments and --verify need a file, not -"],
      [["a", "--verify", "--types", "result"], "--verify takes only --attachments"],
      [["a", "--attachments", ""], "--attachments: expected a directory"],
    ] as const) {
      const { code, errors } = await assay([...args]);
      expect([args, code, errors.split("\n")[0]]).toEqual([args, 2, problem]);
    }
  });

  test("says what the server refuses", async () => {
    const wrong = await assay(["refused.ndjson"], { ASSAY_KEY: rival.key });
    expect([wrong.code, wrong.errors]).toEqual([3, "Not found, or this key has no access to it\n"]);
    const types = await assay(["refused.ndjson", "--types", "nothing"]);
    expect([types.code, types.errors]).toEqual([3, expect.stringContaining('Cannot read "types"')]);
    expect(readdirSync(directory).filter((name) => name.startsWith("refused"))).toEqual([]);
  });

  test("keeps no file of a connection that is cut", async () => {
    const whole = read("all.ndjson");
    const server = createSocketServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        const part = whole.slice(0, whole.length / 2);
        socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n");
        socket.write(`${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`, () => socket.destroy());
      });
    }).listen(0, "127.0.0.1");
    afterAll(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as { port: number };
    const { code, errors } = await assay(["cut.ndjson"], { ASSAY_URL: `http://127.0.0.1:${port}` });
    expect([code, errors]).toEqual([1, expect.stringContaining("The export is not complete")]);
    expect(readdirSync(directory).filter((name) => name.startsWith("cut"))).toEqual([]);
  });

  test("downloads each attachment once, under its digest", async () => {
    const { code, output } = await assay(["with.ndjson", "--attachments", "files", "--json"]);
    expect(code).toBe(0);
    const listed = read("with.ndjson")
      .split("\n")
      .filter((line) => line.startsWith('{"type":"attachment"'))
      .map((line) => JSON.parse(line));
    const digests = [...new Set(listed.map(({ sha256 }) => sha256))].sort();
    expect(readdirSync(join(directory, "files")).sort()).toEqual(digests);
    for (const { sha256, bytes } of listed) {
      const content = readFileSync(join(directory, "files", sha256));
      expect([content.length, Bun.SHA256.hash(content, "hex")]).toEqual([bytes, sha256]);
    }
    expect(JSON.parse(output).attachments).toMatchObject({ files: digests.length, missing: 0 });

    writeFileSync(join(directory, "files", digests[0]), "cut");
    const other = join(directory, "files", digests[1]);
    writeFileSync(other, Buffer.from(readFileSync(other)).fill(0));
    const repeated = await assay(["--verify", "with.ndjson", "--attachments", "files", "--json"]);
    expect(repeated.code).toBe(0);
    expect(JSON.parse(repeated.output).attachments).toMatchObject({ files: 2, kept: listed.length - 2 });
    for (const digest of digests.slice(0, 2))
      expect(Bun.SHA256.hash(readFileSync(join(directory, "files", digest)), "hex")).toBe(digest);
  });

  test("leaves nothing but its file", () => {
    expect(existsSync(join(directory, "all.ndjson.partial"))).toBe(false);
  });
});

describe("the lines of an export", () => {
  const whole = [
    '{"type":"header","format":"assay-export","version":1,"takenAt":"2026-01-31T12:00:00.000Z"}',
    '{"type":"project","name":"Süß"}',
    '{"type":"testCase"}',
    '{"type":"testCase"}',
    '{"type":"end","counts":{"project":1,"testCase":2}}',
    "",
  ].join("\n");

  function readAll(text: string, size = 1_000_000) {
    const lines = createExportLines();
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) lines.take(bytes.subarray(at, at + size));
    return lines.end();
  }

  test("are read however they arrive", () => {
    for (const size of [1, 2, 7, 1_000])
      expect(readAll(whole, size)).toEqual({
        ...{ takenAt: "2026-01-31T12:00:00.000Z", lines: 5, counts: { project: 1, testCase: 2 } },
      });
  });

  test("are not complete where any of them, or a part of one, is missing", () => {
    for (let length = 0; length < whole.length; length++)
      expect([length, () => readAll(whole.slice(0, length))][1]).toThrow(IncompleteExportError);
    const lines = whole.split("\n");
    for (let index = 0; index < lines.length - 1; index++)
      expect(() => readAll(lines.toSpliced(index, 1).join("\n"))).toThrow(IncompleteExportError);
  });

  test("say why they are not complete", () => {
    const change = (from: string, to: string) => () => readAll(whole.replace(from, to));
    expect(change('{"type":"end"', '{"type":"error","message":"The server is stopping"}\n{"type":"end"')).toThrow(
      "The export is not complete: The server is stopping",
    );
    expect(change('"testCase":2', '"testCase":3')).toThrow(
      'it has 2 lines of type "testCase", and its last line counts 3',
    );
    expect(change('"version":1', '"version":2')).toThrow("it has version 2 of the format");
    expect(change('{"type":"testCase"}\n', "<html>\n")).toThrow("line 3 is not a JSON object with a type");
    expect(() => readAll(`${whole}{"type":"testCase"}\n`)).toThrow("line 6 follows the last line");
  });
});
