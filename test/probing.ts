/** A repository whose commits are made by a script, and runners that probe them with `assay runner`. */

import { join } from "node:path";
import { createFolder, start as startCommand, startProgram, variablesOf } from "./commands.ts";
import { createPlace, removePlace } from "./places.ts";
import { afterAll } from "bun:test";

/** A commit: the body of the shell script that is its test. */
export type ScriptedCommit = {
  /** Shell: its exit code is the result of the test "adds"; what it prints is the message of the failure. */
  test: string;
  /** False: its build command fails. */
  builds?: boolean;
};

/** The test tool: `sh tool.sh [NAME…]` writes a JUnit report of the tests "adds" and "prints", or only of those named. */
const TOOL = `
names="$*"; [ -n "$names" ] || names="adds prints"
echo '<testsuite name="cart">' > report.xml
for name in $names; do
  if [ "$name" = adds ]; then says=$(sh ./adds.sh 2>&1); code=$?; else says=; code=0; fi
  echo "<testcase classname='cart' name='$name' time='0.01'>" >> report.xml
  [ $code = 0 ] || [ $code = 77 ] || echo "<failure message='$says'/>" >> report.xml
  [ $code != 77 ] || echo "<skipped/>" >> report.xml
  echo "</testcase>" >> report.xml
done
echo '</testsuite>' >> report.xml
[ ! -e crash ] || kill -SEGV $$
! grep -q '<failure' report.xml`;

export type ProbedRepository = {
  path: string;
  /** Full hashes, in the order of the commits. */
  commits: string[];
  /** Of a runner that probes the task "unit". */
  task: Record<string, unknown>;
};

/** Creates a repository with these commits. */
export async function createProbedRepository(commits: readonly ScriptedCommit[]): Promise<ProbedRepository> {
  const path = createPlace("probed");
  afterAll(() => removePlace(path));
  const git = "git -c user.name=Ada -c user.email=ada@example.com";
  await Bun.write(join(path, "tool.sh"), TOOL);
  await Bun.$`git init -q -b main ${path}`.quiet();
  const hashes: string[] = [];
  for (const [index, { test, builds = true }] of commits.entries()) {
    await Bun.write(join(path, "adds.sh"), test);
    await Bun.write(join(path, "build.sh"), builds ? "true" : "echo broken; exit 2");
    await Bun.write(join(path, "number"), String(index));
    const commit = Bun.spawn(["sh", "-ec", `git add .; ${git} commit -qm "change ${index}"; git rev-parse HEAD`], {
      cwd: path,
      stdout: "pipe",
    });
    hashes.push((await commit.stdout.text()).trim());
  }
  const task = {
    checkout: { git: path, build: "sh ./build.sh" },
    command: "sh tool.sh",
    rerun: "sh tool.sh {names}",
    report: "report.xml",
  };
  return { path, commits: hashes, task };
}

type ProbeRunner = {
  url: string;
  project: { project: string; key: string };
  tasks: Record<string, unknown>;
  args?: string[];
  /** As a process of its own, which can be killed. */
  isProcess?: boolean;
};

/** Starts `assay runner`; `stop` ends it and returns its exit code, `kill` kills its process and returns when it has ended. */
export function startProbeRunner({ url, project, tasks, args = [], isProcess = false }: ProbeRunner) {
  const options = { cwd: createFolder({ "assay.yaml": JSON.stringify({ tasks }) }), env: variablesOf(url, project) };
  const runner = (isProcess ? startProgram : startCommand)(["runner", ...args], options);
  return {
    async stop() {
      runner.signal("SIGTERM");
      return (await runner.ended).code;
    },
    async kill() {
      (runner as ReturnType<typeof startProgram>).child.kill("SIGKILL");
      await runner.ended;
    },
  };
}
