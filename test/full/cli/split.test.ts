/** `assay split` together with real test tools and with the shell lines of docs/splitting.md. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { createAsking } from "../../asking.ts";
import { createFolder, home, run, SOURCE, variablesOf } from "../../commands.ts";
import { createHarness } from "../../harness.ts";

const { ask, acme, url } = await createHarness();
const project = createAsking(ask, acme);
const server = variablesOf(url, acme);
const docs = await Bun.file(join(import.meta.dir, "../../../docs/splitting.md")).text();
const github = {
  ...server,
  GITHUB_ACTIONS: "true",
  GITHUB_JOB: "jobs",
  GITHUB_SHA: "0123456789abcdef",
  GITHUB_REF_NAME: "topic",
};

test("two builds of two jobs each run every file once, the second by what the first has told", async () => {
  const folder = createFolder();
  const names = ["a", "b", "c", "d", "e"].map((name) => `t/${name}.test.ts`);
  for (const [index, name] of names.entries())
    await Bun.write(
      join(folder, name),
      `import { test } from "bun:test"; test("x", async () => { await new Promise((done) => setTimeout(done, ${index === 3 ? 400 : 2})); });`,
    );
  // As the lines in docs/splitting.md.
  const job = async (build: string, shard: string) => {
    const assay = `"${process.execPath}" "${SOURCE}"`;
    const xml = `junit-${shard[0]}.xml`;
    const child = Bun.spawn(
      [
        "sh",
        "-ec",
        `${assay} split --shard ${shard} 't/*.test.ts' > files-${shard[0]}.txt
           ${assay} upload ${xml} --strict --shard ${shard} -- "${process.execPath}" test --reporter=junit --reporter-outfile=${xml} $(sed 's|^|./|' files-${shard[0]}.txt)`,
      ],
      { cwd: folder, env: { PATH: process.env["PATH"]!, HOME: home, ...github, GITHUB_RUN_ID: build }, stderr: "pipe" },
    );
    const errors = await new Response(child.stderr).text();
    expect([await child.exited, errors]).toEqual([0, expect.stringContaining(`of "jobs": `)]);
    return errors;
  };
  for (const build of ["91", "92"]) {
    const errors = await Promise.all([job(build, "1/2"), job(build, "2/2")]);
    for (const text of errors) expect(text.includes("this task has no runs yet")).toBe(build === "91");
    const executions = await project.list(`/executions?key=${build}`);
    expect(executions).toHaveLength(1);
    expect(executions[0].tasks[0]).toMatchObject({ slug: "jobs", passed: 5, failed: 0, missingShards: [] });
  }
  // The long one alone is more than the others together.
  expect(await Bun.file(join(folder, "files-1.txt")).text()).toBe("t/d.test.ts\n");
});

test("writes what bun test --shard goes by", async () => {
  const folder = createFolder();
  const names = ["a", "b", "c", "d"].map((name) => `t/${name}.test.ts`);
  for (const name of names)
    await Bun.write(join(folder, name), `import { test } from "bun:test"; test("x", () => {});`);
  const seconds = { "t/a.test.ts": 9, "t/b.test.ts": 2, "t/c.test.ts": 3, "t/d.test.ts": 3 };
  const cases = Object.entries(seconds).map(([file, time]) => `<testcase name="x" file="${file}" time="${time}"/>`);
  const body = `<testsuite>${cases.join("")}</testsuite>`;
  expect((await project.send(body, { task_slug: "bun" })).status).toBe(201);
  const args = ["split", "--shard", "1/2", "--execution-key", "7", "--task", "bun", "--timings", "bun"];
  const { output } = await run(args, { cwd: folder, env: server });
  const timings = { "t/a.test.ts": 9000, "t/b.test.ts": 2000, "t/c.test.ts": 3000, "t/d.test.ts": 3000 };
  expect(JSON.parse(output)).toEqual({ version: 1, files: timings });
  await Bun.write(join(folder, "timings.json"), output);
  const runTests = async (shard: string) => {
    const child = Bun.spawn([process.execPath, "test", `--shard=${shard}`, "--timings=timings.json"], {
      cwd: folder,
      env: { PATH: process.env["PATH"]!, HOME: home },
      stdout: "ignore",
      stderr: "pipe",
    });
    const printed = await new Response(child.stderr).text();
    expect(await child.exited).toBe(0);
    return [...printed.matchAll(/^(t\/\w+\.test\.ts):$/gm)].map(([, file]) => file!).sort();
  };
  expect(await Promise.all([runTests("1/2"), runTests("2/2")])).toEqual([["t/a.test.ts"], names.slice(1)]);
});

test("a list that is too long for one command is an error in the lines of the docs, and no two commands", async () => {
  const lines = [...docs.matchAll(/xargs (.*?) -a files\.txt/g)].map(([, options]) => options!);
  expect(lines.length).toBeGreaterThan(5);
  const folder = createFolder();
  await Bun.write(
    join(folder, "files.txt"),
    Array.from({ length: 300_000 }, (_, at) => `src/${at}.test.ts`).join("\n"),
  );
  await Bun.write(join(folder, "short.txt"), "src/a b.test.ts\n");
  await Bun.write(join(folder, "empty.txt"), "");
  const runXargs = async (options: string, list: string) => {
    const child = Bun.spawn(["sh", "-c", `xargs ${options} -a ${list} sh -c 'echo ran "$#"' sh`], {
      ...{ cwd: folder, stdout: "pipe", stderr: "ignore" },
    });
    return [await child.stdout.text(), await child.exited];
  };
  for (const options of new Set(lines)) {
    expect([options, ...(await runXargs(options, "files.txt"))]).toEqual([options, "", 1]);
    expect([options, ...(await runXargs(options, "short.txt"))]).toEqual([options, "ran 1\n", 0]);
    if (options.includes("-r")) expect([options, ...(await runXargs(options, "empty.txt"))]).toEqual([options, "", 0]);
  }
});

test("in the loop of the docs runs each batch by itself, and is red where one of them is", async () => {
  const loop = /```sh\n(code=0\n[^]*?)```/.exec(docs)![1]!;
  expect(loop).toContain("npx jest");
  const folder = createFolder({ "results/.keep": "", "src/a.test.ts": "", "src/b c.test.ts": "", "src/d.test.ts": "" });
  const runLoop = async (key: string, failing: string) => {
    const command = `printf '%s\\n' "$@" >> ran; case "$*" in *${failing}*) exit 1;; esac`;
    const script = loop
      .replaceAll("assay split", `${process.execPath} ${SOURCE} split --shard 1/1 --execution-key ${key} --task loop`)
      .replace("npx jest", `sh -c '${command.replaceAll("'", `'\\''`)}' sh`);
    const child = Bun.spawn(["sh", "-c", script], {
      cwd: folder,
      env: { PATH: process.env["PATH"]!, HOME: home, ...server, GITHUB_RUN_ID: key, GITHUB_RUN_ATTEMPT: "1" },
      stdout: "pipe",
      stderr: "pipe",
    });
    const code = await child.exited;
    return [code, (await child.stderr.text()).includes("not found")];
  };
  expect(await runLoop("loop1", "nothing")).toEqual([0, false]);
  const ran = (await Bun.file(join(folder, "ran")).text()).split("\n").filter((line) => line.startsWith("src/"));
  expect(ran.sort()).toEqual(["src/a.test.ts", "src/b c.test.ts", "src/d.test.ts"]);
  expect(await runLoop("loop2", "d.test")).toEqual([123, false]);
});
