/** Tasks as they run: their processes, environment, output and reports. */

import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Cgroups, findOwnCgroup, openCgroups } from "../../src/runner/cgroups.ts";
import type { TaskConfig } from "../../src/runner/config.ts";
import { createMask } from "../../src/secrets/mask.ts";
import type { AskFiles } from "../../src/runner/file_queue.ts";
import type { RunnerLease } from "../../src/runner/protocol.ts";
import { runTask } from "../../src/runner/task.ts";
import { until } from "../harness.ts";
import { createPlace, removePlace } from "../places.ts";
import { lives } from "../runners.ts";

const place = createPlace("tasks");
afterAll(() => removePlace(place));
let places = 0;

const host = {
  PATH: process.env["PATH"],
  HOME: "/nowhere",
  ASSAY_KEY: "svc_proj_key",
  OTHER: "other",
  PASSED: "passed",
};

type More = {
  secrets?: string[];
  config?: Partial<TaskConfig>;
  lease?: Partial<RunnerLease>;
  host?: Record<string, string>;
  graceMs?: number;
  cgroups?: Cgroups | undefined;
  askFiles?: AskFiles;
  freeSpace?: (path: string) => { bytes: number; files: number };
  /** The content of files in the directory. */
  files?: Record<string, string>;
};

/** Begins a task in a directory of its own. */
function begin(command: string, more: More = {}) {
  const directory = join(place, `task-${places++}`);
  mkdirSync(directory);
  for (const [name, text] of Object.entries(more.files ?? {})) writeFileSync(join(directory, name), text);
  const config: TaskConfig = {
    command,
    report: ["report.xml"],
    format: undefined,
    git: undefined,
    workingDirectory: directory,
    timeoutSeconds: undefined,
    silenceSeconds: undefined,
    before: [],
    after: [],
    comparesCommit: true,
    retryOn: [],
    rerun: undefined,
    gate: undefined,
    artifacts: [],
    attachments: "failed",
    pass: [],
    accept: [],
    ...more.config,
  };
  const lease: RunnerLease = {
    id: crypto.randomUUID(),
    timeoutSeconds: 600,
    execution: { id: "the-execution", branch: null, commit: null, baseUrl: null },
    taskSlug: "unit",
    attempt: 1,
    probe: false,
    variables: {},
    secretNames: [],
    executionNames: [],
    ...more.lease,
  };
  const [stop, hurry] = [new AbortController(), new AbortController()];
  const chunks: Uint8Array[] = [];
  const notes: string[] = [];
  const ended = runTask({
    settleCommit: async (commit) => commit,
    ...{ lease, config, host: { ...host, ...more.host }, stop: stop.signal, hurry: hurry.signal },
    ...{
      onOutput: (bytes) => void chunks.push(bytes),
      onNote: (note) => void notes.push(note),
      graceMs: more.graceMs ?? 10_000,
      mask: createMask(more.secrets ?? []),
      cgroups: more.cgroups,
      askFiles: more.askFiles,
      ...(more.freeSpace ? { freeSpace: more.freeSpace } : {}),
    },
  });
  const output = () => Buffer.concat(chunks).toString();
  const file = (name: string) => join(directory, name);
  return { ended, output, stop, hurry, directory, file, notes, leaseId: lease.id };
}

const WRITE_REPORT = "echo '<testsuite/>' > report.xml";

/** The state of a process, its group and its session, behind its name in /proc; the environment is that of its start. */
const statOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
const isMarked = (pid: number) => readFileSync(`/proc/${pid}/environ`, "utf8").includes("ASSAY_LEASE_ID");
const pidsIn = (output: string) => [...output.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid));

