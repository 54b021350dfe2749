import { beforeEach, describe, expect, test } from "bun:test";
import { countAll } from "../../src/work/count.ts";
import { createAsking } from "../asking.ts";
import { createAutomating } from "../automating.ts";
import { createHarness, junit } from "../harness.ts";

const harness = await createHarness();
const { ask, acme, addProject, database } = harness;
const { call, deleteAutomations, handle, runsOf, ...automating } = createAutomating(harness, acme);
let project: ReturnType<typeof createAsking>;
let build = 0;

beforeEach(async () => {
  await deleteAutomations();
  project = createAsking(ask, await addProject(acme));
});

const quarantine = (limits: object = {}) =>
  automate("Quarantine flaky tests", "test_case.became_flaky", { type: "quarantine", ...limits });
const release = () => automate("Release", "test_case.recovered", { type: "release" });

const automate = (name: string, event: string, action: object) =>
  automating.automate({ name, trigger: { event }, conditions: { projects: [project.project] }, actions: [action] });

/** The results of the action of each run, oldest first. */
const resultsOf = async (id: string) => (await runsOf(id)).map(({ actions }: any) => actions[0]).reverse();

const upload = async (body: string, parameters: Record<string, string> = {}): Promise<any> =>
  (await project.send(body, { task_slug: "unit", branch: "main", ...parameters })).body;

/** A letter for each test; those that fail pass when they are repeated. */
async function flake(letters: string, commit = "1a2b3c4d"): Promise<void> {
  const parameters = { execution_key: `b${++build}`, commit };
  await upload(junit(letters), parameters);
  await upload(junit(letters.replaceAll("f", "p")), parameters);
  await settle();
}

async function settle(): Promise<void> {
  await countAll(database);
  await handle();
}

const cases = (query = "") => project.list(`/test-cases?limit=100${query}`);
const quarantined = async () => (await cases("&quarantined=true")).map(({ name }: any) => name);
const change = (id: string, body: object) => project.call("PATCH", `/test-cases/${id}`, body);

