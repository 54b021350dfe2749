/** The comment on a pull request as text. */

import { describe, expect, test } from "bun:test";
import type { FailedCause, FailedTest, PullRequestState } from "../../src/schema/pull_requests.ts";
import { renderComment, renderCulpritComment } from "../../src/senders/pull_request_comment.ts";
import { expectQuoted, HOSTILE } from "./sending.ts";

const PROJECT = "0197f000-0000-7000-8000-0000000000aa";
const none = { first: [], total: 0 };
const at = (path: string) => `https://assay.test/${path}`;
const DURATION = { durationMs: 252_000, slower: null };
const GOOD: PullRequestState = {
  ...{ projectName: "shop", headline: "1,210 passed in 4:12", isOver: true, isGood: true, rerun: null, queue: null },
  ...{ url: at("e/1"), buildUrl: "https://ci.test/7", commit: "0123456789abcdef", durationMs: 252_000 },
  baseline: { title: "main #412", url: at("e/0") },
  tasks: { first: [{ title: "unit", url: at("t/unit"), outcome: "1,210 passed", ...DURATION }], total: 1 },
  ...{
    newFailures: none,
    unclearFailures: none,
    knownBugs: none,
    flakyFailures: none,
    flaky: none,
    fixed: none,
    slower: none,
    unreliableNewTests: none,
  },
  ...{ missing: none, newlySkipped: none },
};
const failed: FailedTest = {
  ...{ title: "Cart › adds", url: at("c/1"), owners: ["@acme/cart"], location: "test/cart.test.ts:42" },
};
const cause: FailedCause = { message: "expected 2, got 1", bug: null, tests: { first: [failed], total: 1 } };
const several = { first: [failed, { ...failed, owners: [], location: null }], total: 10 };
const bug = { title: 'Known bug #12 "expected #, got #"', url: at("b/12"), failed: 3 };
const culprit = { title: "c4d5e6f012 by Ada broke it: it failed there 2 of 2 times", url: at("b/12#culprit") };
const BAD: PullRequestState = {
  ...{ ...GOOD, isGood: false, headline: "12 new failures since main #412" },
  newFailures: { first: [cause, { ...cause, tests: several }], total: 12 },
  unclearFailures: {
    first: [{ title: "Search › sorts", url: at("c/7"), reason: "It failed; a rerun tells" }],
    total: 2,
  },
  flakyFailures: { first: [{ title: "Search › finds", url: at("c/6") }], total: 1 },
  flaky: { first: [{ title: "Search › suggests", url: at("c/2") }], total: 1 },
  fixed: { first: [{ title: "Cart › removes", url: at("c/3") }], total: 1 },
  slower: { first: [{ title: "Cart › sums", url: at("c/4"), durationMs: 4_000, usualMs: 900 }], total: 1 },
  unreliableNewTests: {
    first: [
      { title: "Cart › pays", url: at("c/5"), statement: "New test, failed 3 of 9 more runs: flaky from the start" },
    ],
    total: 1,
  },
};

const TABLE = [
  "| Task | Result | Duration |",
  "| --- | --- | ---: |",
  "| [`unit`](<https://assay.test/t/unit>) | `1,210 passed` | 4:12 |",
].join("\n");
const ORIGIN =
  "[Assay](<https://assay.test/e/1>) · [Build](<https://ci.test/7>) · commit `0123456789ab` · 4:12 · " +
  "compared with [`main #412`](<https://assay.test/e/0>)";