describe("the exit code", () => {
  test.each([
    ["exit 3", 3],
    ["exit 0", 0],
    ["no-such-command", 127],
    ["false | true; exit 255", 255],
  ])("of %p is %i", async (command, exitCode) => {
    const message = `The command ended with ${exitCode}, no report: "report.xml"`;
    expect(await begin(command).ended).toEqual({ kind: "failure", message, exitCode });
  });

  test("is none where a signal has ended the command", async () => {
    const message = 'The command was ended by SIGSEGV, no report: "report.xml"';
    const task = begin("kill -SEGV $$");
    expect([await task.ended, task.output()]).toEqual([
      { kind: "failure", message },
      "[assay] The command was ended by SIGSEGV\n",
    ]);
  });

  test("is none where the command cannot be started, which names the task and its directory", async () => {
    const gone = join(place, "gone");
    for (const config of [{ workingDirectory: gone }, { workingDirectory: gone, before: ["true"] }])
      expect(await begin("true", { config }).ended).toEqual({
        kind: "infrastructure",
        message: `Cannot run the task "unit": its working directory "${gone}" is missing`,
      });
    const file = join(place, "file");
    await Bun.write(file, "");
    expect(await begin("true", { config: { workingDirectory: file } }).ended).toEqual({
      kind: "infrastructure",
      message: `Cannot run the task "unit": its working directory "${file}" is not a directory`,
    });
  });
});

describe("a failure of the infrastructure", () => {
  test.each([
    ["kill -9 $$", "SIGKILL"],
    ["kill -TERM $$", "SIGTERM"],
  ])("is a command that %p has ended, unless it has left a report", async (command, signal) => {
    const problem = `The command was ended by ${signal}`;
    const message = `${problem} from outside of the runner, without a report; SIGKILL may mean that the machine is out of memory`;
    expect(await begin(command).ended).toEqual({ kind: "infrastructure", message });
    const reported = { kind: "report", problem };
    expect(await begin(`${WRITE_REPORT}; ${command}`).ended).toMatchObject(reported);
  });

  test("is an exit code that assay.yaml names, with a report or without", async () => {
    const config = { retryOn: [75] };
    const message = `The command ended with 75, which is listed in "retryOn"`;
    for (const command of ["exit 75", `${WRITE_REPORT}; exit 75`])
      expect(await begin(command, { config }).ended).toEqual({ kind: "infrastructure", message, exitCode: 75 });
    expect(await begin("exit 76", { config }).ended).toMatchObject({ kind: "failure", exitCode: 76 });
  });

  test.each([
    ["is full", { bytes: 4_096, files: 1_000 }],
    ["has no free inodes", { bytes: 1_000_000_000, files: 2 }],
  ])("is a command that failed on a disk that %s; one that passed has passed", async (state, space) => {
    const freeSpace = () => space;
    const task = begin(`${WRITE_REPORT}; exit 1`, { freeSpace });
    const message = `The command ended with 1, and the disk of ${JSON.stringify(task.directory)} ${state}`;
    expect(await task.ended).toEqual({ kind: "infrastructure", message, exitCode: 1 });
    expect(await begin(WRITE_REPORT, { freeSpace }).ended).toMatchObject({ kind: "report", exitCode: 0 });
  });
});

describe("the output", () => {
  test("of both streams comes in its order, however it is written", async () => {
    const task = begin(
      `for i in 1 2 3 4 5 6 7 8 9; do echo "out $i"; echo "err $i" >&2; done
       echo path > /dev/stdout; echo path > /dev/stderr; printf 'no end'`,
    );
    await task.ended;
    const lines = Array.from({ length: 9 }, (_, at) => `out ${at + 1}\nerr ${at + 1}\n`).join("");
    expect(task.output()).toBe(`${lines}path\npath\nno end`);
  });

  test("of 5 MB comes whole", async () => {
    const task = begin("yes 0123456789abcde | head -c 5242880");
    await task.ended;
    const output = task.output();
    expect([output.length, Bun.hash(output)]).toEqual([5_242_880, Bun.hash("0123456789abcde\n".repeat(327_680))]);
  });
});

