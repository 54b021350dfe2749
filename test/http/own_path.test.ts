import { expect, test } from "bun:test";
import { toOwnPath } from "../../src/http/own_path.ts";

test.each(["/", "/projects/1?branch=a%2Fb&q=%5C", "/invitations/x", "/a%20b", "/?q=//evil.example"])(
  "%p is led back to",
  (path) => expect(toOwnPath(path)).toBe(path),
);

test.each([
  ...[undefined, "", "projects", "http://evil.example", "https:evil.example", "javascript:alert(1)", "@evil.example"],
  ...[
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
  ],
  ...[" //evil.example", "\t//evil.example", "/%2Fevil.example", "/%2f%2fevil.example", "/%5Cevil.example"],
  ...["/%09/evil.example", "/..//evil.example", "/.//evil.example", "/a/..//evil.example", "/%2e%2e//evil.example"],
  ...["/%", "/%ff", "/\u0000", `/${"x".repeat(2_000)}`],
])("%p is not", (path) => expect(toOwnPath(path)).toBe("/"));