describe("quarantine", () => {
  test("states its evidence, ends after its days, and stands in the audit log", async () => {
    const id = await quarantine({ maxShare: 100, days: 7 });
    await flake("fp");
    const [test] = await cases();
    const { reason, until, createdAt, automation } = test.quarantine;
    expect([reason, automation]).toEqual([
      "Flaky: failed 1 of the last 1 result, passed on retry at 1a2b3c4",
      "Quarantine flaky tests",
    ]);
    expect(Date.parse(until) - Date.parse(createdAt)).toBe(7 * 86_400_000);
    expect(await quarantined()).toEqual(["case 0"]);
    expect(await resultsOf(id)).toEqual([
      { type: "quarantine", status: "done", reason: `Quarantined the test for 7 days. ${reason}`, testCaseId: test.id },
    ]);
    const [entry] = await database.pool`select actor, action, subject from audit_entry order by id desc limit 1`;
    expect({ ...entry }).toEqual({
      actor: "automation Quarantine flaky tests",
      action: "test_case.changed",
      subject: test.id,
    });
    expect((await upload(junit("fp"), { branch: "other" })).verdict).toBe("passed");
  });

  test("is of the very test, not of one with the same name in another file or task", async () => {
    await quarantine({ maxShare: 100 });
    const report = (letter: string) =>
      ["a.test.ts", "b.test.ts"]
        .map((file, index) => {
          const failure = index === 0 && letter === "f" ? "<failure>x</failure>" : "";
          return `<testsuite name="s"><testcase name="adds" file="${file}">${failure}</testcase></testsuite>`;
        })
        .join("");
    const parameters = { execution_key: "same", commit: "1a2b3c4d" };
    await upload(`<testsuites>${report("p")}</testsuites>`, { task_slug: "e2e" });
    await upload(`<testsuites>${report("f")}</testsuites>`, parameters);
    await upload(`<testsuites>${report("p")}</testsuites>`, parameters);
    await settle();
    const found = await cases("&quarantined=true");
    expect(found.map(({ name, file, taskSlug }: any) => [name, file, taskSlug])).toEqual([
      ["adds", "a.test.ts", "unit"],
    ]);
    expect(await cases("&quarantined=false")).toHaveLength(3);
  });

  test("a test that breaks is released", async () => {
    await quarantine({ maxShare: 100 });
    for (let run = 0; run < 10; run++) await upload(junit("pp"), { commit: `a${run}` });
    await flake("pf");
    expect(await quarantined()).toEqual(["case 1"]);
    for (let run = 0; run < 5; run++) await upload(junit("pf"), { commit: `d${run}` });
    await settle();
    expect(await quarantined()).toEqual([]);
    const [entry] = await database.pool`select details from audit_entry order by id desc limit 1`;
    expect(entry!["details"].reason).toBe("Broken on the default branch");
  });

  test("a test that broke between the event and the action is left alone", async () => {
    const id = await quarantine({ maxShare: 100 });
    for (let run = 0; run < 10; run++) await upload(junit("pp"), { commit: `a${run}` });
    const parameters = { execution_key: "late", commit: "1a2b3c4d" };
    await upload(junit("fp"), parameters);
    await upload(junit("pp"), parameters);
    for (let run = 0; run < 5; run++) await upload(junit("fp"), { commit: `c${run}` });
    await settle();
    expect(await resultsOf(id)).toMatchObject([
      { status: "skipped", reason: "Not quarantined: the test is broken on the default branch" },
    ]);
    expect(await quarantined()).toEqual([]);
  });

  test("a quarantine that a person began stays as it is", async () => {
    const id = await quarantine({ maxShare: 100 });
    const released = await release();
    await upload(junit("pp"));
    const [test] = await cases();
    await change(test.id, { quarantine: { reason: "#12" } });
    await flake("fp");
    expect(await resultsOf(id)).toMatchObject([
      { status: "skipped", reason: "A person has quarantined the test already" },
    ]);
    for (let run = 0; run < 40; run++) await upload(junit("pp"));
    await settle();
    expect(await resultsOf(released)).toMatchObject([
      { status: "skipped", reason: "A person has quarantined the test, and only a person releases it" },
    ]);
    expect((await cases())[0].quarantine).toMatchObject({ reason: "#12", until: null, automation: null });
  });

  test("a quarantine that a person changes becomes theirs", async () => {
    await quarantine({ maxShare: 100 });
    await flake("fp");
    const [test] = await cases();
    const { reason, until } = test.quarantine;
    await change(test.id, { quarantine: { reason, until } });
    expect((await cases())[0].quarantine).toMatchObject({ reason, until, automation: null });
  });

  test("the caps hold when several servers act at the same moment", async () => {
    const id = await quarantine({ maxTests: 3, maxShare: 100 });
    const parameters = { execution_key: "many", commit: "1a2b3c4d" };
    // Six at once, of which fewer than 3 % would be an incident of the machine.
    const passing = "p".repeat(300);
    await upload(junit(`ffff${passing}`), parameters);
    await upload(junit(`pppp${passing}`), parameters);
    await countAll(database);
    await Promise.all(Array.from({ length: 4 }, handle));
    expect(await quarantined()).toHaveLength(3);
    const results = await resultsOf(id);
    expect(results.map(({ status }: any) => status).sort()).toEqual(["done", "done", "done", "skipped"]);
    expect(results.find(({ status }: any) => status === "skipped").reason).toBe(
      "Cap reached: 3 tests are quarantined automatically, and at most 3 may be",
    );
  });

  test("at most one percent of the tests on the default branch by default", async () => {
    const id = await quarantine();
    await flake(`f${"p".repeat(98)}`);
    expect(await resultsOf(id)).toMatchObject([
      { status: "skipped", reason: "Cap reached: 1 of 99 tests on the default branch would be more than 1 %" },
    ]);
    await flake(`pf${"p".repeat(98)}`);
    expect((await resultsOf(id)).map(({ status }: any) => status)).toEqual(["skipped", "done"]);
    expect(await quarantined()).toEqual(["case 1"]);
  });

  test("tests of other branches and former names of tests do not count, and a run that breaks off does not shrink the suite", async () => {
    const id = await quarantine({ maxShare: 2 });
    const old = "p".repeat(60);
    await upload(junit(old, "former name"));
    await upload(junit(`p${"p".repeat(48)}`, "only there"), { branch: "topic", task_slug: "e2e" });
    for (let run = 0; run < 20; run++) await upload(junit("p".repeat(49)));
    for (let again = 0; again < 2; again++) await flake(`f${"p".repeat(48)}`, `${again}a2b3c4d`);
    expect((await resultsOf(id)).at(-1).reason).toBe(
      "Cap reached: 1 of 49 tests on the default branch would be more than 2 %",
    );
    await upload(junit("p".repeat(50)));
    await upload(junit("p"));
    for (let again = 0; again < 2; again++) await flake(`pf${"p".repeat(47)}`, `${again}b2b3c4d`);
    expect(await quarantined()).toEqual(["case 1"]);
  });

  test("a dry run says what would happen and changes nothing", async () => {
    const id = await quarantine({ maxShare: 100 });
    await call("PATCH", `/automations/${id}`, { enabled: false });
    await flake("fp");
    const { body } = await call("POST", `/automations/${id}/run`, { dryRun: true });
    expect(body.actions).toMatchObject([
      {
        type: "quarantine",
        status: "planned",
        reason: expect.stringContaining("Would quarantine the test for 30 days"),
      },
    ]);
    expect(await quarantined()).toEqual([]);
  });

  test("an ended quarantine can begin again, and does not count", async () => {
    const id = await quarantine({ maxShare: 100, maxTests: 1 });
    await flake("fp");
    expect(await quarantined()).toEqual(["case 0"]);
    await database.pool`update quarantine set until = now() where project_id = ${project.project}`;
    expect(await quarantined()).toEqual([]);
    // With the last event, as if the test had become flaky again.
    await call("POST", `/automations/${id}/run`, {});
    expect((await resultsOf(id)).map(({ status }: any) => status)).toEqual(["done", "done"]);
    expect(await quarantined()).toEqual(["case 0"]);
  });
});

