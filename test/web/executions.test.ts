/** The page of an execution, the list of executions, and the comparison of two. */

import { describe, expect, test } from "bun:test";
import { countAll } from "../../src/work/count.ts";
import { insertFoundSearch } from "../culprit_searches.ts";
import { junit } from "../harness.ts";
import { cartReport, createPages, headline, type Shown } from "./browser.ts";
import { create, createVisit, main, pathOf, upload } from "./executions.ts";

const NOW = new Date(Date.now() + 60 * 60_000);
const pages = await createPages({ clock: () => NOW });
const { createProject, database, walk } = pages;

const visit = createVisit(pages);

test("an execution that a runner runs shows the end of its log", async () => {
  const mine = await createProject();
  const id = await create(mine, { mode: "run", tasks: ["unit"] });
  const sync = (body: object) => mine.post("/leases", { runner: "build-2", ...body });
  const [lease] = (await sync({ free: 1 })).leases;
  await sync({ free: 0, held: [{ id: lease.id, log: { offset: 0, text: "first\nlast line\n" } }] });
  expect((await visit(pathOf(mine, id))).words).toContain("Log of unit full log first last line");
});

describe("an execution that failed", () => {
  /** A report of a machine; f failed, s skipped. */
  const report = (host: string, letters: string, first = 0) =>
    `<testsuite name="s" hostname="${host}">${[...letters]
      .map((letter, index) => {
        const inner = {
          f: '<failure message="connect ECONNREFUSED">at open (src/db.ts:3:1)</failure>',
          s: "<skipped/>",
        }[letter];
        return `<testcase name="case ${first + index}" time="0.1">${inner ?? ""}</testcase>`;
      })
      .join("")}</testsuite>`;
  const shards = async (
    mine: Parameters<typeof upload>[0],
    query: Record<string, string>,
    reports: readonly string[],
  ) => {
    let id = "";
    for (const [index, body] of reports.entries())
      id = await upload(mine, { ...query, shard: `${index + 1}/${reports.length}` }, body);
    return id;
  };

  test("names the execution and the machine on which a test passed at the commit, and lists the tests of a cause folded", async () => {
    const mine = await createProject();
    const commit = "c".repeat(40);
    const of = (key: string) => ({ ...main(key), commit });
    await upload(mine, main("1"), report("gh-1", "ppppp"));
    await upload(mine, of("2"), report("gh-2", "ppppp"));
    const one = await visit(pathOf(mine, await upload(mine, of("3"), report("gh-bad", "pfppp"))));
    expect(one.words).toContain("It passed at this commit in #2 on gh-2; it failed here on gh-bad.");
    expect(one.words).toContain("Test history");
    const many = await visit(pathOf(mine, await upload(mine, of("4"), report("gh-bad", "fffff"))));
    expect(many.words).toContain("s › case 0 passed at this commit in #3 on gh-bad; it failed here on gh-bad.");
    expect(many.html).toMatch(/<summary>5 tests<\/summary>/);
    // Another commit, the same test: nothing is known about it there.
    const other = await visit(pathOf(mine, await upload(mine, main("5"), report("gh-1", "pfppp"))));
    expect(other.words).not.toContain("at this commit");
  });

  test("says that one machine has all failures, and lists machines with their shards", async () => {
    const mine = await createProject();
    const letters = "p".repeat(20);
    for (let key = 1; key <= 6; key++)
      await shards(mine, main(`${key}`), [report("gh-1", letters), report("gh-2", letters, 20)]);
    await countAll(database);
    const bad = await shards(mine, { ...main("7"), commit: "aaaaaaa6" }, [
      report("gh-1", letters),
      report("gh-bad", "f".repeat(20), 20),
    ]);
    const { words } = await visit(pathOf(mine, bad));
    expect(words).toContain("All 20 failures are on gh-bad, none on gh-1.");
    expect(words).toContain("2 of 2 shards gh-bad (shard 2): 20 failed · gh-1 (shard 1)".replace(" · ", " "));
    expect(words).toContain("passed at this commit in #6, which ran on gh-1 and gh-2; it failed here on gh-bad.");
  });

  test("names the tests of a shard that is missing", async () => {
    const mine = await createProject();
    await shards(mine, main("1"), [report("gh-1", "pp"), report("gh-2", "pp", 2)]);
    const id = await upload(mine, { ...main("2"), shard: "1/2", complete: "false" }, report("gh-1", "pp"));
    await mine.post(`/executions/${id}/complete`);
    const { words } = await visit(pathOf(mine, id));
    expect(words).toContain("2 tests of the baseline did not run unit › s › case 2 unit › s › case 3");
    expect(words).toContain("Shard 2 of 2 missing gh-1 (shard 1)");
  });

  test("lists the commits with their authors since the last pass, which tests did not run and which are newly skipped", async () => {
    const mine = await createProject();
    const hash = (letter: string) => letter.repeat(40);
    const line = (own: string, parent: string, author: string) =>
      [hash(own), hash(parent), author, "2026-01-31T10:00:00Z", `Change ${own}`].join("\t");
    const letters = "p".repeat(60);
    const query = (key: string, commit: string, commits: string[]) => ({
      ...{ ...main(key), commit: hash(commit), commits: commits.join("\n") },
    });
    await upload(mine, query("1", "a", [line("a", "e", "Ada")]), report("gh-1", letters));
    const commits = [line("c", "b", "Bea"), line("b", "a", "Chidi")];
    const red = await upload(
      mine,
      query("2", "c", commits),
      report("gh-1", `fs-${letters.slice(4)}`.replace("-", "p")),
    );
    const { words } = await visit(pathOf(mine, red));
    expect(words).toContain(
      "2 commits between its last pass and its first failure ccccccc Change c by Bea bbbbbbb Change b by Chidi",
    );
    expect(words).toContain(
      "1 test of the baseline did not run unit › s › case 59 1 test of the baseline is newly skipped unit › s › case 1 New",
    );
    const comparison = await visit(`${pathOf(mine, red)}/comparison`);
    expect(headline(comparison)).toBe("1 new failures, 1 did not run, 1 newly skipped");
  });
});

