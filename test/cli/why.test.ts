/** `assay why`: forty lines that say what the page says, and an exit code. */

import { beforeAll, describe, expect, test } from "bun:test";
import { MAX_LINES, whyLines } from "../../src/cli/why_lines.ts";
import { findWhy } from "../../src/mcp/why.ts";
import { createAsking, type Project } from "../asking.ts";
import { run, type Variables, variablesOf } from "../commands.ts";
import { insertFoundSearch } from "../culprit_searches.ts";
import { createHarness, junit } from "../harness.ts";
import { createAssistant } from "../mcp/assistant.ts";

const { ask, acme, addProject, database, rival, url } = await createHarness();
const { call } = createAssistant(url);

const fresh = async () => createAsking(ask, await addProject(acme));
type Place = Awaited<ReturnType<typeof fresh>>;

async function why(args: string[], place: Project, more: Variables = {}) {
  const ended = await run(["why", ...args], { env: { ...variablesOf(url, place), ...more } });
  return { ...ended, lines: ended.output.split("\n").slice(0, -1) };
}

async function upload(place: Place, query: string, body: string): Promise<any> {
  const answer = await place.send(body, `complete=true&${query}`);
  expect(answer.status).toBe(201);
  return answer.body;
}

let place: Place;
let red: string;
beforeAll(async () => {
  place = await fresh();
  await upload(place, "task_slug=unit&branch=main&execution_key=1&commit=1111111aaa", junit("pppp"));
  const run = await upload(place, "task_slug=unit&branch=main&execution_key=2&commit=2222222bbb", junit("pffp"));
  red = run.executionId;
  await upload(place, "task_slug=lint&branch=main&execution_key=3", junit("p", "lint"));
  await upload(place, "task_slug=unit&branch=green&execution_key=4&pull_request=7", junit("pppp"));
  await upload(place, "task_slug=unit&branch=topic&execution_key=5&pull_request=8", junit("pppf"));
});

