/** Which files may be sent that a report names: a path in a report is the input of a stranger. */

import { afterAll, describe, expect, spyOn, test } from "bun:test";
import * as fs from "node:fs";
import { linkSync, mkdirSync, renameSync, symlinkSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { openAttachment, openAttachRoot } from "../../src/runner/attachment_file.ts";
import { createPlace, removePlace } from "../places.ts";

const place = createPlace("attach");
afterAll(() => removePlace(place));

/** A workspace with a picture in it, and a secret beside it. */
function createWorkspace() {
  const folder = join(place, crypto.randomUUID());
  const work = join(folder, "work");
  mkdirSync(join(work, "results"), { recursive: true });
  writeFileSync(join(folder, "secret"), "the secret");
  writeFileSync(join(work, "results", "shot.png"), "picture");
  const root = openAttachRoot(work);
  return { folder, work, root, open: (path: string) => openAttachment(path, root, [join(work, "results"), work]) };
}

/** What would be sent of it, or why it is not. */
function look(opened: ReturnType<typeof openAttachment>): string {
  if ("reason" in opened) return `- ${opened.reason}`;
  const text = Buffer.concat([...opened.chunks()]).toString();
  opened.close();
  return text;
}

const OUTSIDE = "- outside of the attach root";
const HIDDEN = "- hidden, and may hold secrets";

describe("openAttachment", () => {
  test("opens a file below the root: by absolute path, beside the report, or from the root", () => {
    const { work, open } = createWorkspace();
    writeFileSync(join(work, "shot.png"), "of the root");
    writeFileSync(join(work, "other.png"), "other");
    expect(look(open(join(work, "results/shot.png")))).toBe("picture");
    expect(look(open("shot.png"))).toBe("picture");
    expect(look(open("../results/./shot.png"))).toBe("picture");
    expect(look(open("other.png"))).toBe("other");
  });

  test.each([
    "../../secret",
    "../secret",
    "/etc/passwd",
    "/proc/self/environ",
    "/proc/self/cwd/../../secret",
    "/dev/zero",
    "/",
    "..",
    ".",
    "",
  ])("does not open %j", (path) => {
    const { open } = createWorkspace();
    expect(look(open(path))).toMatch(/^- (outside of the attach root|not found|not a regular file)$/);
  });

  test("does not expand what only a shell does", () => {
    const { open } = createWorkspace();
    for (const path of ["~/.ssh/id_rsa", "$HOME/.ssh/id_rsa", "\0", "shot.png\0.txt"])
      expect(look(open(path))).toBe("- not found");
    expect(look(open("file:///etc/passwd"))).toBe("- an address, not a file");
    expect(look(open("https://example.com/a.png"))).toBe("- an address, not a file");
  });

  test("does not follow a link out of the root, and follows one inside of it", () => {
    const { folder, work, open } = createWorkspace();
    symlinkSync(join(folder, "secret"), join(work, "link"));
    symlinkSync(folder, join(work, "up"));
    symlinkSync("/proc/self/environ", join(work, "environ"));
    symlinkSync("circle", join(work, "circle"));
    symlinkSync("nowhere", join(work, "dangling"));
    symlinkSync("results/shot.png", join(work, "inside"));
    expect(["link", "up/secret", "environ"].map((path) => look(open(path)))).toEqual([OUTSIDE, OUTSIDE, OUTSIDE]);
    expect(look(open("circle"))).toBe("- a link that leads nowhere");
    expect(look(open("dangling"))).toBe("- not found");
    expect(look(open("inside"))).toBe("picture");
  });

  test("a folder whose name begins like the root is outside of it", () => {
    const { folder, open } = createWorkspace();
    mkdirSync(join(folder, "work-2"));
    writeFileSync(join(folder, "work-2/a"), "a");
    expect(look(open("../work-2/a"))).toBe(OUTSIDE);
  });

  test("opens regular files only, and does not wait for a FIFO", async () => {
    const { work, open } = createWorkspace();
    expect(Bun.spawnSync(["mkfifo", join(work, "fifo")]).exitCode).toBe(0);
    const server = createServer().listen(join(work, "socket"));
    await new Promise((resolve) => server.on("listening", resolve));
    expect(["fifo", "socket", "results"].map((path) => look(open(path)))).toEqual(
      Array.from({ length: 3 }, () => "- not a regular file"),
    );
    server.close();
  });

  test("does not open hidden files and folders of credentials below the root", () => {
    const { work, open } = createWorkspace();
    for (const path of [
      ".env",
      ".npmrc",
      "a/.env.local",
      ".git/config",
      "a/.AWS/credentials",
      ".vitest-attachments/a.png",
    ]) {
      mkdirSync(join(work, path, ".."), { recursive: true });
      writeFileSync(join(work, path), path);
    }
    symlinkSync(".git/config", join(work, "innocent.txt"));
    for (const path of [".env", ".npmrc", "a/.env.local", ".git/config", "a/.AWS/credentials", "innocent.txt"])
      expect([path, look(open(path))]).toEqual([path, HIDDEN]);
    expect(look(open(".vitest-attachments/a.png"))).toBe(".vitest-attachments/a.png");
  });

  test("a link that replaces the file before it is opened is not followed", () => {
    const { folder, work, open } = createWorkspace();
    const path = join(work, "results/shot.png");
    const lstat = fs.lstatSync;
    // The last look before the file is opened.
    const spy = spyOn(fs, "lstatSync").mockImplementation(((...args: Parameters<typeof lstat>) => {
      const stats = lstat(...args);
      unlinkSync(path);
      symlinkSync(join(folder, "secret"), path);
      return stats;
    }) as typeof lstat);
    try {
      expect(look(open("shot.png"))).toBe("- a link that leads nowhere");
      expect(spy).toHaveBeenCalledTimes(1);
    } finally {
      spy.mockRestore();
    }
  });

  test("a folder that becomes a link before the file is opened leads nowhere else: the descriptor is checked", () => {
    const { folder, work, open } = createWorkspace();
    mkdirSync(join(folder, "private"));
    writeFileSync(join(folder, "private/shot.png"), "the secret");
    const lstat = fs.lstatSync;
    const spy = spyOn(fs, "lstatSync").mockImplementation(((...args: Parameters<typeof lstat>) => {
      const stats = lstat(...args);
      renameSync(join(work, "results"), join(work, "moved"));
      symlinkSync(join(folder, "private"), join(work, "results"));
      return stats;
    }) as typeof lstat);
    try {
      expect(look(open(join(work, "results/shot.png")))).toBe(OUTSIDE);
      expect(spy).toHaveBeenCalledTimes(1);
    } finally {
      spy.mockRestore();
    }
  });

  test("what is sent is the file that was checked, whatever lies at its path by then", () => {
    const { folder, work, open } = createWorkspace();
    const opened = open("shot.png");
    unlinkSync(join(work, "results/shot.png"));
    linkSync(join(folder, "secret"), join(work, "results/shot.png"));
    expect(look(opened)).toBe("picture");
  });

  test("sends as many bytes as the file had, and says when it has become shorter", () => {
    const { work, open } = createWorkspace();
    const path = join(work, "results/shot.png");
    const opened = open("shot.png");
    if ("reason" in opened) throw new Error(opened.reason);
    writeFileSync(path, "pictures", { flag: "a" });
    const read = () => Buffer.concat([...opened.chunks()]).toString();
    expect([read(), read()]).toEqual(["picture", "picture"]);
    truncateSync(path, 3);
    expect(read).toThrow("the file has become shorter while it was sent");
    opened.close();
  });

  test("an empty file is not sent", () => {
    const { work, open } = createWorkspace();
    writeFileSync(join(work, "empty"), "");
    expect(look(open("empty"))).toBe("- empty");
  });
});
