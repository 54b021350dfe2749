import { expect, test } from "bun:test";
import { caseTitle, shownCaseTitle } from "../../src/wording/case_title.ts";

test("a title joins suites and name, and is the name alone where there is no suite", () => {
  expect(caseTitle({ suite: "checkout > cart", name: "adds an item" })).toBe("checkout > cart > adds an item");
  expect(caseTitle({ suite: "", name: "adds an item" })).toBe("adds an item");
  expect(shownCaseTitle({ suite: "cart", name: "adds an item" })).toBe("cart › adds an item");
  expect(shownCaseTitle({ suite: "", name: "adds an item" })).toBe("adds an item");
});