describe("the environment", () => {
  test("is exactly what is promised", async () => {
    const task = begin("/usr/bin/env", {
      config: { pass: ["PASSED", "ABSENT", "ASSAY_KEY"] },
      lease: {
        id: "the-lease",
        execution: { id: "the-execution", branch: "main", commit: "abcdef1", baseUrl: "http://app.test" },
        attempt: 2,
        shard: { index: 2, total: 4 },
        variables: { TOKEN: "several\nlines = $HOME", PASSED: "by the lease", ASSAY_TASK: "another" },
      },
      host: { LANG: "C.UTF-8", TMPDIR: "/tmp" },
    });
    await task.ended;
    const lines = task.output().trimEnd().split("\n");
    // What shells set by themselves.
    const own = lines.filter((line) => !/^(?:PWD|OLDPWD|SHLVL|_)=/.test(line));
    expect(own.sort()).toEqual(
      [
        ...[`PATH=${host.PATH}`, "HOME=/nowhere", "LANG=C.UTF-8", "TMPDIR=/tmp"],
        ...["PASSED=by the lease", "TOKEN=several", "lines = $HOME"],
        ...["ASSAY_LEASE_ID=the-lease", "ASSAY_EXECUTION_ID=the-execution", "ASSAY_TASK=unit", "ASSAY_ATTEMPT=2"],
        ...["ASSAY_SHARD=2/4", "ASSAY_BASE_URL=http://app.test", "ASSAY_BRANCH=main", "ASSAY_COMMIT=abcdef1"],
        "CI=true",
      ].sort(),
    );
  });

  test("has the directory of the task, no input, and a lower priority", async () => {
    const task = begin("pwd; cat; nice");
    await task.ended;
    const [directory, niceness] = task.output().trimEnd().split("\n");
    expect([directory, Number(niceness)]).toEqual([task.directory, expect.any(Number)]);
    const [own] = (await Bun.$`nice`.text()).split("\n");
    expect(Number(niceness)).toBe(Math.min(19, Number(own) + 10));
  });
});

describe("a variable of the execution", () => {
  const theirs = { NODE_OPTIONS: "--require ./theirs.js", PATH: "/theirs" };
  const variables = { BROWSER: "firefox", TOKEN: "of the team" };

  test("that the task does not accept is refused before anything has begun", async () => {
    const config = { before: ["echo before"], after: ["echo after"], accept: ["BROWSER"] };
    const lease = { variables: { ...variables, ...theirs }, executionNames: ["PATH", "NODE_OPTIONS", "BROWSER"] };
    const task = begin("echo began", { config, lease });
    const message = `The execution sets "NODE_OPTIONS", "PATH", which the task "unit" does not accept: list the variables that an execution may set in "accept" in assay.yaml`;
    expect(await task.ended).toEqual({ kind: "failure", message });
    expect(task.output()).toBe("");
  });

  test("that the task accepts is set, and those of the environment are without that", async () => {
    const config = { accept: ["BROWSER"] };
    const lease = { variables, executionNames: ["BROWSER"] };
    const task = begin(`echo "$BROWSER, $TOKEN"`, { config, lease });
    await task.ended;
    expect(task.output()).toBe("firefox, of the team\n");
  });
});

