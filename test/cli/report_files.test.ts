/** Which files an upload means: globs, and what a command has really written. */

import { afterAll, describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findReports, keepFresh, readReportFiles } from "../../src/cli/report_files.ts";

const home = mkdtempSync(join(tmpdir(), "assay-reports-"));
afterAll(() => rmSync(home, { recursive: true }));

let folders = 0;
/** A folder with these files, an hour old. */
function createFolder(...names: string[]): string {
  const folder = join(home, String(++folders));
  const hourAgo = new Date(Date.now() - 3_600_000);
  mkdirSync(folder);
  for (const name of names) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, name);
    utimesSync(path, hourAgo, hourAgo);
  }
  return folder;
}
const find = (folder: string, ...given: string[]) => {
  const { files, problems } = findReports(given, folder);
  for (const { name, path } of files) expect(path).toBe(join(folder, name));
  return { files: files.map(({ name }) => name), problems };
};

describe("files and globs", () => {
  test("are found in folders of any depth, hidden ones too, in the same order every time", () => {
    const folder = createFolder("b.xml", "a.xml", "a.json", "sub/c.xml", ".hidden/d.xml", "sub/deep/e.xml");
    const all = [".hidden/d.xml", "a.xml", "b.xml", "sub/c.xml", "sub/deep/e.xml"];
    expect(find(folder, "**/*.xml")).toEqual({ files: all, problems: [] });
    expect(find(folder, "sub/*.xml", "?.xml").files).toEqual(["sub/c.xml", "a.xml", "b.xml"]);
    expect(find(folder, "{a.json,sub/{c,deep/e}.xml}").files).toEqual(["a.json", "sub/c.xml", "sub/deep/e.xml"]);
    expect(find(folder, "[ab].xml").files).toEqual(["a.xml", "b.xml"]);
    expect(find(folder, "sub/../*.json").files).toEqual(["a.json"]);
    expect(findReports([join(folder, "*.json")], "/").files.map(({ path }) => path)).toEqual([join(folder, "a.json")]);
  });

  test("a file that several of them mean is sent once, and a link is what it leads to", () => {
    const folder = createFolder("a.xml", "sub/b.xml");
    symlinkSync("sub/b.xml", join(folder, "link.xml"));
    symlinkSync("nowhere", join(folder, "broken.xml"));
    expect(find(folder, "a.xml", "*.xml", "./sub/b.xml")).toEqual({ files: ["a.xml", "link.xml"], problems: [] });
  });

  test("a name with the characters of a glob is the file of that name", () => {
    const folder = createFolder("report [unit].xml", "u.xml");
    expect(find(folder, "report [unit].xml").files).toEqual(["report [unit].xml"]);
  });

  test("what packages bring along is no report of these tests, unless it is named", () => {
    const folder = createFolder("a.xml", "node_modules/p/b.xml", ".git/c.xml");
    expect(find(folder, "**/*.xml").files).toEqual(["a.xml"]);
    expect(find(folder, "node_modules/**/*.xml").files).toEqual(["node_modules/p/b.xml"]);
  });

  test("what gives nothing names itself", () => {
    const folder = createFolder("sub/a.json");
    expect(find(folder, "no.xml", "*.xml", "gone/*.xml", "sub")).toEqual({
      files: [],
      problems: [
        `File not found: "no.xml"`,
        `No file matches "*.xml"`,
        `No file matches "gone/*.xml"`,
        `"sub" is a directory: name its files, such as "sub/**/*.xml"`,
      ],
    });
  });

  test("a file that is gone when it is read is named", () => {
    const folder = createFolder("a.xml");
    const { files } = findReports(["a.xml"], folder);
    rmSync(join(folder, "a.xml"));
    expect(() => readReportFiles(files)).toThrow('Cannot read "a.xml"');
  });
});

describe("after a command", () => {
  /** What is left of the folder's *.xml when the command does `work`. */
  function after(folder: string, work: () => void) {
    const look = () => findReports(["*.xml"], folder);
    const before = look().files;
    const beganAt = Date.now();
    work();
    const { files, problems } = keepFresh(look(), before, beganAt);
    return { files: files.map(({ name }) => name), problems };
  }

  test("what it has not written is stale, and what it has written is taken", () => {
    const folder = createFolder("old.xml", "again.xml", "longer.xml");
    const { files, problems } = after(folder, () => {
      writeFileSync(join(folder, "again.xml"), "again.xml");
      appendFileSync(join(folder, "longer.xml"), "!");
      writeFileSync(join(folder, "new.xml"), "new");
    });
    expect(files).toEqual(["again.xml", "longer.xml", "new.xml"]);
    expect(problems).toEqual([expect.stringContaining('"old.xml" is stale: it was written at ')]);
  });

  test("what was written just before it began is stale, however close that is", () => {
    const folder = createFolder();
    writeFileSync(join(folder, "a.xml"), "a");
    expect(after(folder, () => {})).toEqual({ files: [], problems: [expect.stringContaining("is stale")] });
  });

  test("what it has brought from the past is stale", () => {
    const folder = createFolder();
    const { files } = after(folder, () => {
      writeFileSync(join(folder, "a.xml"), "a");
      utimesSync(join(folder, "a.xml"), new Date(0), new Date(0));
    });
    expect(files).toEqual([]);
  });

  test("an empty file is no report", () => {
    const folder = createFolder();
    expect(after(folder, () => writeFileSync(join(folder, "a.xml"), ""))).toEqual({
      files: [],
      problems: ['"a.xml" is empty'],
    });
  });
});
