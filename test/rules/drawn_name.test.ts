import { expect, test } from "bun:test";
import { plainName } from "../../src/rules/drawn_name.ts";

test.each([
  ["total[seed=48213]", "total[seed=<n>]"],
  ["test_order_7_is_shipped", "test_order_<n>_is_shipped"],
  ["imports order 3f9c2b1e7a", "imports order <id>"],
  ["pays 0199b2c4-a7f1-7d20-b3c4-1e9f8a7b6c5d", "pays <id>"],
  ["prices of 2026-11-23", "prices of <time>"],
  ["closes at 2026-11-23T08:15:00.000Z", "closes at <time>"],
  ["reads 1048576 rows", "reads <n> rows"],
])("%s is shown as %s", (name, plain) => {
  expect(plainName(name)).toBe(plain);
});

test.each([
  ["rounds to 2 digits"],
  ["answers 404"],
  ["reads v1.2.3"],
  ["hashes with sha256 as utf8"],
  ["holds 2 of 3"],
  ["test_sum[1-True]"],
  ["speaks HTTP2"],
  // Nothing would be left of it.
  ["0199b2c4-a7f1-7d20-b3c4-1e9f8a7b6c5d"],
])("%s stays as somebody has written it", (name) => {
  expect(plainName(name)).toBeNull();
});