describe("no process is left", () => {
  test("when a command ends: neither children nor grandchildren, nor those in sessions of their own", async () => {
    const task = begin(
      `sleep 1000 & echo "pid $!"
       sh -c 'trap "" HUP; sleep 1000 & echo "pid $!"; wait' &
       setsid sh -c 'echo "pid $$"; exec sleep 1000' &
       sh -c 'setsid sh -c '\\''echo "pid $$"; sleep 1000'\\'' &' &
       while [ "$(cat seen 2>/dev/null | wc -l)" -lt 4 ]; do sleep 0.01; done; exit 5`,
    );
    await until(() => pidsIn(task.output()).length === 4);
    const pids = pidsIn(task.output());
    expect(pids.map(lives)).toEqual([true, true, true, true]);
    await Bun.write(task.file("seen"), "\n\n\n\n");
    expect(await task.ended).toMatchObject({ exitCode: 5 });
    // One that is about to end has no environment any more, by which it could be known.
    await until(() => !pids.some(lives));
  });

  test("when it is ended: politely first, and then by force", async () => {
    const task = begin(
      `trap 'echo "was asked"' TERM; sh -c 'trap "" TERM; echo "pid $$"; while :; do sleep 0.05; done' &
       echo "pid $$"; while :; do sleep 0.05; done`,
      { graceMs: 200 },
    );
    await until(() => pidsIn(task.output()).length === 2);
    task.stop.abort("Cancelled by somebody");
    expect(await task.ended).toEqual({ kind: "failure", message: "Cancelled by somebody" });
    expect(task.output()).toContain("was asked");
    expect(pidsIn(task.output()).map(lives)).toEqual([false, false]);
  });

  test.each([
    ["its parent ends by force", `trap '' TERM; setsid env -i sleep 6671 & echo "pid $!"; sleep 6672; sleep 6673`],
    [
      "its parent ends when it is asked to",
      `setsid env -i sh -c "trap '' TERM; echo pid \\$\\$; sleep 6674; sleep 6675" & sleep 6676`,
    ],
  ])("of one that has neither session nor environment of the task, when %s", async (_, command) => {
    const task = begin(command, { graceMs: 200 });
    await until(() => pidsIn(task.output()).length === 1);
    // By now it is a session of its own, with nothing in its environment.
    const [pid] = pidsIn(task.output()) as [number];
    await until(() => Number(statOf(pid)[3]) === pid && !isMarked(pid));
    task.stop.abort("Stopped");
    await task.ended;
    const left = lives(pid);
    if (left) process.kill(-pid, "SIGKILL");
    expect(left).toBe(false);
  });

  test("when there is no time for politeness", async () => {
    const task = begin(`trap "" TERM; echo "pid $$"; while :; do sleep 0.05; done`, { graceMs: 600_000 });
    await until(() => pidsIn(task.output()).length === 1);
    task.stop.abort("Stopped");
    task.hurry.abort();
    await task.ended;
    expect(pidsIn(task.output()).map(lives)).toEqual([false]);
  });

  test("of one that forks all the time", async () => {
    const task = begin(`f() { trap "" TERM; echo "pid $$"; (sleep 0.02; f) & }; f; sleep 1000`, { graceMs: 50 });
    await until(() => pidsIn(task.output()).length > 5);
    task.stop.abort("Stopped");
    await task.ended;
    expect(pidsIn(task.output()).some(lives)).toBe(false);
    const marked = await Bun.$`grep -sl ${task.leaseId} /proc/[0-9]*/environ`.nothrow().text();
    expect(marked).toBe("");
  });
});

const ownCgroup = findOwnCgroup();
const testCgroup = ownCgroup && join(ownCgroup, `assay-test-${process.pid}`);
const cgroups = await openTestCgroups();
afterAll(() => {
  if (cgroups) rmdirSync(testCgroup!);
});

/** undefined: this machine has no cgroups v2, or they cannot be written here. */
async function openTestCgroups(): Promise<Cgroups | undefined> {
  try {
    mkdirSync(testCgroup!);
  } catch {
    return;
  }
  const opened = await openCgroups(testCgroup);
  if (!opened) rmdirSync(testCgroup!);
  return opened;
}

describe.skipIf(!cgroups)("in a control group (skipped where cgroups v2 cannot be written), no process is left", () => {
  /** It has no session, no parent and no environment of the task. */
  const escape = (script: string) => `setsid env -i sh -c 'sh -c "${script}" &' & wait`;
  const stray = escape("echo pid \\$\\$; exec sleep 6681");
  const stubborn = escape("trap : TERM; echo pid \\$\\$; while :; do sleep 0.05; done");
  const escaped = async (task: ReturnType<typeof begin>) => {
    await until(() => pidsIn(task.output()).length === 1);
    const [pid] = pidsIn(task.output()) as [number];
    await until(() => Number(statOf(pid)[2]) !== pid && !isMarked(pid));
    return pid;
  };
  const expectNothingLeft = (pid: number) => {
    const left = lives(pid);
    if (left) process.kill(pid, "SIGKILL");
    expect(left).toBe(false);
    expect(readdirSync(testCgroup!).filter((name) => name.startsWith("assay-task"))).toEqual([]);
  };

  test("when the command ends", async () => {
    const task = begin(`${stray}; while [ ! -e seen ]; do sleep 0.01; done`, { cgroups });
    const pid = await escaped(task);
    await Bun.write(task.file("seen"), "");
    expect(await task.ended).toMatchObject({ exitCode: 0 });
    expectNothingLeft(pid);
  });

  test("when it is cancelled, and what ignores SIGTERM is killed", async () => {
    const task = begin(`${stubborn}; sleep 6682`, { cgroups, graceMs: 200 });
    const pid = await escaped(task);
    task.stop.abort("Cancelled");
    expect(await task.ended).toMatchObject({ kind: "failure" });
    expectNothingLeft(pid);
  });

  test("when its time is over", async () => {
    const task = begin(`${stray}; sleep 6683`, { cgroups, lease: { timeoutSeconds: 1 } });
    const pid = await escaped(task);
    expect(await task.ended).toMatchObject({ message: "Timed out after 1 s" });
    expectNothingLeft(pid);
  });

  test("when a command before it has started one", async () => {
    const before = [`${stray}; while ! [ -e seen ]; do sleep 0.01; done`];
    const task = begin("echo pids", { cgroups, config: { before } });
    const pid = await escaped(task);
    await Bun.write(task.file("seen"), "");
    await task.ended;
    expectNothingLeft(pid);
  });

  test("when it has created control groups of its own", async () => {
    const task = begin(
      `own=$(find ${testCgroup} -name 'assay-task-*'); mkdir -p "$own/a/b"; sleep 6684 &
       echo $! > "$own/a/b/cgroup.procs"; echo "pid $!"`,
      { cgroups },
    );
    await task.ended;
    expectNothingLeft(pidsIn(task.output())[0]!);
  });

  test("and the output, the exit code and the environment are as without one", async () => {
    const [inside, outside] = [begin("env; exit 7", { cgroups }), begin("env; exit 7")];
    expect([await inside.ended, await outside.ended]).toEqual(Array(2).fill(expect.objectContaining({ exitCode: 7 })));
    const variables = (task: typeof inside) =>
      task.output().replaceAll(task.leaseId, "").replaceAll(task.directory, "").split("\n").sort();
    expect(variables(inside)).toEqual(variables(outside));
  });
});

