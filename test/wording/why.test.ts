import { expect, test } from "bun:test";
import { onlyWithWords } from "../../src/wording/why.ts";

test("the tags of a cause are told if they are those of all its failures", () => {
  const webkit = { onlyWith: ["browser:webkit"] };
  expect(onlyWithWords([webkit, webkit])).toBe("only with browser:webkit");
  expect(onlyWithWords([{ onlyWith: ["browser:webkit", "os:linux"] }])).toBe("only with browser:webkit, os:linux");
  expect(onlyWithWords([webkit, { onlyWith: [] }])).toBeNull();
  expect(onlyWithWords([{ onlyWith: [] }, webkit])).toBeNull();
  expect(onlyWithWords([])).toBeNull();
});
