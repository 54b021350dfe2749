import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { inSlot, openRunnerConfig, readRunnerConfig, RunnerConfigError } from "../../src/runner/config.ts";
import { createPlace, removePlace } from "../places.ts";

const read = (text: string) => readRunnerConfig(text, "/srv/shop/assay.yaml");

/** The mistakes without the part that all share. */
function mistakesIn(text: string): string[] {
  try {
    read(text);
  } catch (error) {
    expect(error).toBeInstanceOf(RunnerConfigError);
    return (error as Error).message.split("\n").map((line) => line.replace('Cannot read "/srv/shop/assay.yaml": ', ""));
  }
  throw new Error("It has been read");
}

describe("readRunnerConfig", () => {
  test("reads every field, and a task that has only a command and a report", () => {
    const { path, folder, tasks } = read(`
tasks:
  unit:
    command: |
      set -e
      npx jest --json --outputFile=report.json
    report: report.json
  "api tests":
    command: pytest --junitxml=reports/a.xml
    report: [reports/*.xml, /var/tmp/more.xml]
    format: junit
    workingDirectory: services/api
    timeoutSeconds: 900
    silenceSeconds: 60
    before: pip install -r requirements.txt
    after: ["docker compose down", "rm -rf tmp"]
    checkout: none
    retryOn: [75, 69, 75]
    rerun: pytest
    gate: new
    pass: [CI_TOKEN, LANG, CI_TOKEN]
    accept: [BROWSER, BROWSER]
`);
    expect([path, folder]).toEqual(["/srv/shop/assay.yaml", "/srv/shop"]);
    const none = { format: undefined, git: undefined, timeoutSeconds: undefined, silenceSeconds: undefined };
    const unit = {
      ...{ ...none, rerun: undefined, gate: undefined, comparesCommit: true, workingDirectory: "/srv/shop" },
      ...{ command: "set -e\nnpx jest --json --outputFile=report.json\n", report: ["report.json"] },
      ...{ before: [], after: [], retryOn: [], artifacts: [], attachments: "failed", pass: [], accept: [] },
    };
    const api = {
      ...{
        command: "pytest --junitxml=reports/a.xml",
        report: ["reports/*.xml", "/var/tmp/more.xml"],
        format: "junit",
      },
      ...{ git: undefined, workingDirectory: "/srv/shop/services/api", timeoutSeconds: 900, silenceSeconds: 60 },
      ...{ before: ["pip install -r requirements.txt"], after: ["docker compose down", "rm -rf tmp"] },
      ...{ comparesCommit: false, retryOn: [75, 69], rerun: "pytest", gate: "new" },
      ...{ artifacts: [], attachments: "failed", pass: ["CI_TOKEN", "LANG"], accept: ["BROWSER"] },
    };
    expect([...tasks] as unknown[]).toEqual([
      ["unit", unit],
      ["api tests", api],
    ]);
  });

  test("takes 2,000 tasks and no more", () => {
    const many = (count: number) =>
      `tasks:\n${Array.from({ length: count }, (_, at) => `  task-${at}: { command: a, report: r.xml }`).join("\n")}`;
    expect(read(many(2_000)).tasks.size).toBe(2_000);
    expect(mistakesIn(many(2_001))[0]).toContain('"tasks": expected at most 2000 tasks, got 2001');
  });

  test("takes a repository to check out, by its address or its path", () => {
    const { tasks } = read(`
tasks:
  unit: { command: a, report: r.xml, workingDirectory: ./packages/web/, checkout: { git: ../shop.git } }
  e2e: { command: a, report: r.xml, checkout: { git: git@example.com:shop.git, submodules: true, lfs: true, prepare: npm ci, build: [npm run build, make], keep: 5 } }
`);
    const shop = { submodules: false, lfs: false, prepare: [], build: [], keep: 2 };
    const example = { submodules: true, lfs: true, prepare: ["npm ci"], build: ["npm run build", "make"], keep: 5 };
    expect([...tasks.values()].map(({ git, workingDirectory }) => [git, workingDirectory])).toEqual([
      [{ repository: "/srv/shop.git", ...shop }, "packages/web/"],
      [{ repository: "git@example.com:shop.git", ...example }, "."],
    ]);
    const address = '"tasks.a.checkout.git": expected the address or path of a repository, got';
    for (const [checkout, mistake] of [
      ["git", '"tasks.a.checkout": expected "own", "none", or an object with "git", got "git"'],
      ["{ git: --upload-pack=x }", `${address} "--upload-pack=x"`],
      ['{ git: "ext::sh -c x" }', `${address} "ext::sh -c x"`],
    ])
      expect(mistakesIn(`tasks: { a: { command: x, report: r.xml, checkout: ${checkout} } }`)[0]).toContain(mistake!);
  });

  test("takes what several tasks share from an anchor", () => {
    const { tasks } = read(`
tasks:
  unit: &unit { command: bun test, report: a.xml, timeoutSeconds: 60 }
  slow: { <<: *unit, timeoutSeconds: 600 }
`);
    expect([...tasks.values()].map(({ command, timeoutSeconds }) => [command, timeoutSeconds])).toEqual([
      ["bun test", 60],
      ["bun test", 600],
    ]);
  });

  test("names every mistake at once, with its place", () => {
    const mistakes = mistakesIn(`
version: 1
tasks:
  unit:
    command: 5
    reprot: a.xml
    timeoutSeconds: "60"
    before: [a, ""]
    after: {}
    pass: [1A, ASSAY_KEY, OK]
    accept: [ASSAY_COMMIT]
    rerun: jset
  "": { command: a, report: b }
  api: bun test
  web: { command: a, report: [], rerun: "npx jest {file}" }
  go: { command: "", report: b, workingDirectory: "a\\0b" }
`);
    expect(mistakes).toEqual([
      'unknown field "version"',
      'unknown field "tasks.unit.reprot"',
      '"tasks.unit.command": expected a text of 1 to 32768 characters, got 5',
      'missing field "tasks.unit.report"',
      '"tasks.unit.timeoutSeconds": expected an integer from 1 to 604800, got "60"',
      '"tasks.unit.before.1": expected a text of 1 to 32768 characters, got ""',
      '"tasks.unit.after": expected a text of 1 to 32768 characters, or a list of 1 to 100 such texts, got an object',
      expect.stringMatching(/^"tasks.unit.rerun": expected one of jest, vitest, .*, or a command .*, got "jset"$/),
      '"tasks.unit.pass.0": expected a name of letters, digits and _, at most 128, not beginning with a digit, got "1A"',
      '"tasks.unit.pass.1": expected a name that does not begin with ASSAY_, which is reserved for the runner, got "ASSAY_KEY"',
      '"tasks.unit.accept.0": expected a name that does not begin with ASSAY_, which is reserved for the runner, got "ASSAY_COMMIT"',
      '"tasks.": expected a text of 1 to 200 characters as the name of a task',
      '"tasks.api": expected an object with "command" and "report", got "bun test"',
      '"tasks.web.report": expected a text of 1 to 1000 characters, or a list of 1 to 100 such texts, got a list of 0',
      expect.stringMatching(
        /^"tasks.web.rerun": expected \{files\}, .* as placeholders and not \{file\}, got "npx jest/,
      ),
      '"tasks.go.command": expected a text of 1 to 32768 characters, got ""',
      '"tasks.go.workingDirectory": expected a text without NUL and invalid characters, got "a\\u0000b"',
    ]);
  });

  test("reads which files are attached", () => {
    const { tasks } = read(
      "tasks: { unit: { command: a, report: b, artifacts: [c, 'd/{slot}/*'], attachments: all } }",
    );
    expect(tasks.get("unit")).toMatchObject({ artifacts: ["c", "d/{slot}/*"], attachments: "all" });
    expect(inSlot(tasks.get("unit")!, 2).artifacts).toEqual(["c", "d/2/*"]);
  });

  test("refuses other words for attachments", () => {
    expect(mistakesIn("tasks: { unit: { command: a, report: b, attachments: some } }")).toEqual([
      '"tasks.unit.attachments": expected "failed", "all" or "none", got "some"',
    ]);
  });

  test.each([
    ["", "it is empty"],
    ["# nothing", "it is empty"],
    ["tasks: [", "it is not valid YAML: Unexpected token"],
    ["tasks:\n\tunit: 1", "it is not valid YAML: Tab characters cannot be used as indentation"],
    ["- tasks", 'expected an object with the field "tasks", got a list of 1'],
    ["tasks: {}\n---\ntasks: {}", 'expected an object with the field "tasks", got a list of 2'],
    ["unit", 'expected an object with the field "tasks", got "unit"'],
    ["{}", 'missing field "tasks"'],
    ["tasks:", '"tasks": expected an object with a field for each task, got nothing'],
    ["tasks: {}", '"tasks": expected at least one task'],
    ["tasks: { unit: }", '"tasks.unit": expected an object with "command" and "report", got nothing'],
    [
      "__proto__: { a: 1 }\ntasks: { __proto__: { command: a, report: b, constructor: c } }",
      ['unknown field "__proto__"', 'unknown field "tasks.__proto__.constructor"'],
    ],
  ])("tells of %j what is wrong with it as a whole", (text, mistakes) => {
    expect(mistakesIn(text)).toEqual([mistakes].flat());
  });

  test("survives aliases that hold themselves, and some that grow", () => {
    expect(mistakesIn("tasks: &t { unit: *t }")).toContain('missing field "tasks.unit.command"');
    expect(mistakesIn("tasks: { unit: &u { command: *u, report: &r [*r], pass: &p [*p] } }")).toEqual([
      '"tasks.unit.command": expected a text of 1 to 32768 characters, got an object',
      '"tasks.unit.report.0": expected a text of 1 to 1000 characters, got a list of 1',
      '"tasks.unit.pass.0": expected a name of letters, digits and _, at most 128, not beginning with a digit, got a list of 1',
    ]);
    const names = "abcdefghijklmnopqrst";
    const bomb = [...names].map((name, at) => {
      const inside = at === 0 ? "x" : `*${names[at - 1]}`;
      return `  ${name}: &${name} { ${[..."0123456789"].map((key) => `k${key}: ${inside}`).join(", ")} }`;
    });
    expect(mistakesIn(`tasks:\n${bomb.join("\n")}`)).toEqual(["it is not valid YAML: Excessive aliasing"]);
    const empty = Array.from({ length: 40 }, (_, index) => `  t${index}: {}`);
    const mistakes = mistakesIn(`tasks:\n${empty.join("\n")}`);
    expect(mistakes).toHaveLength(51);
    expect(mistakes.at(-1)).toBe("There are more mistakes");
    expect(mistakesIn(`tasks: ${"[".repeat(200_000)}`)).toEqual([expect.stringContaining("it is not valid YAML: ")]);
    expect(mistakesIn(`tasks: ${" ".repeat(1_100_000)}`)).toEqual(["it is larger than 1 MiB"]);
  });
});

test("a file that is missing is named, and where it was looked for", async () => {
  const place = createPlace("config");
  await expect(openRunnerConfig("assay.yaml", place)).rejects.toThrow(
    `Cannot read "assay.yaml": the file does not exist in "${place}"; it defines the commands of the tasks`,
  );
  await expect(openRunnerConfig(place, "/")).rejects.toThrow(`Cannot read "${place}": `);
  await Bun.write(join(place, "assay.yaml"), "tasks: { unit: { command: a, report: b } }");
  expect((await openRunnerConfig("assay.yaml", place)).tasks.get("unit")?.workingDirectory).toBe(place);
  await removePlace(place);
});