describe("a time-out", () => {
  test("is the shorter one of assay.yaml and the lease, and ends the command", async () => {
    const task = begin(`echo "pid $$"; sleep 1000`, { config: { timeoutSeconds: 1 }, lease: { timeoutSeconds: 600 } });
    expect(await task.ended).toEqual({ kind: "failure", message: "Timed out after 1 s" });
    expect(pidsIn(task.output()).map(lives)).toEqual([false]);
  });

  test("is also one without output, however long the task may take", async () => {
    const config = { silenceSeconds: 1 };
    const silent = begin(`echo "pid $$"; sleep 1000`, { config });
    const message = "The command printed nothing for 1 s";
    expect(await silent.ended).toEqual({ kind: "failure", message });
    expect(pidsIn(silent.output()).map(lives)).toEqual([false]);
    const talking = begin("for i in 1 2 3 4; do sleep 0.4; echo $i; done; echo '<x/>' > report.xml", { config });
    expect(await talking.ended).toMatchObject({ kind: "report", exitCode: 0 });
    // The runner waits, for example for its rate limit.
    const answer = { status: 200, text: "{}", headers: new Headers() };
    const askFiles = () => Bun.sleep(1_500).then(() => answer);
    const waiting = begin(
      `curl -s --unix-socket "$ASSAY_QUEUE" -d '{"files":[]}' http://runner/batch; ${WRITE_REPORT}`,
      { config, askFiles },
    );
    expect(await waiting.ended).toMatchObject({ kind: "report", exitCode: 0 });
  });

  test("leaves a named report unwritten, which cannot be green", async () => {
    const config = { report: ["report.xml", "more.xml", "out/*.xml"] };
    const problem = 'No report: "more.xml"';
    expect(await begin(WRITE_REPORT, { config }).ended).toMatchObject({ kind: "report", problem });
    const both = await begin(`${WRITE_REPORT}; cp report.xml more.xml`, { config }).ended;
    expect([both.kind, "problem" in both]).toEqual(["report", false]);
  });

  test("leaves what was reported, which cannot be green", async () => {
    const task = begin("echo '<x/>' > report.xml; sleep 1000", { lease: { timeoutSeconds: 1 } });
    const problem = "Timed out after 1 s";
    expect(await task.ended).toMatchObject({ kind: "report", paths: [task.file("report.xml")], problem });
  });
});