describe("a comment", () => {
  test("is folded where all is well", () => {
    expect(renderComment(GOOD, PROJECT)).toBe(
      [
        `<!-- assay ${PROJECT} -->`,
        "<details><summary><code>shop: 1,210 passed in 4:12</code></summary>",
        TABLE,
        ORIGIN,
        "</details>",
      ].join("\n\n"),
    );
  });

  test("names new failures with owner, place and link, then tasks, flaky, fixed and slower tests", () => {
    expect(renderComment(BAD, PROJECT)).toBe(
      [
        `<!-- assay ${PROJECT} -->`,
        "### `shop`: `12 new failures since main #412`",
        "**New failures (12)**",
        "- [`Cart › adds`](<https://assay.test/c/1>) `test/cart.test.ts:42` `@acme/cart`\n  `expected 2, got 1`\n" +
          "- 10 tests: `expected 2, got 1`\n" +
          "  - [`Cart › adds`](<https://assay.test/c/1>) `test/cart.test.ts:42` `@acme/cart`\n" +
          "  - [`Cart › adds`](<https://assay.test/c/1>)\n  - and 8 more\n- and 1 more",
        "**Unclear: a rerun tells (2)**",
        "- [`Search › sorts`](<https://assay.test/c/7>) It failed; a rerun tells\n- and 1 more",
        "**New tests that are not reliable (1)**",
        "- [`Cart › pays`](<https://assay.test/c/5>) New test, failed 3 of 9 more runs: flaky from the start",
        TABLE,
        "**Failures of known flaky tests (1)**",
        "- [`Search › finds`](<https://assay.test/c/6>)",
        "**Flaky: passed on retry (1)**",
        "- [`Search › suggests`](<https://assay.test/c/2>)",
        "**Fixed (1)**",
        "- [`Cart › removes`](<https://assay.test/c/3>)",
        "**Slower than usual (1)**",
        "- [`Cart › sums`](<https://assay.test/c/4>) 4.0 s, usually 900 ms",
        ORIGIN,
      ].join("\n\n"),
    );
  });

  test("names the known bugs of its failures, and the commits that are proven to have broken their tests", () => {
    const state: PullRequestState = {
      ...BAD,
      newFailures: { first: [{ ...cause, bug: { title: "known bug #12", url: at("b/12") } }], total: 1 },
      knownBugs: {
        first: [
          { ...bug, culprit },
          { ...bug, url: at("b/13"), failed: 1, culprit: null },
        ],
        total: 7,
      },
      ...{
        unclearFailures: none,
        flakyFailures: none,
        flaky: none,
        fixed: none,
        slower: none,
        unreliableNewTests: none,
      },
    };
    expect(renderComment(state, PROJECT)).toBe(
      [
        `<!-- assay ${PROJECT} -->`,
        "### `shop`: `12 new failures since main #412`",
        "**New failures (1)**",
        "- [`Cart › adds`](<https://assay.test/c/1>) `test/cart.test.ts:42` `@acme/cart` " +
          "[`known bug #12`](<https://assay.test/b/12>)\n  `expected 2, got 1`",
        "**Known bugs (7)**",
        '- [`Known bug #12 "expected #, got #"`](<https://assay.test/b/12>) 3 failures\n' +
          "  [`c4d5e6f012 by Ada broke it: it failed there 2 of 2 times`](<https://assay.test/b/12#culprit>)\n" +
          '- [`Known bug #12 "expected #, got #"`](<https://assay.test/b/13>) 1 failure\n- and 5 more',
        TABLE,
        ORIGIN,
      ].join("\n\n"),
    );
  });

  test("says how long a task that was slower usually takes", () => {
    const [unit] = GOOD.tasks.first;
    const tasks = { first: [{ ...unit!, slower: { usualMs: 40_000 } }], total: 1 };
    expect(renderComment({ ...GOOD, tasks }, PROJECT)).toContain("| `1,210 passed` | 4:12, usually 40 s |");
  });

  test("says that a rerun or a merge queue is behind it", () => {
    expect(renderComment({ ...BAD, rerun: "failed in a rerun" }, PROJECT)).toContain(
      "since main #412`, failed in a rerun\n",
    );
    expect(renderComment({ ...GOOD, queue: "gh-readonly-queue/main/pr-7-0123456" }, PROJECT)).toContain(
      "merge queue `gh-readonly-queue/main/pr-7-0123456`",
    );
  });

  test("keeps a bar behind backslashes within its cell", () => {
    const [unit] = GOOD.tasks.first;
    const outcome = String.raw`x\| @team \\\| [a](https://evil.example) | b`;
    const line = renderComment({ ...GOOD, tasks: { first: [{ ...unit!, outcome }], total: 1 } }, PROJECT)
      .split("\n")
      .find((one) => one.includes("@team"))!;
    // As a table is read: a bar ends a cell unless an odd number of backslashes is before it.
    expect(line.match(/(?:\\.|[^\\|])+/gs)!.filter((cell) => cell.trim() !== "")).toHaveLength(3);
  });

  test("quotes what comes from others: nothing in it is a mention, a link, a command or markup", () => {
    const title = `${HOSTILE} | a\n# b`;
    const named = { first: [{ title, url: at("c/1"), durationMs: 1, usualMs: 1 }], total: 1 };
    const tasks = { first: [{ title, url: at("t"), outcome: title, durationMs: 0, slower: null }], total: 1 };
    const tests = { first: [{ ...failed, title, owners: [title], location: title }], total: 1 };
    const failures = {
      first: [1, 2].map((total) => ({ ...cause, message: title, tests: { ...tests, total } })),
      total: 3,
    };
    const known = { first: [{ ...bug, title, culprit: { ...culprit, title } }], total: 1 };
    const state = {
      ...{ projectName: title, headline: title, commit: title, queue: title, tasks, newFailures: failures },
      knownBugs: known,
    };
    const texts = [BAD, GOOD].map((base) =>
      renderComment(
        {
          ...base,
          ...state,
          flakyFailures: named,
          flaky: named,
          fixed: named,
          slower: named,
          buildUrl: "javascript:alert(1)",
        },
        PROJECT,
      ),
    );
    for (const text of texts) {
      // A line that begins with the tag of a fold is HTML: nothing in it is read as Markdown.
      expectQuoted(text);
      // A row has three cells, whatever stands in them.
      for (const row of text.split("\n").filter((line) => line.startsWith("|")))
        expect(row.split(/(?<!\\)\|/)).toHaveLength(5);
    }
  });

  test("has at most 65,535 characters", () => {
    const long = "x".repeat(5_000);
    const test = { ...failed, title: long, owners: [long, long, long] };
    const first = Array.from({ length: 60 }, () => ({ ...cause, message: long, tests: { first: [test], total: 1 } }));
    const text = renderComment({ ...BAD, newFailures: { first, total: 60 } }, PROJECT);
    expect(text.length).toBeLessThanOrEqual(65_535);
    expect(text).toStartWith(`<!-- assay ${PROJECT} -->`);
  });
});

describe("the comment on the pull request that broke a test", () => {
  const proof = "it failed there 2 of 2 times, on its parent 0a1b2c3d4e it passed 2 of 2 times";
  const about = {
    ...{ projectId: PROJECT, test: { title: "Cart › adds", url: at("c/1") }, proof },
    ...{ commit: "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234", bugReport: { id: "b", number: 12, url: at("b/12") } },
  };

  test("names the test, the proof and the bug report", () => {
    expect(renderCulpritComment(about)).toBe(
      [
        `<!-- assay ${PROJECT} culprit b -->`,
        `This change broke [\`Cart › adds\`](<https://assay.test/c/1>). Commit c4d5e6f012: ${proof} · ` +
          "[bug report #12](<https://assay.test/b/12>)",
      ].join("\n\n"),
    );
  });

  test("quotes the name of the test", () => {
    expectQuoted(renderCulpritComment({ ...about, test: { ...about.test, title: HOSTILE } }));
  });
});