describe("an execution that passed", () => {
  const cases = (parts: Record<string, { seconds?: number; fails?: boolean }>) => {
    const written = Object.entries(parts).map(([name, { seconds = 0.1, fails = false }]) => {
      return `<testcase name="${name}" time="${seconds}">${fails ? '<failure message="boom"/>' : ""}</testcase>`;
    });
    return `<testsuite name="s">${written.join("")}</testsuite>`;
  };

  test("names the tests that it fixed, added, lacks, and that are slower than usual", async () => {
    const mine = await createProject();
    for (let key = 1; key <= 14; key++) await upload(mine, main(`${key}`), cases({ slow: {}, old: {}, broken: {} }));
    await countAll(database);
    await upload(mine, main("15"), cases({ slow: { seconds: 2.5 }, old: {}, broken: {} }));
    await upload(mine, main("16"), cases({ slow: { seconds: 2.5 }, old: {}, broken: { fails: true } }));
    await countAll(database);
    const green = await upload(mine, main("17"), cases({ slow: { seconds: 3 }, broken: {}, fresh: {} }));
    const { words, html } = await visit(pathOf(mine, green));
    expect(words).toContain("What changed full comparison");
    expect(words).toMatch(/Fixed 1 unit › s › broken .* Added 1 unit › s › fresh .* Did not run 1 unit › s › old/);
    const slow = "s › slow 3.0 s, usually 100 ms";
    expect(words).toContain(`Slower than usual 1 unit › ${slow}`);
    expect(words).toMatch(/unit slower than usual .* 3\.2 s usually 300 ms/);
    const task = await visit(`${pathOf(mine, green)}/tasks/unit`);
    expect(task.words).toContain("slower than usual: 3.2 s, usually 300 ms");
    expect(task.words).toContain(`Slower than usual 1 test ${slow}`);
    expect(task.words.split(slow)).toHaveLength(3);
    const comparison = await visit(`${pathOf(mine, green)}/comparison`);
    expect(comparison.words).toContain(`Slower than usual 1 test, whatever the other execution took unit › ${slow}`);
    const [testPage] = new RegExp(`${mine.path}/tests/[0-9a-f-]+`).exec(html.split("Slower than usual")[1]!)!;
    const results = await visit(testPage);
    const slower = /#17 main aaaaaaa 3\.0 s slower, usually 100 ms .* #16 .* 2\.5 s slower, usually 100 ms .* #15/;
    expect(results.words).toMatch(slower);
    expect(results.words.split("slower, usually")).toHaveLength(3);
    expect(results.html).toContain("passed, slower than usual: 3.0 s, usually 100 ms, #17 main");
  });

  test("names the flaky ones, and says nothing where nothing changed", async () => {
    const mine = await createProject();
    await upload(mine, main("1"), cases({ one: {}, two: {} }));
    const same = await upload(mine, main("2"), cases({ one: {}, two: {} }));
    expect((await visit(pathOf(mine, same))).words).not.toContain("What changed");
    const report = `<testsuite name="s"><testcase name="one"><flakyFailure message="no luck"/></testcase><testcase name="two"/></testsuite>`;
    const flaky = await upload(mine, main("3"), report);
    expect((await visit(pathOf(mine, flaky))).words).toContain("Flaky 1 unit › s › one");
  });
});