describe("assay why", () => {
  test("does not take an answer that it cannot read for red", async () => {
    for (const body of ["<html>Welcome</html>", "{}"]) {
      using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(body) });
      const { code, output, errors } = await why([], place, { ASSAY_URL: other.url.origin });
      expect([code, output]).toEqual([3, ""]);
      expect(errors).toMatch(/^Cannot read the answer of http:\S+ \(.*\): check ASSAY_URL\n$/);
    }
  });

  test("says that a server may be older that does not have the endpoint", async () => {
    const { code, errors } = await why([], place, { ASSAY_URL: `${url}/api/v1` });
    expect(code).toBe(3);
    expect(errors).toMatch(/^No such endpoint: \S+: the server may be older than this command\n$/);
  });

  test("names the commands that explain the other red tasks of the branch", async () => {
    const own = await fresh();
    const unit = await upload(own, "task_slug=unit&branch=main&execution_key=1", junit("pf"));
    const lint = await upload(own, "task_slug=lint&branch=main&execution_key=2", junit("f", "lint"));
    const { lines } = await why([], own);
    expect(lines).toContain(`Also red: unit (assay why --execution ${unit.executionId})`);
    expect(lines.join("\n")).not.toContain(`--execution ${lint.executionId}`);
    const found = await call("why_is_it_red", {}, own.key);
    expect(JSON.stringify(found)).toContain(`1 more red task; call why_is_it_red with executionId ${unit.executionId}`);
  });

  test("explains the red task of the default branch, although a later build of another task is green", async () => {
    const { code, lines, errors } = await why([], place);
    expect([code, errors]).toEqual([1, ""]);
    const reason = expect.stringMatching(/^   It passed in the only result of other builds: 9\d % this change$/);
    expect(lines).toEqual([
      ...["main is red: unit: 2 failures", "2 new failures since #1"],
      expect.stringMatching(/^execution 2 · main · 2222222bbb · ended 20\d\d-/),
      ...[`${url}/projects/${place.project}/executions/${red}`, ""],
      ...["1. unit > case 1", "   new · bug 1", reason, ""],
      ...["2. unit > case 2", "   new · bug 2", reason],
    ]);
  });

  test("names a bug that was open before, and the commit that is proven to have broken its test", async () => {
    const own = await fresh();
    await upload(own, "task_slug=unit&branch=main&execution_key=1", junit("p"));
    const { bugReports } = await upload(own, "task_slug=unit&branch=main&execution_key=2", junit("f"));
    await upload(own, "task_slug=unit&branch=topic&execution_key=3", junit("f"));
    const hostile = (plain: string) => (plain === "Ada" ? "Ada\x1b[31m\r\n::error::" : plain);
    await insertFoundSearch(database, { project: own.project, bugReportId: bugReports[0].id, naming: hostile });
    const proof =
      /^ {3}\w{10} by Ada \[31m ::error:: broke it: it failed there 2 of 2 times, on its parent \w{10} it passed 2 of 2 times$/;
    const { lines } = await why(["--branch", "topic"], own);
    expect(lines.slice(4)).toEqual([
      "",
      "1. unit > case 0",
      expect.stringMatching(/^ {3}still failing · since \d+ \w+$/),
      '   Known bug #1 "case 0 failed"',
      expect.stringMatching(proof),
      expect.stringMatching(/^ {3}It failed in the baseline, with the same message: \d\d % not this change$/),
    ]);
    // The execution that opened the bug.
    const opening = await why([], own);
    expect(opening.lines.slice(5, 8)).toEqual(["1. unit > case 0", "   new · bug 1", expect.stringMatching(proof)]);
  });

  test("says that an unclear failure is unclear, and what tells, as an assistant hears it", async () => {
    const own = await fresh();
    await own.patch("", { gateShare: 0.01 });
    await upload(own, "task_slug=unit&branch=main&execution_key=1", junit("fp"));
    await upload(own, "task_slug=unit&branch=topic&execution_key=2", junit("fp"));
    const { code, lines } = await why(["--branch", "topic"], own);
    const reason = /^It failed in the baseline, with the same message: \d\d % not this change; a rerun tells$/;
    expect([code, lines[1]]).toEqual([1, "1 unclear failure since #1"]);
    expect(lines).toContainEqual(expect.stringMatching(/^ {3}unclear · since /));
    expect(lines.map((line) => line.trim())).toContainEqual(expect.stringMatching(reason));
    expect(await call("why_is_it_red", { branch: "topic" }, own.key)).toMatchObject({
      ...{ red: true, summary: "1 unclear" },
      gate: { pass: false, untrusted: { reasons: ["unit: 1 failure is unclear: a rerun tells"] } },
      causes: [{ blame: "unclear", blameMeans: "unclear", reason: expect.stringMatching(reason) }],
    });
  });

  test("names the first attachments of a failure, with addresses that are not cut", async () => {
    const own = await fresh();
    const attachments = ["actual.png", "diff.png", "trace.zip"].map((name) => ({ path: `out/${name}`, name }));
    const cases = [{ name: "fails", status: "failed", attachments }];
    const form = new FormData();
    form.append("file", new Blob([JSON.stringify({ passed: 0, failed: 1, skipped: 0, cases })]), "report.json");
    for (const { path } of attachments) form.append("attachment", new Blob([`text of ${path}`]), path);
    const { body: uploaded } = await own.send(form, "task_slug=e2e&branch=main&complete=true");
    const { lines } = await why([], own);
    const { causes } = await own.get(`/executions/${uploaded.executionId}/failures`);
    const [actual, diff] = causes[0].failures[0].attachments;
    const shown = [actual, diff].flatMap(({ name, url }) => [`   ${name}: out/${name} (text/plain)`, `   ${url}`]);
    expect(lines.slice(-4)).toEqual(shown);
  });

  test("exits with 0 for what is not red, and takes a key that reads", async () => {
    const { key } = await place.post("/keys", { name: "reader", scope: "read" });
    const reader = { ...place, key };
    const green = await why(["--branch", "green"], reader);
    expect([green.code, green.lines[0]]).toEqual([0, "green is green"]);
    expect(green.lines[1]).toStartWith("4 passed");
    expect((await why(["--pull-request", "7"], reader)).code).toBe(0);
    const pull = await why(["--pull-request", "8"], reader);
    expect([pull.code, pull.lines[0]]).toEqual([1, "1 new failure since #3"]);
  });

  test("prints JSON for programs", async () => {
    const { code, lines } = await why(["--json", "--pull-request", "8"], place);
    expect([code, lines.length]).toEqual([1, 1]);
    expect(JSON.parse(lines[0]!)).toMatchObject({
      ...{ red: true, headline: "1 new failure since #3", state: null, running: null },
      ...{ execution: { pullRequest: "8", verdict: "failed" }, failures: { causes: [{ failed: 1 }] } },
    });
  });

  test("exits with 3 where there is no answer, and says why", async () => {
    const missing = crypto.randomUUID();
    const refused = [
      await why(["--execution", missing], place),
      await why(["--execution", red], { project: rival.project, key: rival.key }),
    ];
    for (const { code, lines, errors } of refused)
      expect([code, lines, errors]).toEqual([3, [], "Not found, or this key has no access to it\n"]);
    const wrong = await why([], { ...place, key: "svc_proj_nonsense_key" });
    expect([wrong.code, wrong.errors]).toEqual([3, expect.stringContaining("Invalid API key")]);
    expect(wrong.errors).not.toContain("svc_proj_nonsense_key");
    const empty = await why(["--branch", "nowhere", "--json"], place);
    expect([empty.code, JSON.parse(empty.output).execution]).toEqual([3, null]);
    expect((await why(["--branch", "nowhere"], place)).lines).toEqual(["There is no execution of this branch"]);
  });

  test("exits with 2 for wrong usage", async () => {
    for (const args of [["--branch", "a", "--pull-request", "1"], ["--nope"], ["extra"]]) {
      const { code, errors } = await why(args, place);
      expect([args, code, errors]).toEqual([args, 2, expect.stringContaining('Run "assay why --help" for usage')]);
    }
    expect((await why([], place, { ASSAY_KEY: "" })).code).toBe(2);
    const help = await why(["--help"], place, { ASSAY_KEY: "" });
    expect([help.code, help.output]).toEqual([0, expect.stringContaining("Exit code: 0")]);
  });
});

