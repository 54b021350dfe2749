import { expect, test } from "bun:test";
import { createKey, keyDigest, keyKind } from "../../src/secrets/keys.ts";

test("a key is its prefix, 8 id characters, 30 secret ones and a checksum", () => {
  for (const [kind, prefix] of [
    ["project", "svc_proj_"],
    ["team", "svc_team_"],
  ] as const) {
    const { key, leading, digest } = createKey(kind);
    expect(key).toMatch(new RegExp(`^${prefix}[0-9A-Za-z]{44}$`));
    expect(leading).toBe(key.slice(0, prefix.length + 8));
    expect(digest).toBe(keyDigest(key));
    expect(keyKind(key)).toBe(kind);
  }
});

test("one changed character is noticed without asking the database", () => {
  const { key } = createKey("project");
  for (let index = 0; index < key.length; index++) {
    const other = key[index] === "a" ? "b" : "a";
    expect(keyKind(key.slice(0, index) + other + key.slice(index + 1))).toBeUndefined();
  }
  for (const bad of ["", "svc_proj_", key.slice(1), `${key}A`, ` ${key}`, `${key}\n`, key.toLowerCase()])
    expect(keyKind(bad)).toBeUndefined();
});

test("keys do not repeat", () => {
  expect(new Set(Array.from({ length: 1_000 }, () => createKey("team").leading)).size).toBe(1_000);
});