describe("release", () => {
  test("ends the quarantine of a test that has recovered", async () => {
    await quarantine({ maxShare: 100 });
    const id = await release();
    await flake("fp");
    for (let run = 0; run < 300 && (await quarantined()).length > 0; run += 10) {
      for (let repeat = 0; repeat < 10; repeat++) await upload(junit("pp"));
      await settle();
    }
    expect(await quarantined()).toEqual([]);
    expect((await cases())[0].health).toBe("healthy");
    expect(await resultsOf(id)).toMatchObject([
      { status: "done", reason: "Released the test: it has recovered", testCaseId: (await cases())[0].id },
    ]);
  });
});

test("the actions are refused with other events, and beyond their limits", async () => {
  const message = async (event: string, action: object) =>
    (await call("POST", "/automations", { name: "x", trigger: { event }, actions: [action] })).body.error.message;
  expect(await message("test_case.recovered", { type: "quarantine" })).toBe(
    `Cannot use "actions.0" with "test_case.recovered": quarantine`,
  );
  expect(await message("test_case.became_flaky", { type: "release" })).toContain("release");
  expect(await message("test_case.became_flaky", { type: "quarantine", days: 31 })).toBe(
    `Cannot read "actions.0.days": expected an integer from 1 to 30, got 31`,
  );
  expect(await message("test_case.became_flaky", { type: "quarantine", maxShare: 0 })).toBe(
    `Cannot read "actions.0.maxShare": expected a number from 0.1 to 100, got 0`,
  );
});
