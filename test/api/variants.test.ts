/** Variants of a task: uploads with different tags are different runs. */

import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness, junit } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

type Query = Record<string, string | string[]>;

function toSearch(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, one]),
  );
  return String(new URLSearchParams(pairs));
}

const post = (letters: string, query: Query) =>
  own.call("POST", `/test-runs?${toSearch({ task_slug: "e2e", execution_key: "1", ...query })}`, junit(letters));

async function upload(letters: string, query: Query) {
  const { status, body } = await post(letters, query);
  expect(body).not.toHaveProperty("error");
  expect([200, 201]).toContain(status);
  return body;
}

const WEBKIT = { tag: "browser:webkit" };
const CHROMIUM = { tag: "browser:chromium" };

describe("uploads with different tags", () => {
  test("are different runs: a pass in one variant does not make up for a failure in another one", async () => {
    const failed = await upload("fp", WEBKIT);
    const passed = await upload("pp", { ...CHROMIUM, complete: "true" });
    expect(passed.executionId).toBe(failed.executionId);
    expect(failed).toMatchObject({ taskSlug: "e2e [browser:webkit]", tags: ["browser:webkit"], verdict: "failed" });
    expect(passed).toMatchObject({ taskSlug: "e2e [browser:chromium]", attempt: 1, flaky: 0, verdict: "passed" });
    const execution = await own.get(`/executions/${failed.executionId}`);
    expect(execution).toMatchObject({ status: "failed", verdict: "failed", failed: 1, passed: 3, flaky: 0 });
    expect(execution.tasks.map(({ slug, tags }: any) => [slug, tags])).toEqual([
      ["e2e [browser:webkit]", ["browser:webkit"]],
      ["e2e [browser:chromium]", ["browser:chromium"]],
    ]);
  });

  test("and one without tags are three runs", async () => {
    await upload("f", WEBKIT);
    await upload("p", CHROMIUM);
    const { executionId } = await upload("p", { complete: "true" });
    const { tasks, status } = await own.get(`/executions/${executionId}`);
    expect(tasks).toHaveLength(3);
    expect(status).toBe("failed");
  });

  test("fail a gate as long as one of them fails", async () => {
    await upload("p", { ...WEBKIT, branch: "main", execution_key: "main", complete: "true" });
    await upload("p", { ...CHROMIUM, branch: "topic" });
    const { executionId } = await upload("f", { ...WEBKIT, branch: "topic", complete: "true" });
    const verdict = await own.get(`/executions/${executionId}/verdict?gate=new`);
    expect(verdict).toMatchObject({ pass: false });
    expect((await own.get(`/executions/${executionId}/verdict?gate=new&task_slug=e2e`)).pass).toBe(false);
  });

  test("are compared with the same variant of the baseline: a failure in another one explains nothing", async () => {
    await upload("fp", { ...WEBKIT, branch: "main", execution_key: "main" });
    await upload("pp", { ...CHROMIUM, branch: "main", execution_key: "main", complete: "true" });
    const webkit = await upload("fp", { ...WEBKIT, branch: "topic" });
    const chromium = await upload("fp", { ...CHROMIUM, branch: "topic" });
    expect(webkit).toMatchObject({ counts: { stillFailing: 1, newFailures: 0 } });
    expect(chromium).toMatchObject({ counts: { stillFailing: 0, newFailures: 1 } });
    const gate = await own.get(`/executions/${chromium.executionId}/verdict?gate=new`);
    expect(gate.pass).toBe(false);
  });

  test("at the same moment, in any order, come to the same", async () => {
    const variants = ["chromium", "firefox", "webkit", "edge"].flatMap((browser) =>
      ["linux", "macos", "windows"].map((os) => ({ tag: [`browser:${browser}`, `os:${os}`] })),
    );
    const send = (order: typeof variants, execution_key: string) =>
      Promise.all(
        order.flatMap((query) => {
          const fails = query.tag.includes("browser:webkit");
          // The two attempts of a variant meet each other as well as those of the others.
          return [
            upload(fails ? "fpp" : "ppp", { ...query, execution_key }),
            upload("pps", { ...query, execution_key }),
          ];
        }),
      );
    const states = [];
    for (const [execution_key, order] of Object.entries({ a: variants, b: variants.toReversed() })) {
      const [{ executionId }] = (await send(order, execution_key)) as [any];
      const { tasks } = await own.get(`/executions/${executionId}`);
      states.push(tasks.map(({ slug, attempt }: any) => [slug, attempt]).sort());
    }
    expect(states[0]).toHaveLength(12);
    expect(states[0].every(([, attempt]: [string, number]) => attempt === 2)).toBe(true);
    expect(states[1]).toEqual(states[0]);
  });
});

