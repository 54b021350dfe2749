import { expect, test } from "bun:test";
import { joinedBugLine, joinedBugTitle } from "../../src/wording/known_bug.ts";

const bug = { number: 12, title: "expected # items, got #", known: true };
const culprit = { searchId: "s1", commit: "c4d5e6f0127a", author: "Ada", summary: "c4d5e6f012 by Ada broke it: proof" };

test("a bug is called known if this execution did not open it", () => {
  expect(joinedBugTitle(bug)).toBe('Known bug #12 "expected # items, got #"');
  expect(joinedBugTitle({ ...bug, known: false })).toBe('Bug #12 "expected # items, got #"');
});

test("a title is one line of at most 120 characters", () => {
  expect(joinedBugTitle({ ...bug, title: "\n  first\u0007 \u202eline\nsecond" })).toBe('Known bug #12 "first   line"');
  expect(joinedBugTitle({ ...bug, title: "x".repeat(300) })).toBe(`Known bug #12 "${"x".repeat(120)}…"`);
});

test("the sentence that proves the culprit follows the title, on one line", () => {
  expect(joinedBugLine({ ...bug, culprit: null })).toBe('Known bug #12 "expected # items, got #"');
  const summary = "c4d5e6f012 by A\nda broke it: proof";
  expect(joinedBugLine({ ...bug, culprit: { ...culprit, summary } })).toBe(
    'Known bug #12 "expected # items, got #". c4d5e6f012 by A da broke it: proof',
  );
});
