import { expect, test } from "bun:test";
import { queuedPullRequest } from "../../src/rules/merge_queue.ts";

const SHA = "0123456789abcdef0123456789abcdef01234567";

test.each([
  [`gh-readonly-queue/main/pr-12-${SHA}`, "12"],
  [`refs/heads/gh-readonly-queue/release/2.0/pr-7-${SHA}`, "7"],
  ["refs/merge-requests/31/train", "31"],
  ["refs/merge-requests/31/head", null],
  [`gh-readonly-queue/main/pr-x-${SHA}`, null],
  [`feature/gh-readonly-queue/main/pr-12-${SHA}`, null],
  [`gh-readonly-queue/main/pr-12-${SHA}/more`, null],
  ["main", null],
  [null, null],
])("%s is of pull request %p", (branch, expected) => expect(queuedPullRequest(branch)).toBe(expected));