describe("uploads with the same tags", () => {
  test("are attempts of one run, in whatever order and however they are written", async () => {
    await upload("fp", { tag: ["os:linux", "browser:webkit"] });
    const retried = await upload("pp", { tag: "browser:webkit, os:linux,,browser:webkit" });
    expect(retried).toMatchObject({
      taskSlug: "e2e [browser:webkit, os:linux]",
      tags: ["browser:webkit", "os:linux"],
      ...{ attempt: 2, flaky: 1, verdict: "passed" },
    });
    const named = await upload("pf", { task_slug: "e2e [browser:webkit, os:linux]" });
    expect(named).toMatchObject({ attempt: 3, tags: ["browser:webkit", "os:linux"] });
  });

  test("may be form fields", async () => {
    const form = new FormData();
    for (const tag of ["os:windows", "browser:edge"]) form.append("tag", tag);
    form.set("task_slug", "e2e");
    form.set("report", new File([junit("p")], "report.xml"));
    const { status, body } = await own.call("POST", "/test-runs", form as never);
    expect(status).toBe(201);
    expect(body.tags).toEqual(["browser:edge", "os:windows"]);
  });

  test("of several shards are complete when all shards are in", async () => {
    await upload("p", { ...WEBKIT, shard: "1/2" });
    await upload("p", { ...CHROMIUM, shard: "2/2" });
    const webkit = await upload("p", { ...WEBKIT, shard: "2/2" });
    expect(webkit).toMatchObject({ arrivedShards: [1, 2], missingShards: [], status: "passed" });
    const path = `/executions/${webkit.executionId}/test-runs/${encodeURIComponent("e2e [browser:chromium]")}`;
    expect(await own.get(path)).toMatchObject({ arrivedShards: [2], missingShards: [1], tags: ["browser:chromium"] });
  });

  test("are expected where an execution declares the variant", async () => {
    const tasks = ["e2e [browser:chromium]", "e2e [browser:webkit]"];
    await own.post("/executions", { key: "1", tasks });
    const { executionId } = await upload("p", WEBKIT);
    expect(await own.get(`/executions/${executionId}`)).toMatchObject({ status: "running" });
    await upload("p", CHROMIUM);
    expect(await own.get(`/executions/${executionId}`)).toMatchObject({ status: "passed" });
  });
});

describe("tags that cannot be read", () => {
  test.each([
    ["webkit", "expected a tag such as browser:webkit"],
    [`${"k".repeat(33)}:v`, "expected a tag such as browser:webkit"],
    [`k:${"v".repeat(65)}`, "expected a tag such as browser:webkit"],
    ["k:a\nb", "expected a tag such as browser:webkit"],
    ["os:linux,os:windows", "expected one value for each key"],
    [Array.from("abcdefghi", (letter) => `${letter}:1`).join(","), "expected at most 8 tags"],
  ])("are refused: %p", async (tag, message) => {
    const { status, body } = await post("p", { tag });
    expect(status).toBe(400);
    expect(body.error.message).toStartWith(`Cannot read "tag": ${message}`);
    expect((await own.get("/executions")).data).toEqual([]);
  });

  test("are refused if they and the task are too long, or the task has some already", async () => {
    const long = await post("p", { tag: ["a", "b", "c"].map((one) => `${one}:${"v".repeat(64)}`) });
    expect(long).toMatchObject({ status: 400 });
    expect(long.body.error.message).toContain("at most 200 characters together, got 208");
    const twice = await post("p", { task_slug: "e2e [os:linux]", ...WEBKIT });
    expect(twice.body.error.message).toBe('Cannot read "tag": the task "e2e [os:linux]" already has the tags os:linux');
    expect((await own.get("/executions")).data).toEqual([]);
  });
});