describe("before and after", () => {
  test("run around the command, in their order, with its environment", async () => {
    const config = { before: ["echo one", "echo $ASSAY_TASK"], after: ["echo three; exit 9", "echo four"] };
    const task = begin("echo two; echo '<x/>' > report.xml; exit 1", { config });
    expect(await task.ended).toMatchObject({ kind: "report", paths: [task.file("report.xml")], exitCode: 1 });
    expect(task.output()).toBe("one\nunit\ntwo\nthree\nfour\n");
  });

  test("a before that fails is the failure of the task, and what is after it runs all the same", async () => {
    const config = { before: ["exit 7", "echo never"], after: ["echo after"] };
    const task = begin("echo '<x/>' > report.xml", { config });
    const message = 'The before command "exit 7" ended with 7';
    expect(await task.ended).toEqual({ kind: "infrastructure", message, exitCode: 7 });
    expect(task.output()).toBe("after\n");
  });

  test("the message of a before is short, and holds no part of a secret", async () => {
    const secret = "abcdefghijklmnop";
    const before = [`: ${"x".repeat(190)} ${secret} ${"y".repeat(1_000)}; exit 7`];
    const { message } = (await begin("true", { config: { before }, secrets: [secret] }).ended) as { message: string };
    expect(message).toBe(`The before command ": ${"x".repeat(190)} *** yyy…" ended with 7`);
  });

  test("after a task that was ended, too", async () => {
    const task = begin("echo began; sleep 1000", { config: { after: ["echo after"] } });
    await until(() => task.output() !== "");
    task.stop.abort("Cancelled");
    expect(await task.ended).toEqual({ kind: "failure", message: "Cancelled" });
    expect(task.output()).toBe("began\n[assay] Cancelled\nafter\n");
  });
});

describe("the commit that is tested", () => {
  const COMMIT = [
    "git init -q . && git config user.email a@b.c && git config user.name a",
    "echo one > one && git add one && git commit -qm one",
  ];
  const config = { before: COMMIT };
  const at = (commit: string | null) => ({ execution: { id: "e", branch: null, commit, baseUrl: null } });

  test("is the one that the execution asks for, short or long, or the command does not run", async () => {
    const wrong = begin("echo ran", { config, lease: at("0".repeat(40)) });
    const told =
      /^The working directory is at commit [0-9a-f]{12}, but the execution tests 0{40}: check out "\$ASSAY_COMMIT" in "before"/;
    expect(await wrong.ended).toEqual({ kind: "infrastructure", message: expect.stringMatching(told) });
    expect(wrong.output()).not.toContain("ran");
    // The same commit each time.
    const date = "2026-01-01T00:00:00Z";
    const fixed = COMMIT.map((command) => `export GIT_AUTHOR_DATE=${date} GIT_COMMITTER_DATE=${date}; ${command}`);
    const reported = { kind: "report", paths: [expect.any(String)], exitCode: 0 };
    const first = begin(`${WRITE_REPORT}; git rev-parse HEAD`, { config: { before: fixed } });
    await first.ended;
    const [head] = /[0-9a-f]{40}/.exec(first.output())!;
    for (const asked of [head, head.slice(0, 8).toUpperCase()])
      expect(await begin(WRITE_REPORT, { config: { before: fixed }, lease: at(asked) }).ended).toMatchObject(reported);
  });

  test("is not looked at where assay.yaml says so, and where no hash is asked for", async () => {
    const uncompared = { ...config, comparesCommit: false };
    for (const more of [
      { config: uncompared, lease: at("0".repeat(40)) },
      { config, lease: at("v1.2") },
    ])
      expect(await begin(WRITE_REPORT, more).ended).toMatchObject({ kind: "report" });
  });
});