test("an execution that goes on says how much is left, judged by its tasks' last runs", async () => {
  const mine = await createProject();
  const long = `<testsuite name="s"><testcase name="a" time="7200"/></testsuite>`;
  for (const key of ["1", "2"]) await upload(mine, main(key), long);
  const id = await create(mine, { tasks: ["unit", "unheard"] });
  expect((await visit(pathOf(mine, id))).words).toContain("0 % of tasks finished");
  const known = await create(mine, { tasks: ["unit"] });
  expect((await visit(pathOf(mine, known))).words).toMatch(/0 % about 2 hours left/);
});

describe("what came of an execution is said in words", () => {
  test("all passed", async () => {
    const mine = await createProject();
    const id = await upload(mine, main("1"), junit("ppps"));
    const page = await visit(pathOf(mine, id));
    expect(headline(page)).toBe("3 passed in 40 ms");
    expect(page.words).toContain("1 skipped");
    expect(page.html).not.toContain("data-live");
  });

  test("one flaky test is linked to its result, several to the flaky results of their task", async () => {
    const mine = await createProject();
    const twice = (names: readonly string[]) =>
      `<testsuite name="cart">${names.map((name) => `<testcase classname="cart" name="${name}" time="0.1"><flakyFailure message="no"/></testcase>`).join("")}<testcase classname="cart" name="z"/></testsuite>`;
    const id = await upload(mine, main("1"), twice(["a"]));
    const [, address] = /<h1>[^]*?<a href="([^"]+)">1 flaky<\/a>/.exec((await visit(pathOf(mine, id))).html)!;
    const shown = await visit(address!.replaceAll("&amp;", "&"));
    expect([shown.status, shown.words.includes("cart › a")]).toEqual([200, true]);
    expect(shown.words).not.toContain("cart › z");
    const several = (await visit(pathOf(mine, await upload(mine, main("2"), twice(["a", "b"]))))).html;
    expect(several).toContain(`/tasks/unit?status=flaky">2 flaky</a>`);
  });

  test("new failures since the baseline, still failing, also failing on main, known flaky", async () => {
    const mine = await createProject();
    const baseline = await upload(mine, main("411"), junit("pppfp"));
    const id = await upload(mine, { ...main("500"), branch: "feature" }, junit("ffpfp"));
    const page = await visit(pathOf(mine, id));
    expect(headline(page)).toBe("2 new failures since #411, 1 still failing");
    expect(page.html).toContain(`href="${pathOf(mine, baseline)}">#411</a>`);
    expect(page.words).toContain("2 passed in 50 ms");
    expect(page.words).toContain("compare with #411");
    const second = await upload(mine, { ...main("501"), branch: "feature" }, junit("pppfp"));
    expect(headline(await visit(pathOf(mine, second)))).toBe("Nothing new since #411: 1 still failing");
  });

  test("running, with what has come so far; queued; live", async () => {
    const mine = await createProject();
    const id = await create(mine, { tasks: ["unit", "e2e", "web"] });
    const queued = await visit(pathOf(mine, id));
    expect(headline(queued)).toBe("Queued, 0 of 3 tasks");
    await upload(mine, { execution_id: id }, junit("pf"));
    const running = await visit(pathOf(mine, id));
    expect(headline(running)).toBe("Running, 1 of 3 tasks, 1 new failure so far");
    expect(running.html).toContain(`data-live="${pathOf(mine, id)}/live"`);
    for (const region of ["state", "failures", "tasks"]) expect(running.html).toContain(`data-region="${region}"`);
  });

  test("timed out: which tasks are missing and why, and which shards", async () => {
    const mine = await createProject();
    const id = await create(mine, { tasks: ["unit", "e2e"] });
    await upload(mine, { execution_id: id, shard: "2/3" }, junit("p"));
    await mine.post(`/executions/${id}/complete`);
    const page = await visit(pathOf(mine, id));
    expect(headline(page)).toBe("Timed out: unit: shards 1 and 3 of 3 missing, e2e: did not report");
    expect(page.words).toContain("e2e Did not report");
    expect(page.words).toContain("unit 1 of 3 shards Shards 1 and 3 of 3 missing");
  });

  test("cancelled, an outage, nothing", async () => {
    const mine = await createProject();
    const id = await create(mine, { tasks: ["unit", "e2e"] });
    await upload(mine, { execution_id: id }, junit("p"));
    await mine.post(`/executions/${id}/cancel`);
    expect(headline(await visit(pathOf(mine, id)))).toBe("Cancelled, 1 of 2 tasks had reported");
    const empty = await upload(mine, { allow_empty: "true", complete: "true" }, cartReport([]));
    expect(headline(await visit(pathOf(mine, empty)))).toBe("Nothing ran");
    await upload(mine, main("1"), junit("p".repeat(40)));
    const mixed = await upload(mine, { ...main("3"), complete: "false" }, junit("f".repeat(12)));
    await upload(mine, { ...main("3"), task_slug: "e2e" }, junit(`f${"p".repeat(39)}`, "e2e"));
    const outageOf = "An outage of unit: 12 of 12 tests failed; 1 new failure";
    expect(headline(await visit(pathOf(mine, mixed)))).toStartWith(outageOf);
    expect((await visit(`${mine.path}/executions`)).words).toContain("an outage: 12 failures, 1 new failure");
    const outage = await upload(mine, main("2"), junit("f".repeat(40)));
    expect(headline(await visit(pathOf(mine, outage)))).toBe("An outage: 40 of 40 tests failed");
  });
});

