import { expect, test } from "bun:test";
import { parseByteRange } from "../../src/http/byte_range.ts";

test.each([
  ["bytes=0-0", { first: 0, last: 0 }],
  ["bytes=2-", { first: 2, last: 9 }],
  ["bytes=2-100", { first: 2, last: 9 }],
  ["bytes=-3", { first: 7, last: 9 }],
  ["bytes=-100", { first: 0, last: 9 }],
  ["bytes=10-", undefined],
  ["bytes=5-2", undefined],
  ["bytes=-0", undefined],
  ["bytes=-", undefined],
  ["bytes=0-1,3-4", undefined],
  ["bytes=1e3-", undefined],
  ["items=0-1", undefined],
  [null, undefined],
])("of ten bytes, %p asks for %p", (range, expected) => {
  expect(parseByteRange({ range, ifRange: null }, { length: 10, etag: '"a"' })).toEqual(expected as never);
});

test("a part of another version is not sent", () => {
  const file = { length: 10, etag: '"a"' };
  expect(parseByteRange({ range: "bytes=0-1", ifRange: '"b"' }, file)).toBeUndefined();
  expect(parseByteRange({ range: "bytes=0-1", ifRange: '"a"' }, file)).toEqual({ first: 0, last: 1 });
});