describe("the report", () => {
  test("is what the globs find, below the directory of the task or elsewhere", async () => {
    const elsewhere = join(place, "elsewhere");
    mkdirSync(elsewhere);
    const config = { report: ["out/**/*.xml", "TEST-[1].xml", join(elsewhere, "*.json"), "out/a.xml"] };
    const task = begin(
      `mkdir -p out/.deep; for f in out/a.xml out/.deep/b.xml "TEST-[1].xml" TEST-1.xml out/c.txt ${elsewhere}/d.json; do echo x > "$f"; done`,
      { config },
    );
    const end = await task.ended;
    expect("paths" in end && end.paths.sort()).toEqual(
      [...["out/.deep/b.xml", "out/a.xml", "TEST-[1].xml"].map(task.file), join(elsewhere, "d.json")].sort(),
    );
  });

  test("is one by the clock of its file system, whatever ours says", async () => {
    const now = spyOn(Date, "now").mockReturnValue(Date.now() + 3_600_000);
    try {
      expect(await begin("echo x > report.xml").ended).toMatchObject({ kind: "report" });
    } finally {
      now.mockRestore();
    }
  });

  test("that lay there before is not this one's, whether it is new or old", async () => {
    for (const age of [0, 3_600]) {
      const before = [`echo '<x/>' > report.xml; echo ready; while [ ! -e go ]; do sleep 0.01; done`];
      const task = begin("true", { config: { before } });
      await until(() => task.output() === "ready\n");
      utimesSync(task.file("report.xml"), Date.now() / 1000 - age, Date.now() / 1000 - age);
      await Bun.write(task.file("go"), "");
      const message = `The command ended with 0, the report is older than the task: "report.xml"`;
      expect(await task.ended).toEqual({ kind: "failure", message, exitCode: 0 });
    }
  });

  test("that is copied from long ago is not this one's, and one that is written again is", async () => {
    const old = begin("echo x > report.xml; touch -d '1 hour ago' report.xml");
    expect(await old.ended).toMatchObject({ kind: "failure" });
    const again = begin("echo x > report.xml", { config: { before: ["echo x > report.xml"] } });
    expect(await again.ended).toMatchObject({ kind: "report", paths: [again.file("report.xml")], exitCode: 0 });
  });
});

describe("a rerun of what failed", () => {
  const only = [{ suite: "unit", name: "adds $HOME", file: "a.test.ts" }];

  test("is what assay.yaml makes of it, and its list is a file", async () => {
    const config = { command: "echo whole", rerun: `echo {names}; cat "$ASSAY_RERUN_LIST"; echo {list} | wc -l` };
    const task = begin("echo whole", { config, lease: { only } });
    await task.ended;
    expect(task.output()).toContain("adds $HOME\n");
    expect(task.output()).not.toContain("echo whole");
    expect(task.output()).toStartWith("[assay] The test case that failed runs again\nadds");
    expect(task.notes).toEqual(["The test case that failed runs again"]);
  });

  test("is the whole task where assay.yaml says nothing, or what failed is no test, which is told", async () => {
    const without = begin("echo whole", { lease: { only } });
    await without.ended;
    const why = 'The whole task runs again: assay.yaml has no "rerun" for it';
    expect([without.output(), without.notes]).toEqual([`[assay] ${why}\nwhole\n`, [why]]);
    const lease = { only: [{ suite: "", name: "runner exited 3", file: null }] };
    const outside = begin("echo whole", { config: { rerun: "echo {names}" }, lease });
    await outside.ended;
    expect(outside.notes).toEqual([expect.stringMatching(/^The whole task runs again: /)]);
    expect(outside.output()).toBe(`[assay] ${outside.notes[0]}\nwhole\n`);
  });
});

describe("a probe of several test cases", () => {
  const known = { suite: "unit", name: "adds", file: "a.test.ts" };
  const other = { suite: "unit", name: "prints", file: "b.test.ts" };
  const lease = { probe: true, only: [known, other] };

  test("runs all of them together", async () => {
    const task = begin("echo whole", { config: { rerun: "echo {names}" }, lease });
    await task.ended;
    expect(task.output()).toBe("[assay] The 2 test cases of the probe run alone\nadds prints\n");
  });

  test("runs those that its commit has, and none if it has none", async () => {
    const config = { rerun: "echo {files}" };
    const one = begin("echo whole", { config, lease, files: { "b.test.ts": "" } });
    await one.ended;
    expect(one.output()).toBe("[assay] The test case runs alone\nb.test.ts\n");
    const none = begin("echo whole", { config, lease });
    expect(await none.ended).toMatchObject({
      kind: "failure",
      message: expect.stringContaining('Cannot run the test case alone: there is no file "a.test.ts"'),
    });
  });
});

test("the files of the runner for a task are gone after it", async () => {
  const task = begin("ls -d ${TMPDIR:-/tmp}/assay-runner-*/", { host: { TMPDIR: place } });
  await task.ended;
  for (const path of task.output().trimEnd().split("\n")) await until(() => !existsSync(path));
});
