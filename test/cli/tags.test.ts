import { expect, test } from "bun:test";
import { readTags } from "../../src/cli/tags.ts";

const read = (ASSAY_TAGS: string, isShard = false) => readTags({ options: [], environment: { ASSAY_TAGS }, isShard });

test("a matrix of GitHub has a tag for each field that says something", () => {
  const matrix = JSON.stringify({ browser: "webkit", node: 22, debug: false, empty: "", none: null, image: "a:b" });
  expect(read(matrix)).toEqual(["browser:webkit", "debug:false", "image:a:b", "node:22"]);
  expect(read("{}")).toEqual([]);
});

test("the field shard of a matrix is a tag only where the shard is not known", () => {
  const matrix = JSON.stringify({ browser: "webkit", shard: 1 });
  expect(read(matrix, true)).toEqual(["browser:webkit"]);
  expect(read(matrix, false)).toEqual(["browser:webkit", "shard:1"]);
});

test.each([
  ['{"os": {"name": "linux"}}', "ASSAY_TAGS: expected a JSON object of texts, numbers, true and false"],
  ['{"os": "linux"', "ASSAY_TAGS: expected a JSON object of texts, numbers, true and false"],
  ['{"os": "linux,node:1"}', 'ASSAY_TAGS: expected values without commas, got "linux,node:1"'],
  ['{"os": "[linux]"}', "ASSAY_TAGS: expected a tag such as browser:webkit"],
  ["webkit", "ASSAY_TAGS: expected a tag such as browser:webkit"],
  ["os:linux,os:macos", 'ASSAY_TAGS: expected one value for each key, got "os:linux,os:macos"'],
])("%p is refused", (text, message) => {
  expect(() => read(text)).toThrow(message);
});