describe("a failure in some variants only", () => {
  const failuresOf = async (executionId: string) =>
    (await own.get(`/executions/${executionId}/failures`)).causes.flatMap(({ failures }: any) => failures);

  test("says with which tags, in the answer and in the list of failures", async () => {
    await upload("ppp", CHROMIUM);
    const answer = await upload("fpp", WEBKIT);
    expect(answer.newFailures).toMatchObject([{ taskSlug: "e2e [browser:webkit]", onlyWith: ["browser:webkit"] }]);
    expect(await failuresOf(answer.executionId)).toMatchObject([{ onlyWith: ["browser:webkit"] }]);
    // A variant that comes later may disagree.
    const firefox = await upload("fps", { tag: "browser:firefox" });
    expect(firefox.newFailures[0]).not.toHaveProperty("onlyWith");
    expect((await failuresOf(answer.executionId)).map(({ onlyWith }: any) => onlyWith)).toEqual([[], []]);
  });

  test("says nothing if the test did not run, or was skipped, in another variant", async () => {
    await upload("p", CHROMIUM);
    const { executionId } = await upload("pff", WEBKIT);
    await upload("pps", { tag: "browser:firefox" });
    expect((await failuresOf(executionId)).map(({ onlyWith }: any) => onlyWith)).toEqual([[], []]);
  });

  test("says it in an untrusted execution too", async () => {
    const untrusted = { untrusted: "true", branch: "alice:topic" };
    await upload("pp", { ...CHROMIUM, ...untrusted });
    const { executionId } = await upload("fp", { ...WEBKIT, ...untrusted });
    expect(await failuresOf(executionId)).toMatchObject([{ onlyWith: ["browser:webkit"] }]);
  });

  test("is not flaky, however often the others pass on the same commit, and is broken in its variant", async () => {
    for (let build = 0; build < 6; build++) {
      const where = { branch: "main", commit: "abcdef0", execution_key: String(build) };
      await upload("fp", { ...WEBKIT, ...where });
      await upload("pp", { ...CHROMIUM, ...where, complete: "true" });
    }
    const { data } = await own.get("/test-cases");
    expect(data.map(({ tags, name, health, flakeRate }: any) => [tags[0], name, health, flakeRate])).toEqual([
      ["browser:webkit", data[0].name, "broken", 0],
      ["browser:webkit", data[1].name, "healthy", 0],
      ["browser:chromium", data[0].name, "healthy", 0],
      ["browser:chromium", data[1].name, "healthy", 0],
    ]);
    const bugs = (await own.get("/bug-reports")).data;
    expect(bugs).toMatchObject([{ status: "open", taskSlugs: ["e2e [browser:webkit]"] }]);
    const detail = await own.get(`/test-cases/${data[0].id}`);
    expect(detail.variants).toMatchObject([
      { taskSlug: "e2e [browser:chromium]", testCaseId: data[2].id, health: "healthy", passed: 6, failed: 0 },
      { taskSlug: "e2e [browser:webkit]", testCaseId: data[0].id, health: "broken", passed: 0, failed: 6 },
    ]);
    expect(detail.byTag).toEqual([
      { tag: "browser:chromium", passed: 6, failed: 0 },
      { tag: "browser:webkit", passed: 0, failed: 6 },
    ]);
  });

  test("in every variant joins one bug report", async () => {
    await upload("f", { ...WEBKIT, branch: "main" });
    await upload("f", { ...CHROMIUM, branch: "main", complete: "true" });
    const { data } = await own.get("/bug-reports");
    expect(data).toHaveLength(1);
    expect(data[0].taskSlugs.sort()).toEqual(["e2e [browser:chromium]", "e2e [browser:webkit]"]);
  });
});

describe("the filter by tag", () => {
  beforeEach(async () => {
    await upload("p", { tag: ["browser:webkit", "os:linux"], execution_key: "1" });
    await upload("p", { tag: ["browser:webkit", "os:macos"], execution_key: "2" });
    await upload("p", { tag: "browser:webkit2", execution_key: "3" });
    await upload("p", { task_slug: "unit", execution_key: "4" });
  });

  test.each([
    [["browser:webkit"], ["1", "2"]],
    [["browser:webkit", "os:macos"], ["2"]],
    [["browser:webkit2"], ["3"]],
    [["browser:firefox"], []],
  ])("of executions and test cases: %p", async (tag, keys) => {
    const executions = (await own.get(`/executions?${toSearch({ tag })}`)).data;
    expect(executions.map((one: any) => one.key).sort()).toEqual(keys);
    for (const sort of [{}, { sort: "lastRunAt" }] as Query[]) {
      const cases = (await own.get(`/test-cases?${toSearch({ tag, ...sort })}`)).data;
      expect(cases).toHaveLength(keys.length);
      expect(cases.every(({ tags }: any) => tag.every((one) => tags.includes(one)))).toBe(true);
    }
  });

  test("refuses what is no tag", async () => {
    const { status, body } = await own.call("GET", "/executions?tag=webkit");
    expect(status).toBe(400);
    expect(body.error.message).toStartWith('Cannot read "tag": expected a tag such as browser:webkit');
  });
});