describe("failures by cause", () => {
  const stack = `TypeError: x is undefined
    at priceOf (/app/src/price.ts:41:17)
    at run (/app/node_modules/vitest/runner.js:1:1)
    at next (/app/node_modules/vitest/runner.js:2:1)`;
  const broken = { message: "TypeError: x is undefined", stack };

  test("those of one cause are together, with stack, tests, history, since and bug", async () => {
    const mine = await createProject();
    const old = { name: "old", message: "boom here now" };
    await upload(mine, main("1"), cartReport([{ name: "a" }, { name: "b" }, { name: "old" }]));
    for (const key of ["2", "3"]) await upload(mine, main(key), cartReport([{ name: "a" }, { name: "b" }, old]));
    const failed = [{ name: "a", ...broken, output: "the last words" }, { name: "b", ...broken }, old];
    const id = await upload(mine, { ...main("9"), branch: "feature" }, cartReport(failed));
    const page = await visit(pathOf(mine, id));
    expect(page.words).toContain("New failures 1 cause, 2 tests");
    expect(page.words).toContain("TypeError: x is undefined 2 tests");
    expect(page.html.match(/<details class="failure"/g)).toHaveLength(2);
    // Own frames stand out, those of others are counted.
    expect(page.html).toContain("<b>at priceOf (/app/src/price.ts:41:17)</b>");
    expect(page.html).toContain("2 frames of node_modules");
    expect(page.html).not.toContain("runner.js");
    expect(page.words).toContain("End of the output the last words");
    expect(page.html).toContain("The last 4 results: 1 failed, 3 passed");
    expect(page.words).toContain("Still failing 1 cause, 1 test");
    expect(page.words).toMatch(/Failing since .* ago, aaaaaaa/);
    const known = (await mine.get(`/executions/${id}/failures`)).causes.at(-1);
    const { since } = known.failures[0];
    expect(page.html).toContain(`Failing since <a href="${pathOf(mine, since.executionId)}">`);
    expect(page.words).toContain('Known bug #1 "boom here now" open');
    expect(page.words).not.toContain("broke it");
    const found = { project: mine.project, bugReportId: known.bugReport.id };
    await insertFoundSearch(database, { ...found, naming: (plain) => `<i>${plain}</i>` });
    const link = `<a href="${mine.path}/bugs/${known.bugReport.id}#culprit">`;
    const proof = `${link}\\w{10} by &lt;i&gt;Ada&lt;/i&gt; broke it: it failed there 2 of 2 times`;
    expect((await visit(pathOf(mine, id))).html).toMatch(new RegExp(proof));
    expect(page.words.indexOf("New failures")).toBeLessThan(page.words.indexOf("Still failing 1"));
  });

  test("those of one machine say so once, those of several each", async () => {
    const mine = await createProject();
    const shard = (index: number, host: string, cases: { name: string; message: string }[]) =>
      upload(mine, { ...main("1"), task_slug: "unit", shard: `${index}/2`, host }, cartReport(cases));
    await shard(1, "ci-1", [
      { name: "a", message: "boom here now" },
      { name: "b", message: "boom here now" },
      { name: "c", message: "another thing is wrong" },
    ]);
    const id = await shard(2, "ci-2", [{ name: "d", message: "another thing is wrong" }]);
    const { words } = await visit(pathOf(mine, id));
    expect(words).toContain("boom here now 2 tests on ci-1");
    expect(words.match(/on ci-\d/g)!.toSorted()).toEqual(["on ci-1", "on ci-1", "on ci-2"]);
  });

  test("expected and received stand as a difference, once", async () => {
    const mine = await createProject();
    const message =
      "expect(received).toEqual(expected)\n\n- Expected  - 1\n+ Received  + 1\n\n  {\n-   a: 1,\n+   a: 2,\n  }";
    const id = await upload(mine, main("1"), cartReport([{ name: "a", message }]));
    const { html } = await visit(pathOf(mine, id));
    expect(html).toContain("<del>−   a: 1,</del><ins>+   a: 2,</ins>");
    expect(html).not.toContain("+ Received  + 1");
  });

  test("an execution of many causes comes in pages that show each failure once", async () => {
    const mine = await createProject();
    await upload(mine, main("1"), junit("p"));
    const words = ["alpha", "beta", "gamma", "delta", "mail", "order"];
    const word = (index: number) =>
      [index % 6, Math.floor(index / 6) % 6, Math.floor(index / 36) % 6].map((at) => words[at]).join(" ");
    const cases = Array.from({ length: 130 }, (_, index) => ({
      name: `case ${index}.`,
      message: `Error: cannot ${word(index)}`,
    }));
    const passed = Array.from({ length: 60 }, (_, index) => ({ name: `fine ${index}` }));
    const id = await upload(mine, { ...main("2"), branch: "feature" }, cartReport([...cases, ...passed]));
    const pages = await walk("owner", pathOf(mine, id), ({ words }) => words.match(/(?<=cart › )case \d+\./g)!);
    expect(pages[0]).toHaveLength(25);
    expect(pages.flat().toSorted()).toEqual(cases.map(({ name }) => name).toSorted());
    expect((await visit(`${pathOf(mine, id)}?cause_after=nonsense`)).status).toBe(400);
  });

  test("causes count all of their tests, also those that the page does not list", async () => {
    const mine = await createProject();
    const failed = Array.from({ length: 300 }, (_, index) => ({
      name: `case ${index}.`,
      message: index % 3 === 0 ? "Error: the mail was not sent" : "Error: the basket is gone",
    }));
    const passed = Array.from({ length: 300 }, (_, index) => ({ name: `fine ${index}` }));
    const id = await upload(mine, { branch: "feature" }, cartReport([...failed, ...passed]));
    const { words, html } = await visit(pathOf(mine, id));
    expect(words).toContain("New failures 2 causes, 300 tests");
    const listed = /the mail was not sent 100 tests .* 100 tests .* and 90 more .* the basket is gone 200 tests/;
    expect(words).toMatch(listed);
    expect(words).toContain("and 190 more");
    expect(html).not.toContain('rel="next"');
  });
});

