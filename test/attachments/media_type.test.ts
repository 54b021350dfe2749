import { expect, test } from "bun:test";
import { isShownInline, sniffMediaType } from "../../src/attachments/media_type.ts";

const bytes = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));

test.each([
  ["\x89PNG\r\n\x1a\n....", "image/png", true],
  ["\xff\xd8\xff\xe0", "image/jpeg", true],
  ["GIF89a", "image/gif", true],
  ["RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp", true],
  ["RIFF\x10\x00\x00\x00WAVEfmt ", "application/octet-stream", false],
  ["\x1a\x45\xdf\xa3", "video/webm", true],
  ["\x00\x00\x00\x20ftypisom", "video/mp4", true],
  ["PK\x03\x04", "application/zip", false],
  ["%PDF-1.7\n\xb5\xb5", "application/octet-stream", false],
  ["\x7fELF", "application/octet-stream", false],
  ["<html><script>alert(1)</script>", "text/plain", true],
  ['<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>', "text/plain", true],
  ["\x1b[31mred\x1b[0m\r\n", "text/plain", true],
  ["\xc3\xa4", "text/plain", true],
  ["\xe4 in Latin-1", "application/octet-stream", false],
  ["", "application/octet-stream", false],
])("%p is %s", (content, type, isShown) => {
  expect(sniffMediaType(bytes(content))).toBe(type as never);
  expect(isShownInline(type)).toBe(isShown);
});

test("a character that the head cuts in two does not make a text binary", () => {
  expect(sniffMediaType(bytes("x\xe2\x82"))).toBe("text/plain");
});