describe("the lines", () => {
  const HOSTILE = "\x1b[31mred\x1b]0;title\x07\u202e ##[error]x\r\n::error::y";
  const xml = (text: string) =>
    // oxlint-disable-next-line no-control-regex
    text.replace(/[&<"]/g, (character) => `&#${character.charCodeAt(0)};`).replace(/[\x00-\x1f]/g, "");

  test("are forty at most, and hold no commands, whatever tests are called and say", async () => {
    const hostile = await fresh();
    const cases = Array.from({ length: 60 }, (_, index) => {
      const message = `${HOSTILE} ${String.fromCharCode(97 + (index % 26)).repeat(5 + index)} ${"x".repeat(100_000)}`;
      return `<testcase classname="${xml(HOSTILE)}" name="${index} ${xml(HOSTILE)}"><failure message="${xml(message)}"/></testcase>`;
    });
    const branch = encodeURIComponent(`a${HOSTILE}`);
    const report = `<testsuite>${cases.join("")}</testsuite>`;
    const run = await upload(hostile, `task_slug=unit&branch=${branch}&execution_key=${branch}`, report);
    const { code, lines, output } = await why(["--execution", run.executionId], hostile);
    expect([code, lines.length <= MAX_LINES]).toEqual([1, true]);
    expect(lines.at(-1)).toMatch(/^\d+ more causes on/);
    expect(lines.length).toBeGreaterThan(30);
    // oxlint-disable-next-line no-control-regex
    expect(output).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]|##\[|^\s*::/m);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(160);
    const json = await why(["--json", "--execution", run.executionId], hostile);
    // oxlint-disable-next-line no-control-regex
    expect(json.output.trimEnd()).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]|##/);
  });

  test("have colours on a terminal alone, and the width of that", async () => {
    const get = <T>(path: string, query: Record<string, unknown> = {}): Promise<T> =>
      place.get(`${path}?${new URLSearchParams(JSON.parse(JSON.stringify(query)))}`);
    const found = await findWhy({ get }, {}, 12);
    const plain = whyLines(found, { hasColours: false, columns: 40 });
    const coloured = whyLines(found, { hasColours: true, columns: 40 });
    expect(coloured[0]).toBe("\x1b[31mmain is red: unit: 2 failures\x1b[0m");
    // oxlint-disable-next-line no-control-regex
    expect(coloured.map((line) => line.replace(/\x1b\[\d*m/g, ""))).toEqual(plain);
    const addresses = plain.filter((line) => line.startsWith("http"));
    expect(addresses).toHaveLength(1);
    for (const line of plain) if (line !== addresses[0]) expect(line.length).toBeLessThanOrEqual(40);
  });
});
