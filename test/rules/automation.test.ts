import { describe, expect, test } from "bun:test";
import { type EventFacts, meets, toFacts } from "../../src/rules/automation.ts";
import type { Conditions } from "../../src/schema/automations.ts";
import type { EventData } from "../../src/schema/events.ts";

const FACTS: EventFacts = {
  ...{ projectId: "p1", branch: "release/1", environment: "staging" },
  ...{ taskSlugs: ["unit", "e2e"], owners: ["@cart", "@pay"], failed: 3, severity: "major" },
};

/** Those of an event that says nothing. */
const NONE: EventFacts = {
  ...{ projectId: null, branch: null, environment: null, taskSlugs: [], owners: [], failed: 0, severity: null },
};

describe("conditions", () => {
  test.each<[object, boolean, string]>([
    [{}, true, "No conditions to match"],
    [{ projects: ["p1"] }, true, "The project is one of them"],
    [{ projects: ["p2", "p3"] }, false, "It is not about one of the 2 projects"],
    [{ branches: ["release/*"] }, true, 'The branch "release/1" matches "release/*"'],
    [{ branches: ["main"] }, false, 'The branch "release/1" matches none of "main"'],
    [{ branches: ["**", "!release/*"] }, false, 'The branch "release/1" is excluded by "!release/*"'],
    [{ branches: ["!release/*", "**"] }, true, 'The branch "release/1" matches "**"'],
    [{ environments: ["staging"] }, true, 'The environment is "staging"'],
    [{ environments: ["production"] }, false, 'The environment "staging" is none of "production"'],
    [{ taskSlugs: ["e2e"] }, true, 'It is about the task "e2e"'],
    [{ taskSlugs: ["lint"] }, false, 'It is about none of the tasks "lint"'],
    [{ owners: ["@shop", "@pay"] }, true, 'It belongs to "@pay"'],
    [{ owners: ["@shop"] }, false, 'Nothing in it belongs to "@shop"'],
    [{ minFailed: 3 }, true, "3 failed, and it takes 3"],
    [{ minFailed: 4 }, false, "3 failed, and it takes 4"],
    [{ severity: ["minor", "major"] }, true, 'The severity is "major"'],
    [{ severity: ["minor"] }, false, 'The severity "major" is none of "minor"'],
    [{ minFailed: 3, environments: ["x"] }, false, 'The environment "staging" is none of "x"'],
    [{ taskSlugs: ["unit"], minFailed: 1 }, true, 'It is about the task "unit", 3 failed, and it takes 1'],
  ])("%j are met: %p", (conditions, met, reason) => {
    expect(meets(conditions as Conditions, FACTS)).toEqual({ met, reason });
  });

  test.each<object>([
    { projects: ["p1"] },
    { branches: ["**"] },
    { environments: ["staging"] },
    { severity: ["major"] },
    { owners: ["@cart"] },
  ])("%j are not met by an event that says nothing of it", (conditions) => {
    expect(meets(conditions as Conditions, NONE).met).toBe(false);
  });
});

test("a condition on a task includes its variants", () => {
  const facts = { ...NONE, taskSlugs: ["e2e [browser:webkit]"] };
  expect(meets({ taskSlugs: ["e2e"] }, facts).met).toBe(true);
  expect(meets({ taskSlugs: ["e2e [browser:edge]"] }, facts).met).toBe(false);
});

describe("the facts of an event", () => {
  const factsOf = (data: object, defaultBranch: string | null = "main") =>
    toFacts(data as EventData, "p1", defaultBranch);
  const execution = { branch: "main", pullRequest: null, environment: "ci", failed: 2, tasks: [{ slug: "a" }] };

  test.each<[string, object, string | null]>([
    ["an execution's own", { execution: { ...execution, branch: "feat" } }, "feat"],
    ["the default one where the execution names none", { execution: { ...execution, branch: null } }, "main"],
    ["a fork's own line", { execution: { ...execution, pullRequest: "12" } }, "pull/12"],
    ["a bug report's", { bugReport: { branch: "release/1", taskSlugs: [] } }, "release/1"],
    ["the default one where nothing names a branch", {}, "main"],
  ])("the branch is %s", (_, data, branch) => {
    expect(factsOf(data).branch).toBe(branch);
  });

  test("are those of a test run before those of its execution", () => {
    expect(factsOf({ execution })).toMatchObject({ taskSlugs: ["a"], failed: 2, environment: "ci" });
    const testRun = { taskSlug: "unit", failed: 1 };
    expect(factsOf({ execution, testRun })).toMatchObject({ taskSlugs: ["unit"], failed: 1 });
    expect(factsOf({ bugReport: { taskSlugs: ["x", "y"], severity: "minor", branch: null } })).toMatchObject({
      ...{ taskSlugs: ["x", "y"], severity: "minor", failed: 0 },
    });
    expect(factsOf({ bugReport: { taskSlugs: [], owners: ["@cart"] } })).toMatchObject({ owners: ["@cart"] });
    expect(factsOf({ testCase: { taskSlug: "x", owners: ["@pay"] } })).toMatchObject({ owners: ["@pay"] });
    expect(factsOf({}, null)).toEqual({ ...NONE, projectId: "p1" });
  });
});
