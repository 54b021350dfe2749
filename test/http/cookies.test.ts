import { expect, test } from "bun:test";
import { createCookie } from "../../src/http/cookies.ts";

test("with TLS it has the prefix that no other host can set, and is never sent in the open", () => {
  const cookie = createCookie("https://assay.example/ci", "assay_session");
  expect(cookie.write("abc", 60)).toBe("__Host-assay_session=abc; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=60");
  expect(cookie.clear()).toBe("__Host-assay_session=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0");
  expect(cookie.read("__Host-assay_session=abc")).toBe("abc");
  // Another host of the domain, or a page without TLS, could have set this one.
  expect(cookie.read("assay_session=abc")).toBeUndefined();
});

test("without TLS it has neither, or browsers would drop it", () => {
  const cookie = createCookie("http://localhost:8080", "assay_session");
  expect(cookie.write("abc")).toBe("assay_session=abc; Path=/; HttpOnly; SameSite=Lax");
  expect(cookie.read("__Host-assay_session=abc")).toBeUndefined();
});

test.each([
  [null, undefined],
  ["", undefined],
  ["other=1; assay_session=abc;more=2", "abc"],
  ["xassay_session=abc", undefined],
  ["assay_session", undefined],
  ["assay_session=a=b", "a=b"],
  // One of them is somebody else's.
  ["assay_session=abc; assay_session=def", undefined],
])("%p holds %p", (header, value) => {
  expect(createCookie("http://h", "assay_session").read(header)).toBe(value as string);
});

test.each(["a;b", "a b", "a\r\nSet-Cookie: x=y", 'a"', "ä"])("no value is %p", (value) => {
  expect(() => createCookie("http://h", "c").write(value)).toThrow("A cookie cannot hold this value: c");
});
