/** `assay split`, as the jobs of a build call it. */

import { describe, expect, spyOn, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { hashShard, planPath } from "../../src/rules/plan.ts";
import { createAsking } from "../asking.ts";
import { createFolder, run, type Variables, variablesOf } from "../commands.ts";
import { createHarness } from "../harness.ts";
import { createReceiver } from "../receiver.ts";

const { ask, acme, url } = await createHarness();
const project = createAsking(ask, acme);
const server = variablesOf(url, acme);

const sources = ["a", "b", "c", "d", "e", "new1", "new2", "[id]", "deep/index"].map((name) => `src/${name}.test.ts`);
const files = Object.fromEntries([...sources, "node_modules/x/src/z.test.ts"].map((path) => [path, ""]));
const place = createFolder(files);

type Running = { environment?: Variables; stdin?: string; cwd?: string };

async function split(args: string[], { environment = server, stdin, cwd = place }: Running = {}) {
  const ended = await run(["split", ...args], { env: environment, stdin, cwd });
  return { ...ended, lines: ended.output.split("\n").slice(0, -1) };
}

/** The same for each shard, at once. */
const splitAll = (shards: string[], args: string[], running: Running = {}) =>
  Promise.all(shards.map((shard) => split(["--shard", shard, ...args], running)));
const HALVES = ["1/2", "2/2"];

async function upload(task: string, seconds: Record<string, number>, more: Record<string, string> = {}) {
  const cases = Object.entries(seconds).map(([file, time]) => `<testcase name="x" file="${file}" time="${time}"/>`);
  const { status, body } = await project.send(`<testsuite>${cases.join("")}</testsuite>`, { task_slug: task, ...more });
  expect(status).toBe(201);
  return body;
}

const known = { "src/a.test.ts": 5, "src/b.test.ts": 4, "src/c.test.ts": 3, "src/d.test.ts": 2, "src/gone.test.ts": 1 };
await upload("unit", known);

const github = (run: string) => ({
  ...{ ...server, GITHUB_ACTIONS: "true", GITHUB_RUN_ID: run, GITHUB_JOB: "unit", GITHUB_REF_NAME: "topic" },
  ...{ GITHUB_SERVER_URL: "https://github.example", GITHUB_REPOSITORY: "acme/web" },
  GITHUB_SHA: "0123456789abcdef0123456789abcdef01234567",
});

describe("assay split", () => {
  test("gives every file to one shard: by its duration, a new one as long as the others, not at all where it is gone", async () => {
    const [one, two] = await splitAll(HALVES, ["--execution-key", "7", "--task", "unit", "src/*.test.ts"]);
    expect([one!.code, two!.code]).toEqual([0, 0]);
    const files = ["[id]", "a", "b", "c", "d", "e", "new1", "new2"].map((name) => `src/${name}.test.ts`);
    expect([...one!.lines, ...two!.lines].sort()).toEqual(files);
    expect(one!.lines.filter((file) => file in known)).toEqual(["src/a.test.ts", "src/d.test.ts"]);
    expect([one!.lines.length, two!.lines.length]).toEqual([4, 4]);
    expect(two!.errors).toBe('Shard 2/2 of "unit": 4 of 8 files, 14 s of 28 s\n');
  });

  test("finds the execution of the build that CI tells, which the uploads of the shards join", async () => {
    const answers = await splitAll(HALVES, ["src/a.test.ts"], { environment: github("77") });
    expect(answers.map(({ code }) => code)).toEqual([0, 0]);
    const { GITHUB_SHA: commit } = github("77");
    const runs = [];
    for (const shard of HALVES)
      runs.push(await upload("unit", { "src/a.test.ts": 5 }, { execution_key: "77", commit, branch: "topic", shard }));
    const executions = await project.list("/executions?key=77");
    expect(executions.map(({ id }) => id)).toEqual([runs[0].executionId]);
    expect(runs[1].executionId).toBe(runs[0].executionId);
    const other = ["--commit", "fedcba9876543210", "--task", "", "src/a.test.ts"];
    expect((await split(["--shard", "1/2", ...other], { environment: github("77") })).errors).toContain(`of "unit"`);
    const commits = (await project.list("/executions?key=77")).map(({ commit }) => commit);
    expect(commits).toEqual(["fedcba9876543210", commit]);
    const buildUrl = "https://github.example/acme/web/actions/runs/77";
    expect(executions[0]).toMatchObject({ branch: "topic", buildUrl, total: 1 });
  });

  test("splits a variant by its own durations", async () => {
    const variant = { "src/a.test.ts": 1, "src/b.test.ts": 9, "src/c.test.ts": 1 };
    await upload("unit", variant, { tag: "os:linux,browser:webkit", execution_key: "earlier" });
    const tags = ["--tag", "os:linux", "--tag", "browser:webkit"];
    const args = ["--execution-key", "tags", "--task", "unit", ...tags, ...Object.keys(variant)];
    const [one, two] = await splitAll(HALVES, args);
    expect(one).toMatchObject({ code: 0, lines: ["src/b.test.ts"] });
    expect(one!.errors).toBe('Shard 1/2 of "unit [browser:webkit, os:linux]": 1 of 3 files, 9.0 s of 11 s\n');
    expect(two).toMatchObject({ code: 0, lines: ["src/a.test.ts", "src/c.test.ts"] });
  });

  test("takes paths as they come: from a folder, absolute, from standard input, a file that is called like a glob", async () => {
    const all = ["--execution-key", "8", "--task", "unit"];
    const spelled = ["./src/a.test.ts", join(place, "src/b.test.ts"), "src/[id].test.ts", "src/a.test.ts"];
    expect((await split(["--shard", "1/1", ...all, ...spelled])).lines).toEqual(spelled.slice(0, 3));
    const from = { stdin: "a.test.ts\r\n\nb.test.ts\nnew1.test.ts\n", cwd: join(place, "src") };
    const shards = await splitAll(HALVES, [...all, "-"], from);
    const old = shards.map(({ lines }) => lines.filter((file) => file !== "new1.test.ts"));
    expect(old).toEqual([["a.test.ts"], ["b.test.ts"]]);
    const none = await split(["--shard", "1/1", ...all, "**/z.test.ts"]);
    expect(none.errors).toBe(`No file matches "**/z.test.ts"\n`);
  });

  test("prints what the plan knows where no files are given, and one line of JSON for programs", async () => {
    const { lines, errors } = await split(["--shard", "1/2", "--execution-key", "70", "--task", "unit", "--json"]);
    const files = ["src/a.test.ts", "src/d.test.ts", "src/gone.test.ts"];
    expect(lines.map((line) => JSON.parse(line))).toEqual([{ shard: "1/2", task: "unit", files }]);
    expect(errors).toStartWith("No FILES are given: new files run in no shard\n");
  });

  describe("without FILES", () => {
    const evil = createFolder({ "evil.test.ts": "" });
    const args = (shard: string, ...more: string[]) => ["--shard", shard, "--execution-key", "7", ...more];
    const hostile = [
      "--globalSetup=/tmp/evil.js",
      "../../../etc/passwd",
      "src/../../evil.js",
      "/etc/passwd",
      "C:/evil.js",
      "https://evil.test/x.js",
      "src/a.test.ts&#10;--globalSetup=/tmp/evil.js",
      "src/a.test.ts&#13;&#155;2J",
      "node_modules/x/src/z.test.ts",
      "##vso[task.complete]",
      "::add-mask::x",
      "link/evil.test.ts",
    ];

    test("prints no name of a report that leads out of the folder, adds a line or would be an option", async () => {
      await Bun.write(join(place, "-dash.test.ts"), "");
      symlinkSync(evil, join(place, "link"));
      await upload("hostile", Object.fromEntries([...hostile, "-dash.test.ts", "src/a.test.ts"].map((f) => [f, 1])));
      const out = await split(args("1/1", "--task", "hostile"));
      expect(out.code).toBe(0);
      const relative = ["./--globalSetup=/tmp/evil.js", "./-dash.test.ts", "./::add-mask::x"];
      expect(out.lines.sort()).toEqual([...relative, "link/evil.test.ts", "src/a.test.ts"]);
      expect(out.errors).toContain(`"../../../etc/passwd"`);
      expect(out.errors).toContain(`Omitted, and run in no shard: `);
      expect(out.errors.split("\n")).toHaveLength(4);
      expect(out.errors).not.toMatch(/##vso|[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);

      const there = await split(args("1/1", "--task", "hostile", "--existing"));
      expect([there.code, there.lines.sort()]).toEqual([0, ["./-dash.test.ts", "src/a.test.ts"]]);
      expect(there.errors).toContain(`"link/evil.test.ts"`);
      const json = await split(args("1/1", "--task", "hostile", "--existing", "--json"));
      expect(JSON.parse(json.output).files.sort()).toEqual(["./-dash.test.ts", "src/a.test.ts"]);
      const timings = await split(args("1/1", "--task", "hostile", "--timings", "bun"));
      expect(timings.output).not.toMatch(/##vso|[\u007f-\u009f]/);
      expect(Object.keys(JSON.parse(timings.output).files)).toContain("##vso[task.complete]");
    });

    test("no name of a report takes a file out of all shards", async () => {
      const files = ["a", "b", "c", "d"].map((name) => `src/${name}.test.ts`);
      // These were the same name for the plan, and belong to other shards.
      const twins = files.flatMap((file) => [`x/../${file}`, `${file}/`, `.//${file}`, `./x/.././${file}`]);
      const seconds = [...twins, ...files].map((file, at) => [file, 1 + (at % 5)] as const);
      await upload("twins", Object.fromEntries(seconds));
      const shards = await splitAll(["1/3", "2/3", "3/3"], args("1/3", "--task", "twins", "--existing").slice(2));
      expect(shards.flatMap(({ lines }) => lines).sort()).toEqual(files);
    });

    test("in CI only files that are there, and stderr names the others; --no-existing prints them all", async () => {
      const inCi = (environment: Record<string, string>, ...more: string[]) =>
        split(args("1/1", "--task", "unit", ...more), { environment: { ...server, ...environment } });
      for (const environment of [github("78"), { CI: "true" }, { ASSAY_LEASE_ID: "x" }] as Record<string, string>[]) {
        const { code, lines, errors } = await inCi(environment);
        expect([code, lines.sort()]).toEqual([0, Object.keys(known).slice(0, 4)]);
        expect(errors).toContain(
          `Omitted, and run in no shard: "src/gone.test.ts". Reports name them, but they do not exist here`,
        );
      }
      for (const result of [inCi({}), inCi({ CI: "false" }), inCi({ CI: "true" }, "--no-existing")])
        expect((await result).lines.sort()).toEqual(Object.keys(known));
      expect(await inCi({}, "--existing", "--no-existing")).toMatchObject({ code: 2 });
    });

    test("finds the files from a folder further inside than where the reports begin", async () => {
      const folder = join(place, "packages/web");
      await Bun.write(join(folder, "t/one.test.ts"), "");
      await upload("inside", { "packages/web/t/one.test.ts": 1, "packages/api/t/two.test.ts": 1 });
      const { lines } = await split(args("1/1", "--task", "inside", "--existing"), { cwd: folder });
      expect(lines).toEqual(["t/one.test.ts"]);
    });

    test("a shard of which nothing is there is green as long as another has files, and none of all is an error", async () => {
      await upload("partly", { "src/a.test.ts": 1, "src/gone.test.ts": 5 });
      const partly = args("1/2", "--task", "partly", "--existing").slice(2);
      const shards = await splitAll(HALVES, partly);
      expect(shards).toMatchObject([
        { code: 0, lines: [] },
        { code: 0, lines: ["src/a.test.ts"] },
      ]);
      const empty = createFolder();
      for (const none of await splitAll(["1/3", "2/3", "3/3"], partly, { cwd: empty })) {
        expect([none.code, none.output]).toEqual([1, ""]);
        expect(none.errors).toEndWith(
          `No files: no FILES are given, and none of the known files of "partly" exists here\n`,
        );
      }
    });
  });

  test("a file that is given is never taken for an option, and never two lines", async () => {
    const all = ["--shard", "1/1", "--execution-key", "8", "--task", "unit"];
    const given = await split([...all, "-"], { stdin: "-x.test.ts\nsrc/a.test.ts\n" });
    expect(given.lines).toEqual(["./-x.test.ts", "src/a.test.ts"]);
    await Bun.write(join(place, "lines/a\n--evil.test.ts"), "");
    const two = await split([...all, "lines/*.test.ts"]);
    expect([two.code, two.output]).toEqual([1, ""]);
    expect(two.errors).toContain(`Cannot print "lines/a\\n--evil.test.ts" as a line`);
  });

  test("what a server says is one line for the terminal, without the key that it was asked with", async () => {
    const words = "\u001b[31m\u009b2J\n::error::x ##vso[task.complete]";
    const fake = createReceiver({ status: 400, body: { error: { message: `${words} ${acme.key}` } } });
    const environment = { ...server, ASSAY_URL: fake.url };
    const { code, output, errors } = await split(["--shard", "1/2", "--execution-key", "7", "a"], { environment });
    expect([code, output]).toEqual([1, ""]);
    expect(errors).toBe(`Cannot find the execution "7":  [31m 2J ::error::x # #vso[task.complete] ***\n`);
  });

  test("goes by hash, and says why, where nothing is known of the task or its reports name other files", async () => {
    await upload("classes", { "": 1 });
    await upload("others", { "spec/other.rb": 1 });
    const say = (task: string, ...files: string[]) =>
      split(["--shard", "1/1", "--execution-key", "7", "--task", task, ...files]);
    for (const [task, why] of [
      ["never", "this task has no runs yet"],
      ["classes", "the reports of this task name no files"],
      ["others", `the reports of this task contain none of them, for example they name "spec/other.rb"`],
    ] as const)
      expect((await say(task, "src/a.test.ts")).errors).toBe(`Shard 1/1 of "${task}": 1 of 1 files, by hash: ${why}\n`);
    const errors = `No files: no FILES are given, and the server knows no files of "never"\n`;
    expect(await say("never")).toMatchObject({ code: 1, output: "", errors });
  });

  test("fails where the server is away, and goes by hash only if it is told to", async () => {
    const away = { ...server, ASSAY_URL: "http://127.0.0.1:1" };
    const args = ["--patience", "0.5", "--execution-key", "9", "src/*.test.ts"];
    const [failed, ...shards] = await Promise.all([
      split(["--shard", "1/2", ...args], { environment: away }),
      split(["--shard", "1/2", "--fallback", ...args], { environment: away }),
      // The build of a fork has no secrets.
      split(["--shard", "2/2", "--fallback", ...args], { environment: { ASSAY_URL: url } }),
    ]);
    expect([failed!.code, failed!.output]).toEqual([1, ""]);
    expect(failed!.errors).toBe(
      "Cannot reach http://127.0.0.1:1: the connection was refused; use --fallback to split by hash\n",
    );
    for (const [index, { code, lines, errors }] of shards.entries()) {
      expect([code, new Set(lines.map((file) => hashShard(file, 2)))]).toEqual([0, new Set([index + 1])]);
      expect(errors).toContain("files are split by hash");
    }
    expect(shards.flatMap(({ lines }) => lines)).toHaveLength(8);
    expect(shards[1]!.errors).toStartWith("Set ASSAY_PROJECT, ASSAY_KEY: ");
  });

  test("gives a server that is started again some seconds for it", async () => {
    const sleep = spyOn(Bun, "sleep").mockResolvedValue(undefined);
    const random = spyOn(Math, "random").mockReturnValue(0.5);
    try {
      const args = ["--shard", "1/2", "--execution-key", "9", "a.test.ts"];
      const environment = { ...server, ASSAY_URL: "http://127.0.0.1:1" };
      expect((await split(args, { environment })).errors).toStartWith("Cannot reach");
      const waits = sleep.mock.calls.map(([ms]) => Math.round(ms as number));
      expect(waits).toEqual([1_000, 4_000, 10_000]);
    } finally {
      sleep.mockRestore();
      random.mockRestore();
    }
  });

  test("a key that is wrong is no server that is away", async () => {
    const environment = { ...server, ASSAY_KEY: "svc_proj_nope" };
    const args = ["--shard", "1/2", "--fallback", "--execution-key", "7", "src/a.test.ts"];
    const { code, output, errors } = await split(args, { environment });
    expect([code, output, errors]).toEqual([1, "", expect.stringMatching(/^Cannot find the execution "7": /)]);
  });

  test("in a runner's task it goes by the plan that the runner has asked for, without the project's key", async () => {
    const execution = await project.post("/executions", {});
    const shards = await Promise.all(
      [1, 2].map(async (index) => {
        const { text } = await project.call("GET", planPath(execution.id, "unit", { index, of: 2 }));
        const file = join(place, `plan-${index}.json`);
        await Bun.write(file, text);
        const task = { ASSAY_TASK: "unit", ASSAY_EXECUTION_ID: execution.id };
        const environment = { ...task, ASSAY_PLAN: file, ASSAY_SHARD: `${index}/2` };
        return await split(["src/*.test.ts"], { environment });
      }),
    );
    expect(shards.map(({ code }) => code)).toEqual([0, 0]);
    expect(shards.flatMap(({ lines }) => lines)).toHaveLength(8);
    expect(shards[0]!.lines).toEqual(expect.arrayContaining(["src/a.test.ts", "src/d.test.ts"]));
    const environment = { ASSAY_PLAN: join(place, "plan-1.json"), ASSAY_SHARD: "1/2" };
    const wrong = await split(["--shard", "2/2", "src/a.test.ts"], { environment });
    expect(wrong.code).toBe(2);
    expect(wrong.errors).toContain(`the plan in ASSAY_PLAN is for shard "1/2"`);
  });

  test.each([
    [["src/a.test.ts"], "--shard is missing"],
    [["--shard", "3/2"], `--shard: expected a shard from "1/2" to "2/2", got "3/2"`],
    [["--shard", "1/2", "--timings", "jest"], `--timings: expected "bun", got "jest"`],
    [["--shard", "1/2", "--format", "x"], `--format: expected "files" or "playwright", got "x"`],
    [["--shard", "1/2", "--format", "files", "--timings", "bun"], "split takes either --format or --timings"],
    [
      ["--shard", "1/2", "--execution-id", "x", "--execution-key", "y"],
      "split takes either --execution-id or --execution-key",
    ],
    [
      ["--shard", "1/2", "src/a.test.ts"],
      "Cannot identify the execution: pass --execution-key, with the same value for all shards",
    ],
    [["--shard", "1/2", "src"], `"src" is a directory`],
    [["--shard", "1/2", "--format", "playwright"], "--format playwright: pass the output of"],
    [["--shard", "1/2", "--nope"], "Unknown option"],
    [["--shard", "1/2", "-a.test.ts"], 'a file whose name begins with "-" is written ./-NAME'],
  ])("%j is a wrong usage", async (args, message) => {
    const { code, output, errors } = await split(args);
    expect([code, output, errors]).toEqual([2, "", expect.stringContaining(message)]);
  });

  test("in a runner's task without shards, as the rerun of one that had some, all files are its own", async () => {
    const environment = { ASSAY_TASK: "unit", ASSAY_LEASE_ID: crypto.randomUUID(), ASSAY_URL: "http://127.0.0.1:1" };
    const files = ["src/b.test.ts", "src/a.test.ts"];
    const errors = `"unit" has no shards: all 2 files\n`;
    expect(await split(files, { environment })).toMatchObject({ code: 0, lines: files, errors });
    const json = await split(["--json", ...files], { environment });
    expect(JSON.parse(json.output)).toEqual({ shard: "1/1", task: "unit", files });
    const { ASSAY_LEASE_ID: _, ...elsewhere } = environment;
    const missing = { code: 2, errors: expect.stringContaining("--shard is missing") };
    expect(await split(files, { environment: elsewhere })).toMatchObject(missing);
  });

  test("an empty standard input is an error: a shard without files would be green", async () => {
    const { code, errors } = await split(["--shard", "1/2", "--execution-key", "7", "-"]);
    expect([code, errors]).toEqual([1, "No files: standard input is empty\n"]);
  });
});

describe("assay split --timings bun", () => {
  test("names the files as they are from here, and leaves out what is not there", async () => {
    const told = ["--shard", "1/2", "--execution-key", "7", "--task", "unit", "--timings", "bun"];
    const { output } = await split([...told, "./a.test.ts", "b.test.ts", "e.test.ts"], { cwd: join(place, "src") });
    const files = { "a.test.ts": 5000, "b.test.ts": 4000, "e.test.ts": 3500 };
    expect(JSON.parse(output)).toEqual({ version: 1, files });
    const away = { environment: { ASSAY_URL: url } };
    expect((await split([...told, "--fallback"], away)).output).toBe(`{"version":1,"files":{}}\n`);
  });
});

describe("assay split --format playwright", () => {
  // As Playwright 1.65 prints it.
  const list = [
    "Listing tests:",
    "  [one] › a.spec.ts:2:1 › top › odd [x] 100%",
    "  [one] › a.spec.ts:3:63 › suite › inner › deep  two",
    "  [one] › sub/b.spec.ts:2:1 › b1",
    "  [my [2] › x] › a.spec.ts:2:1 › top › odd [x] 100%",
    "  [my [2] › x] › sub/b.spec.ts:2:23 › b2 @slow",
    "  c.spec.ts:1:1 › without a project",
    "Total: 6 tests in 3 files",
    "",
  ];
  const slow = ["[one] › sub/b.spec.ts", "[my [2] › x] › sub/b.spec.ts"];
  const quick = ["[one] › a.spec.ts", "[my [2] › x] › a.spec.ts", "c.spec.ts"];
  const args = ["--execution-key", "7", "--task", "e2e", "--format", "playwright", "-"];

  test("prints the files of each project for --test-list, each in one shard", async () => {
    await upload("e2e", { "a.spec.ts": 3, "sub/b.spec.ts": 9, "c.spec.ts": 5 });
    const [one, two] = await splitAll(HALVES, args, { stdin: list.join("\n") });
    expect([one!.lines, two!.lines]).toEqual([slow, quick]);
    expect(two!.errors).toBe(`Shard 2/2 of "e2e": 2 of 3 files, 8.0 s of 17 s\n`);
  });

  test("does not go on with a list that it cannot read whole", async () => {
    const read = (stdin: string) => split(["--shard", "1/2", ...args], { stdin });
    const broken = await read(list.toSpliced(3, 1).join("\n"));
    expect([broken.code, broken.output]).toEqual([1, ""]);
    const errors = `Cannot read the output of "playwright test --list": it lists 5 tests, but its total is 6\n`;
    expect(broken.errors).toBe(errors);
    expect((await read("src/a.spec.ts\n")).errors).toContain("it lists 0 tests");
  });
});

describe("assay split --next", () => {
  const all = ["a", "b", "c", "d", "e", "new1", "new2"].map((name) => `src/${name}.test.ts`);
  const next = (key: string, shard: string, holder: string, more: string[] = ["src/*.test.ts", "--json"]) =>
    split(["--next", "--shard", shard, "--holder", holder, "--execution-key", key, "--task", "unit", ...more]);
  const filesOf = ({ lines }: { lines: string[] }): string[] => JSON.parse(lines[0]!).files;

  test("hands each file to one job, as fast as each asks, and nothing when all are taken", async () => {
    const [one, two] = await Promise.all([next("next", "1/2", "a"), next("next", "2/2", "b")]);
    expect([one!.code, two!.code]).toEqual([0, 0]);
    const taken = [...filesOf(one!), ...filesOf(two!)];
    // The second job is slow: the first gets all that is left.
    for (;;) {
      const { code, lines, errors } = await next("next", "1/2", "a");
      expect(code).toBe(0);
      const files = JSON.parse(lines[0]!).files;
      taken.push(...files);
      if (files.length > 0) continue;
      expect(errors).toContain('Shard 1/2 of "unit": no files are left');
      break;
    }
    expect(taken.sort()).toEqual([...all, "src/[id].test.ts"].sort());
    // It is started again: it gets its files again, and no others.
    const again = filesOf(await next("next", "2/2", "b again"));
    expect(again).toEqual(filesOf(two!));
  });

  test("needs files, and a name for the job where no CI system has one", async () => {
    const plain = ["--next", "--shard", "1/2", "--execution-key", "7", "--task", "unit"];
    expect((await split([...plain, "src/*.test.ts"])).errors).toContain("--holder is missing");
    expect((await split([...plain, "--holder", "x"])).errors).toContain("FILES are missing");
    const environment = { ...server, ASSAY_URL: "http://127.0.0.1:1" };
    const away = await split([...plain, "--holder", "x", "--patience", "0", "src/*.test.ts"], { environment });
    expect([away.code, away.lines]).toEqual([1, []]);
  });
});
