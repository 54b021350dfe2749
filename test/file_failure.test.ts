import { expect, test } from "bun:test";
import { isWriteFailure, toDiskReason, toFileError, toPlainError } from "../src/file_failure.ts";

const failure = (code: string, more: object = {}) => Object.assign(new Error(`${code}: raw`), { code, ...more });

test.each<[code: string, verb: "read" | "write", message: string]>([
  ["ENOENT", "read", 'Cannot read "a.xml": it does not exist'],
  ["ENOENT", "write", 'Cannot write "a.xml": its directory does not exist'],
  ["EACCES", "read", 'Cannot read "a.xml": this account may not read it'],
  ["ENOSPC", "write", 'Cannot write "a.xml": the disk is full'],
  ["ELOOP", "read", 'Cannot read "a.xml": ELOOP: raw'],
])("%s while a file is %s is one sentence", (code, verb, message) => {
  expect(toFileError(failure(code), verb, "a.xml").message).toBe(message);
});

test("only what concerns the file that is written counts as its failure", () => {
  expect(isWriteFailure(failure("ENOENT", { path: "a.xml.partial" }), "a.xml")).toBe(true);
  expect(isWriteFailure(failure("ENOSPC", { syscall: "write" }), "a.xml")).toBe(true);
  expect(isWriteFailure(failure("EPIPE", { syscall: "write" }), "a.xml")).toBe(false);
  expect(isWriteFailure(failure("ENOENT", { path: "/elsewhere" }), "a.xml")).toBe(false);
  expect(isWriteFailure(new Error("the server does not answer"), "a.xml")).toBe(false);
});

test("a full disk is told apart from the other errors", () => {
  expect(toDiskReason(failure("ENOSPC"))).toBe("the disk is full");
  expect(toDiskReason(failure("ENOENT"))).toBeUndefined();
  expect(toDiskReason("text")).toBeUndefined();
});

test("a raw error of the file system is put into words, and every other error stays as it is", () => {
  const raw = failure("EROFS", { path: "/data/postgres", syscall: "mkdir" });
  expect((toPlainError(raw) as Error).message).toBe('Cannot use "/data/postgres": its file system is read-only');
  for (const other of [failure("ENOENT"), failure("ECONNREFUSED", { path: "/s" }), new Error("no"), "text", null])
    expect(toPlainError(other)).toBe(other);
});
