import { describe, expect, test } from "bun:test";
import { createForms } from "../../src/http/forms.ts";

const secret = new Uint8Array(32).fill(1);
const forms = createForms({ secret, publicUrl: "https://assay.example/ci" });
const local = createForms({ secret, publicUrl: "http://localhost:8080" });
const FORM = "application/x-www-form-urlencoded";
const from = (headers: Record<string, string>, own = forms) =>
  own.isFromOurPage({ headers: new Headers({ "content-type": FORM, host: "assay.example", ...headers }) });

describe("the token of a form", () => {
  test("is of one session or cookie, on every server of the database, and new each time", () => {
    const tokens = [forms.token("session 1"), forms.token("session 1")];
    expect(tokens[0]).not.toBe(tokens[1]);
    for (const token of tokens) {
      expect(createForms({ secret, publicUrl: "http://other" }).isToken("session 1", token)).toBe(true);
      expect(forms.isToken("session 2", token)).toBe(false);
      const other = createForms({ secret: new Uint8Array(32), publicUrl: "https://assay.example" });
      expect(other.isToken("session 1", token)).toBe(false);
    }
  });

  test("that is missing, cut, or changed anywhere is none, and nothing throws", () => {
    const token = forms.token("session 1");
    for (const wrong of ["", " ", token.slice(1), `${token}A`, `${token}=`, "x".repeat(64), "ä".repeat(64), "null"])
      expect(forms.isToken("session 1", wrong)).toBe(false);
    for (let at = 0; at < token.length; at += 7) {
      const changed = token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1);
      expect([at, forms.isToken("session 1", changed)]).toEqual([at, false]);
    }
  });
});

describe("a form comes from a page of ours", () => {
  test.each<[headers: Record<string, string>, ours: boolean]>([
    [{ origin: "https://assay.example" }, true],
    [{ origin: "https://assay.example", "sec-fetch-site": "same-origin" }, true],
    [{ referer: "https://assay.example/ci/login?next=/" }, true],
    [{}, false],
    [{ origin: "null" }, false],
    [{ origin: "null", referer: "https://assay.example/" }, false],
    [{ origin: "" }, false],
    [{ origin: "https://evil.example" }, false],
    [{ origin: "https://evil.example", referer: "https://assay.example/" }, false],
    [{ origin: "https://assay.example.evil.example" }, false],
    [{ origin: "https://assay.example:444" }, false],
    [{ origin: "http://assay.example" }, false],
    [{ origin: "https://other.assay.example" }, false],
    [{ referer: "https://assay.example@evil.example/" }, false],
    [{ origin: "https://assay.example", "sec-fetch-site": "cross-site" }, false],
    [{ origin: "https://assay.example", "sec-fetch-site": "same-site" }, false],
    // A proxy that keeps its own name for us does not make another origin ours.
    [{ origin: "https://10.0.0.1:8080", host: "10.0.0.1:8080" }, false],
  ])("%p: %p", (headers, ours) => expect(from(headers)).toBe(ours));

  test("without TLS also under the name that it was asked by", () => {
    expect(from({ origin: "http://localhost:8080", host: "localhost:8080" }, local)).toBe(true);
    expect(from({ origin: "http://192.168.1.5:8080", host: "192.168.1.5:8080" }, local)).toBe(true);
    expect(from({ origin: "http://evil.example", host: "192.168.1.5:8080" }, local)).toBe(false);
    expect(from({ origin: "null", host: "null" }, local)).toBe(false);
  });

  test.each([
    [FORM, true],
    [`${FORM}; charset=utf-8`, true],
    ["multipart/form-data; boundary=x", true],
    ["application/json", true],
    ["text/plain", false],
    ["text/plain; application/json", false],
    ["", false],
  ])("as %p: %p", (type, ours) => {
    expect(from({ origin: "https://assay.example", "content-type": type })).toBe(ours);
  });
});
