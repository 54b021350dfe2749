import { expect, test } from "bun:test";
import { attachmentName, findPictureComparisons, normalizeAttachmentPath } from "../../src/rules/attachment_path.ts";

test.each([
  ["a/b.png", "a/b.png"],
  ["./a/b.png", "a/b.png"],
  [".\\a\\b.png", "a/b.png"],
  ["././/a.png", "a.png"],
  ["/work/a.png", "/work/a.png"],
  ["C:\\work\\a.png", "C:/work/a.png"],
  ["../a.png", "../a.png"],
  ["a\0b", "a\ufffdb"],
  ["x".repeat(600), "x".repeat(500)],
])("%p is compared as %p", (path, normal) => {
  expect(normalizeAttachmentPath(path)).toBe(normal);
  expect(normalizeAttachmentPath(normal)).toBe(normal);
});

test("the name of a file is the last part of its path", () => {
  expect(["a/b.png", "b.png", "a/"].map(attachmentName)).toEqual(["b.png", "b.png", "a/"]);
});

test.each(["cart.png", "cart-linux.png", "cart-chromium-darwin.png"])(
  "the expected picture may have the name that it has in the repository: %s",
  (name) => {
    const files = [name, "cart-actual.png", "cart-diff.png", "menu-linux.png"].map((name) => ({ name }));
    const { comparisons, others } = findPictureComparisons(files);
    expect(comparisons).toEqual([{ stem: "cart.png", expected: files[0]!, actual: files[1]!, diff: files[2] }]);
    expect(others).toEqual([files[3]!]);
  },
);

test("expected, actual and diff of one stem are one comparison", () => {
  const cart = ["cart-expected.png", "cart-actual.png", "cart-diff.png"];
  const names = ["trace.zip", ...cart, "menu-actual.png", "page-1-actual.png", "page-1-expected.png"];
  const { comparisons, others } = findPictureComparisons(names.map((name) => ({ name })));
  expect(comparisons.map(({ stem, expected, actual, diff }) => [stem, expected.name, actual.name, diff?.name])).toEqual(
    [
      ["cart.png", ...cart],
      ["page-1.png", "page-1-expected.png", "page-1-actual.png", undefined],
    ],
  );
  expect(others.map(({ name }) => name)).toEqual(["trace.zip", "menu-actual.png"]);
});
