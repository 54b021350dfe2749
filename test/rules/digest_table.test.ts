import { expect, test } from "bun:test";
import { countOf, createDigestTable, toDigests, toHex } from "../../src/rules/digest_table.ts";
import { identify, identityOf } from "../../src/rules/identity.ts";

test("finds every digest among many, and none that is not there", () => {
  const hashes = Array.from({ length: 3_000 }, (_, index) =>
    Buffer.from(Bun.SHA256.hash(String(index), "hex"), "hex").subarray(0, 16),
  );
  const digests = toDigests(Buffer.concat(hashes));
  const table = createDigestTable(digests);
  for (let place = 0; place < 2_000; place++) expect(table.add(place)).toBe(place);
  expect(countOf(digests)).toBe(3_000);
  for (let place = 0; place < 3_000; place++) expect(table.find(digests, place)).toBe(place < 2_000 ? place : -1);
  expect(toHex(digests, 7)).toBe(hashes[7]!.toString("hex"));
});

test("equal digests are found at the first place, and those that begin alike are told apart", () => {
  const [a, b] = [Buffer.alloc(16, 1), Buffer.alloc(16, 1)];
  b[15] = 2;
  const table = createDigestTable(toDigests(Buffer.concat([a, b, a])));
  expect([table.add(0), table.add(1), table.add(2)]).toEqual([0, 1, 0]);
});

test("results of one name have one identity, and are found by the first of them", () => {
  const place = { suite: "s", name: "a", file: null };
  const { digests, equal } = identify("p", "t", [place, place, { ...place, name: "b" }, place]);
  const hex = [0, 1, 2, 3].map((index) => toHex(digests, index));
  expect(hex).toEqual([hex[0]!, hex[0]!, hex[2]!, hex[0]!]);
  expect(hex[0]).toBe(identityOf("p", "t", place));
  expect(hex[2]).not.toBe(hex[0]);
  expect([...equal]).toEqual([[0, [0, 1, 3]]]);
});
