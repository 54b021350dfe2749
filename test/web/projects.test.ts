/** The first page and that of a project: is main green, since when, and what is new. */

import { describe, expect, test } from "bun:test";
import { createPages } from "./browser.ts";

const HOUR = 3_600_000;
const now = new Date();
const { own, createProject, fill, look, people, report } = await createPages({ clock: () => now });
const base = own.path;
const before = (hours: number) => new Date(now.getTime() - hours * HOUR).toISOString();
const build = (key: string, hours: number, letters: string, more: Record<string, string> = {}) =>
  report(letters, { execution_key: key, complete: "true", branch: "main", completed_at: before(hours), ...more });

test("a project without reports says so, and how to send the first one", async () => {
  const { words, html } = await look("viewer", base);
  expect(words).toContain("No finished executions on main yet");
  expect(words).toContain("No reports yet.");
  expect(html).toContain(`href="${base}/onboarding"`);
  const home = (await look("viewer", "/")).words;
  expect(home).toStartWith("○ No results yet Acme");
  expect(home).toContain("main no results Send the first report");
});

describe("a project with builds", () => {
  test("is green since the first green build after a red one, in words, on both pages", async () => {
    await build("1", 50, "pf");
    await build("2", 30, "pp");
    await build("3", 5.5, "pp", { commit: "1a2b3c4d5e6f7a8b9c0d" });
    for (const path of ["/", base]) {
      const { words } = await look("viewer", path);
      expect(words).toMatch(/main (?:has been )?green for 1 day/);
    }
    expect((await look("viewer", base)).words).toContain("#3 2 passed in 300 ms 1a2b3c4");
    expect((await look("viewer", "/")).words).toMatch(/^● The project is green .* #3 5 hours ago$/);
  });

  test("says what is new on which branch, first of all, and what of it is only known", async () => {
    await build("4", 1.5, "ppf", { branch: "feature/cart", says: "TypeError: no currency" });
    for (const path of ["/", base]) {
      const { words } = await look("viewer", path);
      expect(words).toMatch(/feature\/cart #4:? 1 new failure/);
      expect(words).toMatch(/main (?:has been )?green for 1 day/);
    }
    expect((await look("viewer", base)).words).toContain(
      "✕ failed feature/cart #4: 1 new failure TypeError: no currency",
    );
  });

  test("counts each failure once, however many attempts have failed, and none that a later build no longer has", async () => {
    const send = (key: string, hours: number, letters: string, branch: string, says = "no luck") =>
      build(key, hours, letters, { branch, says, task_slug: `unit of ${branch}` });
    await send("41", 1.4, "ffpppp", "feature/retry");
    for (const says of ["no luck either", "none at all"]) await send("41", 1.4, "ffpppp", "feature/retry", says);
    await send("42", 1.3, "ffpppp", "feature/less");
    await send("43", 1.2, "pfpppp", "feature/less");
    for (const path of ["/", base]) {
      const { words } = await look("viewer", path);
      expect(words).toMatch(/feature\/retry #41:? 2 new failures/);
      expect(words).toMatch(/feature\/less #43:? 1 new failure/);
      expect(words).not.toContain("#42: ");
    }
    for (const branch of ["feature/retry", "feature/less"]) await send(branch, 1.1, "pppppp", branch);
    expect((await look("viewer", "/")).words).not.toContain("feature/retry");
  });

  test("a branch that has passed since needs nobody", async () => {
    const needs = async () => [
      (await look("viewer", base)).words.includes("#4: 1 new failure"),
      (await look("viewer", "/")).words.includes("feature/cart"),
    ];
    expect(await needs()).toEqual([true, true]);
    await build("5", 1, "ppp", { branch: "feature/cart" });
    expect(await needs()).toEqual([false, false]);
  });

  test("is red since the build that broke it", async () => {
    await build("6", 0.5, "fp", { says: "expected 2, got 1" });
    await build("7", 0.2, "fp", { says: "expected 2, got 1" });
    const { words } = await look("viewer", base);
    expect(words).toContain("main has been red for 30 minutes");
    expect(words).toContain("unit: 1 failure red for 30 minutes unit › case 0 expected 2, got 1 30 minutes ago – #2");
    expect(words).toContain("#6 main 1 new failure 300 ms");
    expect(words).toContain("#7 main 1 known failure");
  });

  test("shows what failed lately as a table of tests and builds", async () => {
    const { html, words } = await look("viewer", base);
    expect(words).toContain("Recent failures");
    const row = /<th scope="row">(?:(?!<\/tr>)[^])*case 0[^]*?<\/tr>/.exec(html)![0];
    const cells = [...row.matchAll(/class="cell (\w+)"/g)].map(([, status]) => status);
    expect(cells).toEqual(["passed", "passed", "passed", "failed", "failed"]);
  });

  test("is not on the first page of others", async () => {
    expect((await look("rival", "/")).words).not.toContain("Acme");
  });
});

describe("a project with several workflows", () => {
  test("is red as long as one of them is, which is named with a link, also by the badge and for those with a link", async () => {
    const { path: at, upload } = await createProject();
    const send = (task: string, hours: number, letters: string) =>
      upload(letters, { task_slug: task, branch: "main", complete: "true", completed_at: before(hours) });
    await send("old", 24 * 20, "f");
    await send("e2e", 9, "p");
    await send("e2e", 8, "f");
    await send("unit", 3, "pp");
    await send("e2e", 2, "f");
    await send("unit", 1, "ppp");
    for (const path of ["/", at]) {
      const { words } = await look("viewer", path);
      expect(words).toMatch(/main (?:has been )?red for 8 hours/);
      expect(words).toMatch(/e2e:? 1 failure/);
    }
    const { words } = await look("viewer", at);
    expect(words).toContain("e2e: 1 failure red for 8 hours");
    expect(words).toContain("not run recently: old");
    expect((await look("viewer", "/")).words).toStartWith("✕ 2 of 2 projects are red");
  });
});

describe("why the default branch is red", () => {
  test("names the tests, the commits between which they broke with a link, their owner and their bug", async () => {
    const { path, upload } = await createProject();
    const commits = ["a", "b", "c"].map((letter) => letter.repeat(40));
    for (const [index, letters] of ["pp", "fp", "fp"].entries())
      await upload(letters, {
        ...{ branch: "main", complete: "true", execution_key: String(index + 1), commit: commits[index]! },
        build_url: `https://git.example/acme/shop/actions/runs/${index + 1}`,
      });
    const { words, html } = await look("viewer", path);
    expect(words).toMatch(
      /Why main is red .* unit: 1 failure red for .* unit › case 0 case 0 failed just now aaaaaaa … bbbbbbb – #1/,
    );
    expect(html).toContain(`href="https://git.example/acme/shop/compare/${commits[0]}...${commits[1]}"`);
  });

  test("is a task without failing tests too", async () => {
    const { path, upload, list, post } = await createProject();
    await upload("p", "branch=main&shard=1/2&execution_key=1");
    const [execution] = await list("/executions");
    await post(`/executions/${execution.id}/complete`);
    expect((await look("viewer", path)).words).toMatch(/Why main is red .* unit: is incomplete/);
  });
});

test("an execution without a key is called by its branch and number, which ascends", async () => {
  const { path, upload } = await createProject();
  for (const query of ["branch=main", "branch=main", ""]) await upload("p", `complete=true&${query}`);
  const { words } = await look("viewer", `${path}/executions`);
  const [unnamed, second, first] = [...words.matchAll(/passed #(\d+)( main)?/g)];
  expect(Number(unnamed![1])).toBeGreaterThan(Number(second![1]));
  expect(Number(second![1])).toBeGreaterThan(Number(first![1]));
  expect([unnamed![2], second![2]]).toEqual([undefined, " main"]);
  expect((await look("viewer", path)).words).toContain(`newest #${unnamed![1]}`);
});

describe("what needs somebody", () => {
  const setUp = async () => {
    const { path, upload, post } = await createProject();
    const send = async (query: string, letters: string): Promise<string> => (await upload(letters, query)).executionId;
    const needs = async () =>
      /(?:Why main is red|Other branches)(.*)Executions all/.exec((await look("viewer", path)).words)![1]!;
    const rerun = async (id: string): Promise<string> =>
      (await post(`/executions/${id}/rerun`, { failedOnly: true })).id;
    return { send, needs, rerun };
  };
  const build = (key: string) => `branch=feature/a&execution_key=${key}&complete=true`;

  test("stays when an older build is repeated, and is gone when the newest one is", async () => {
    const { send, needs, rerun } = await setUp();
    const old = await send(build("k1"), "fppp");
    const newest = await send(build("k2"), "ffpp");
    expect(await needs()).toContain("✕ failed feature/a k2: 2 new failures case 0");
    await send(`execution_id=${await rerun(old)}`, "pppp");
    expect(await needs()).toContain("✕ failed feature/a k2: 2 new failures case 0");
    await send(`execution_id=${await rerun(newest)}`, "pppp");
    expect(await needs()).toContain("● passed feature/a k2: 2 new failures, passed when rerun");
  });

  test("stays when a later build has only some of its shards", async () => {
    const { send, needs } = await setUp();
    await send(build("k1"), "fppp");
    await send(`${build("k2")}&shard=1/2`, "pp");
    expect(await needs()).toMatch(/feature\/a k2: \S.* k1: 1 new failure case 0/);
  });

  test("names five red tasks and counts the others", async () => {
    const { send, needs } = await setUp();
    for (let task = 1; task <= 7; task++) await send(`task_slug=t${task}&branch=main&complete=true`, "fppp");
    expect((await needs()).match(/t\d: 1 failure red for [^:]*? new case 0 failed/g)).toHaveLength(5);
    expect(await needs()).toContain("2 more red tasks");
  });
});

describe("the page of a project", () => {
  const DAY = 24;
  const at = (hours: number) => ({ complete: "true", completed_at: before(hours) });

  test("lists what the visitor owns, and quarantines flaky tests in place", async () => {
    const { path, upload, list, patch } = await createProject();
    for (let run = 0; run < 3; run++)
      for (const letters of ["ffp", "ppp"])
        await upload(letters, { branch: "main", commit: `abcdef${run}`, ...at(9 - run) });
    const [first, second] = await list("/test-cases?health=flaky");
    await patch(`/test-cases/${first.id}`, { owner: people.member.email });
    const words = async (who: "member" | "viewer" = "member") => (await look(who, path)).words;
    expect(await words()).toMatch(
      /Yours tests that you own, bugs that are assigned to you Your tests and bugs ◐ flaky unit › unit › case \d failed 3 of the last 6 results, last failure \d hours ago · \S+ Quarantine for 14 days unit › unit › case \d Flaky tests/,
    );
    expect(await words("viewer")).not.toMatch(/Yours|Quarantine for/);
    const of = `${path}/tests/${second.id}`;
    const until = new Date(now.getTime() + 14 * DAY * HOUR).toISOString().slice(0, 10);
    expect((await look("member", path)).html).toContain(`name="until" value="${until}"`);
    const back = { from: "overview" };
    const sent = await fill("member", `${of}/quarantine`, { ...back, reason: "Flaky", until });
    expect(sent.location).toBe(`${path}#flaky`);
    expect(await words()).toMatch(
      /Flaky tests .* quarantined until \d+ \w+ failed 3 of the last 6 results.*? End quarantine/,
    );
    expect((await fill("member", `${of}/release`, back)).location).toBe(`${path}#flaky`);
    expect(await words()).not.toContain("End quarantine");
  });

  test("shows bugs of the visitor", async () => {
    const { path, list, patch, post } = await createProject();
    for (const title of ["Prices are rounded twice", "Not mine"]) await post("/bug-reports", { title });
    const [bug] = (await list("/bug-reports")).filter(({ title }) => title.startsWith("Prices"));
    await patch(`/bug-reports/${bug.id}`, { assignee: people.member.email });
    const { words } = await look("member", path);
    expect(words).toContain("Your tests and bugs ○ open Bug 1 Prices are rounded twice 0 failures");
    expect(words).not.toContain("Not mine");
  });

  test("folds branches without an execution for a week, and has one row for the executions of a commit", async () => {
    const { path, upload } = await createProject();
    const send = (key: string, hours: number, letters: string, more: Record<string, string>) =>
      upload(letters, { execution_key: key, ...at(hours), ...more });
    await send("1", 9 * DAY, "pp", { branch: "spike/old" });
    for (const [index, letters] of ["pp", "fp", "pp"].entries())
      await send(String(index + 2), 20 - index, letters, { branch: "main", commit: "abcdef1" });
    await send("5", 2, "pp", { branch: "feature/a" });
    const { words, html } = await look("viewer", path);
    expect(words).toContain(
      "● passed feature/a #5: 2 passed 2 hours ago 1 more branch, without an execution for 7 days",
    );
    expect(words).toContain("● passed spike/old #1: 2 passed 9 days ago");
    expect(html.indexOf("<details")).toBeLessThan(html.indexOf("spike/old"));
    expect(words).toMatch(
      /#4 main abcdef1 1 of these 3 executions did not pass; the newest: 2 passed ● ✕ ● \S+ ms 18 hours ago/,
    );
    expect(
      [...html.matchAll(/aria-label="#(\d): (passed|failed), /g)].map(([, key, status]) => `${key} ${status}`),
    ).toEqual(["2 passed", "3 failed", "4 passed"]);
  });

  test("shows the trend by week, also as a table", async () => {
    const { path, upload, uploadReport } = await createProject();
    const send = (hours: number, letters: string) => upload(letters, { branch: "main", ...at(hours) });
    await send(10 * DAY, "pp");
    await send(8 * DAY + 10, "fp");
    const retried = `<testcase name="a" time="0.01"><flakyFailure message="late"/></testcase>`;
    await uploadReport(`<testsuite name="unit">${retried}</testsuite>`, { branch: "main", ...at(8 * DAY) });
    await send(2 * DAY, "pp");
    const { words } = await look("viewer", path);
    expect(words).toMatch(/Executions of main that passed 100 % 33 points higher than the week before/);
    expect(words).toMatch(/Red: from a failed execution to the next that passed 0 h 10 h less than the week before/);
    expect(words).toMatch(/Executions with a flaky failure 0 % 33 points lower than the week before/);
    expect(words).toMatch(
      /View as table .* Week Executions Passed Red Flaky Duration .* 1 100 % 0 h 0 % .* 3 67 % 10 h 33 % /,
    );
  });
});
