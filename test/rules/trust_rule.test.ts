/** Which claims of a CI job's token a trust rule accepts. */

import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { matchesPattern } from "../../src/rules/trust_rule.ts";
import { newTrustRule, toPublicKeys } from "../../src/schema/trust_rules.ts";

test.each([
  ["refs/heads/main", "refs/heads/main", true],
  ["refs/heads/main", "refs/heads/main2", false],
  ["refs/heads/*", "refs/heads/a/b", true],
  ["refs/heads/*", "refs/tags/a", false],
  ["refs/*/main", "refs/heads/main", true],
  ["refs/*/main", "refs/main", false],
  ["refs/heads/a*b*c", "refs/heads/abc", true],
  ["refs/heads/a*b*c", "refs/heads/acb", false],
  ["refs/heads/ab*ba", "refs/heads/aba", false],
  ["refs/heads/ab*b*ba", "refs/heads/abba", false],
  ["refs/**", "refs/", true],
  ["refs/heads/[m]ain", "refs/heads/main", false],
  ["refs/heads/?", "refs/heads/a", false],
  ["!refs/heads/main", "refs/heads/other", false],
])("%s matches %s: %p", (pattern, text, expected) => {
  expect(matchesPattern(pattern, text)).toBe(expected);
});

describe("a new rule", () => {
  const rule = { kind: "github", issuer: "https://ci.example", repositoryId: "1", ownerId: "2" };
  const keys = JSON.stringify({ keys: [{ kty: "RSA", n: "AQAB", e: "AQAB", kid: "a", more: 1 }] });
  const problemOf = (given: object) => v.safeParse(newTrustRule, given).issues?.[0].message;

  test("names a repository by numbers, and an issuer that nobody can stand in for", () => {
    expect(v.parse(newTrustRule, rule)).toMatchObject({ events: [], refs: [] });
    expect(problemOf({ ...rule, issuer: "http://127.0.0.1:8000" })).toBeUndefined();
    expect(problemOf({ ...rule, issuer: "http://ci.internal", keys })).toBeUndefined();
    const address = "expected an https address without query and user";
    for (const [more, message] of [
      [{ kind: "gitea" }, `expected "github" or "gitlab"`],
      [{ repositoryId: "acme/shop" }, "expected a number such as 123456"],
      [{ repositoryId: "007" }, "expected a number such as 123456"],
      [{ issuer: "nonsense" }, address],
      [{ issuer: "http://ci.internal" }, `${address}, or also its keys`],
      [{ issuer: "http://127.0.0.1.evil.example" }, `${address}, or also its keys`],
      [{ issuer: "https://user@ci.example" }, address],
      [{ issuer: "https://ci.example/?a=b" }, address],
      [{ issuer: "file:///etc/passwd" }, address],
      [{ events: ["push!"] }, "expected the name of an event such as push"],
      [{ events: Array(21).fill("push") }, "expected at most 20 events"],
      [{ refs: ["main"] }, "expected a Git ref such as refs/heads/main; * matches any text"],
      [{ refs: ["*"] }, "expected a Git ref such as refs/heads/main; * matches any text"],
    ] as const)
      expect([more, problemOf({ ...rule, ...more })]).toEqual([more, message]);
  });

  test("keeps the public part of public keys alone, and needs one", () => {
    const { keys: kept } = v.parse(newTrustRule, { ...rule, keys });
    expect(kept).toEqual([{ kty: "RSA", n: "AQAB", e: "AQAB", kid: "a" }]);
    const secret = [
      { kty: "oct", k: "AA" },
      { kty: "RSA", n: "a", e: "b", d: "c" },
    ].map((key) => `{"keys":[${JSON.stringify(key)}]}`);
    for (const wrong of ["x", "{}", `{"keys":[]}`, ...secret])
      expect(problemOf({ ...rule, keys: wrong })).toBe("expected a JSON Web Key Set with public RSA or EC keys");
    expect(toPublicKeys({ keys: Array(1_000).fill({ kty: "EC" }) })).toHaveLength(50);
  });
});
