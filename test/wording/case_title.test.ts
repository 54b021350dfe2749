import { expect, test } from "bun:test";
import { caseTitle, shownCaseTitle, shownTaskTitle } from "../../src/wording/case_title.ts";

test("a title joins suites and name, and is the name alone where there is no suite", () => {
  expect(caseTitle({ suite: "checkout > cart", name: "adds an item" })).toBe("checkout > cart > adds an item");
  expect(caseTitle({ suite: "", name: "adds an item" })).toBe("adds an item");
  expect(shownCaseTitle({ suite: "cart", name: "adds an item" })).toBe("cart › adds an item");
  expect(shownCaseTitle({ suite: "", name: "adds an item" })).toBe("adds an item");
});

test("a title names the variant of the task, once", () => {
  const test = { suite: "cart", name: "adds an item", taskSlug: "e2e [browser:webkit, os:linux]" };
  expect(caseTitle(test)).toBe("cart > adds an item [browser:webkit, os:linux]");
  expect(shownCaseTitle(test)).toBe("cart › adds an item [browser:webkit, os:linux]");
  expect(shownTaskTitle(test)).toBe("e2e [browser:webkit, os:linux] › cart › adds an item");
  expect(shownCaseTitle({ ...test, taskSlug: "e2e" })).toBe("cart › adds an item");
});