test("a page of many tasks shows the worst, and all of them when asked", async () => {
  const mine = await createProject();
  const slugs = Array.from({ length: 60 }, (_, index) => `task-${index}`);
  const id = await create(mine, { tasks: slugs });
  await upload(mine, { execution_id: id, task_slug: "task-59" }, junit("f"));
  const rows = ({ html }: Shown) => [...html.matchAll(/\/tasks\/(task-\d+)">/g)].map((match) => match[1]!);
  const some = await visit(pathOf(mine, id));
  expect(rows(some)).toHaveLength(50);
  expect(rows(some)[0]).toBe("task-59");
  expect(some.words).toContain("All 60 tasks");
  expect(rows(await visit(`${pathOf(mine, id)}?tasks=all`)).toSorted()).toEqual(slugs.toSorted());
});

describe("the list", () => {
  const keys = ({ html }: Shown) => [...html.matchAll(/<b>([^<]*)<\/b><\/a>/g)].map((match) => match[1]!);

  test("filters are in the address, and stay there over pages", async () => {
    const mine = await createProject();
    const list = `${mine.path}/executions`;
    expect((await visit(list)).words).toContain("No reports yet");
    const old = "2026-01-05T12:00:00Z";
    await upload(mine, { ...main("1"), completed_at: old, environment: "staging" }, junit("p"));
    await upload(mine, { ...main("2"), commit: "BCDEF0123456789" }, junit("pf"));
    await upload(mine, { ...main("3"), branch: "feature" }, junit("p"));
    expect(keys(await visit(list))).toEqual(["#3", "#2", "#1"]);
    expect(keys(await visit(`${list}?branch=main`))).toEqual(["#2", "#1"]);
    expect(keys(await visit(`${list}?status=failed`))).toEqual(["#2"]);
    expect(keys(await visit(`${list}?environment=staging`))).toEqual(["#1"]);
    expect(keys(await visit(`${list}?day=2026-01-05`))).toEqual(["#1"]);
    expect(keys(await visit(`${list}?day=2026-01-04`))).toEqual([]);
    expect(keys(await visit(`${list}?q=%233`))).toEqual(["#3"]);
    expect(keys(await visit(`${list}?q=bcdef012`))).toEqual(["#2"]);
    // What a form sends where a filter was left empty.
    const page = await visit(`${list}?q=&branch=main&status=passed&environment=&day=`);
    expect(keys(page)).toEqual(["#1"]);
    expect(headline(page)).toBe("Passed executions of main");
    expect(page.html).toContain('value="main"');
    expect((await visit(`${list}?q=none`)).words).toContain("No executions match the filters");
    expect((await visit(`${list}?day=yesterday`)).status).toBe(400);
  });

  test("pages follow each other without a gap", async () => {
    const mine = await createProject();
    for (let index = 0; index < 65; index++)
      await create(mine, { key: `${100 + index}`, branch: index % 13 === 0 ? "other" : "main" });
    const pages = await walk("owner", `${mine.path}/executions?branch=main`, keys);
    expect(pages).toHaveLength(2);
    const expected = Array.from({ length: 65 }, (_, index) => index).filter((index) => index % 13 !== 0);
    expect(pages.flat()).toEqual(expected.toReversed().map((index) => `#${100 + index}`));
  });
});

describe("comparison", () => {
  test("fixed, added, missing, with the baseline or another execution", async () => {
    const mine = await createProject();
    const cases = (names: string, failing = "") =>
      cartReport([...names].map((name) => ({ name, ...(failing.includes(name) && { message: `boom ${name} here` }) })));
    const first = await upload(mine, main("1"), cases("abcd", "ab"));
    await upload(mine, main("2"), cases("abcd", "a"));
    const id = await upload(mine, main("3"), cases("bcde", "c"));
    const page = await visit(`${pathOf(mine, id)}/comparison`);
    expect(page.words).toContain("#3 compared with #2");
    expect(headline(page)).toBe("1 new failures, 1 added, 1 did not run");
    const other = await visit(`${pathOf(mine, id)}/comparison?baseline=${first}`);
    expect(headline(other)).toBe("1 fixed, 1 new failures, 1 added");
    expect(other.words).toContain("Fixed 1 test, passed, but failed in the other execution");
    expect(other.words).toContain("Did not run 1 test, only in the other execution");
    expect((await visit(`${pathOf(mine, id)}/comparison?baseline=`)).words).toContain("#3 compared with #2");
    expect((await visit(`${pathOf(mine, id)}/comparison?baseline=${crypto.randomUUID()}`)).status).toBe(400);
    const earliest = await visit(`${pathOf(mine, first)}/comparison`);
    expect(earliest.words).toContain("no other execution: there is no earlier one");
  });
});
