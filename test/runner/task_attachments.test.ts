/** The attachments of tasks, asserted on the bytes that a server receives from a runner. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { createAsking } from "../asking.ts";
import { createAttachmentRecorder } from "../attachment_recorder.ts";
import { createAutomating } from "../automating.ts";
import { createFolder, run as runCommand, variablesOf } from "../commands.ts";
import { createHarness } from "../harness.ts";

const harness = await createHarness();
const { acme, addProject, ask, url } = harness;

const SECRET = "hunter2-is-secret";

type Task = { command: string } & Record<string, unknown>;

/** Runs the task once in an environment that has SECRET, and returns what the server received and the runner's log. */
async function run(task: Task, answer = { status: 201 as number, body: {} as unknown }, hasRecorder = true) {
  const project = createAsking(ask, await addProject(acme));
  const recorder = createAttachmentRecorder(url);
  recorder.play(() => answer);
  const config = JSON.stringify({ tasks: { unit: { report: "report.xml", ...task } } });
  const directory = createFolder({ secret: "of the machine", "work/assay.yaml": config });
  const slug = `e-${crypto.randomUUID()}`;
  const { call } = createAutomating(harness, acme);
  const environment = await call("POST", "/environments", { slug, name: slug });
  const set = await call("PUT", `/environments/${environment.body.id}/variables`, { TOKEN: SECRET });
  expect([environment.status, set.status]).toEqual([201, 200]);
  const { id } = await project.post("/executions", { mode: "run", tasks: ["unit"], environment: slug });
  const env = variablesOf(hasRecorder ? recorder.url : url, project);
  const { code, output } = await runCommand(["runner", "--once"], { cwd: join(directory, "work"), env });
  expect(output).not.toContain(SECRET);
  const execution = await project.get(`/executions/${id}`);
  return { project, recorder, output, execution, code };
}

const failing = (...paths: string[]) =>
  `printf '%s' '<testsuite name="s"><testcase name="fails"><failure message="m"/><system-out>${paths
    .map((path) => `[[ATTACHMENT|${path}]]`)
    .join("\n")}</system-out></testcase></testsuite>' > report.xml`;

test("the files that a report names and the artifacts are sent with the lease, with the secrets hidden", async () => {
  const command = [
    'printf "token: %s" "$TOKEN" > "shot-$TOKEN.txt"; echo log > server.log; ln -s ../secret link; mkdir .git; echo s > .git/config',
    // Larger than what goes in a form.
    '{ head -c 4300000 /dev/zero; printf %s "$TOKEN"; } > trace.bin',
    failing("shot-'\"$TOKEN\"'.txt", "trace.bin", "../secret", "link", ".git/config", "/proc/self/environ"),
    "exit 1",
  ].join("\n");
  const { recorder, output, execution } = await run({ command, artifacts: ["*.log", "old.txt"] });
  expect(execution.status).toBe("failed");
  const [large, form] = recorder.requests.toSorted((a, b) => b.method.localeCompare(a.method));
  const path = expect.stringMatching(/\/executions\/[0-9a-f-]{36}\/test-runs\/unit\/attachments$/);
  const lease = { lease_id: expect.stringMatching(/^[0-9a-f-]{36}$/) };
  expect(form).toMatchObject({ method: "POST", path, query: lease });
  expect(form!.files).toEqual([
    { path: "server.log", type: "application/octet-stream", text: "log\n" },
    { path: "shot-***.txt", type: "application/octet-stream", text: "token: ***" },
  ]);
  expect(large).toMatchObject({ method: "PUT", path, query: { ...lease, path: "trace.bin", name: "trace.bin" } });
  expect(large!.files[0]!.text).toBe(`${"\0".repeat(4_300_000)}***`);
  expect(recorder.requests).toHaveLength(2);
  const notes = output.split("\n").filter((line) => line.includes("Attachments of a task"));
  expect(notes.map((line) => JSON.parse(line).note)).toEqual([
    expect.stringMatching(/^Sent 3 attachments, /),
    'Left out 4 attachments: "../secret", "link", "/proc/self/environ" (outside of the attach root); ".git/config" (hidden, and may hold secrets)',
  ]);
}, 30_000);

test("artifacts of a task without a report are sent, and those that lay there before are not", async () => {
  const { recorder } = await run({
    before: "touch -d 2001-01-01 old.log",
    command: "echo why > new.log; exit 1",
    artifacts: "*.log",
  });
  expect(recorder.files()).toMatchObject([{ path: "new.log", text: "why\n" }]);
}, 30_000);

test("nothing that a report names is sent where assay.yaml says so, or where nothing failed", async () => {
  const command = `echo a > a.png; ${failing("a.png")}`;
  const none = await run({ command, attachments: "none" });
  expect([none.recorder.requests.length, none.execution.status]).toEqual([0, "failed"]);
  const passing = command.replace('<failure message="m"/>', "");
  const passed = await run({ command: passing });
  expect([passed.recorder.requests.length, passed.code]).toEqual([0, 0]);
  const all = await run({ command: passing, attachments: "all" });
  expect(all.recorder.files()).toMatchObject([{ path: "a.png", text: "a\n" }]);
}, 30_000);

test.each([
  [404, "the server takes none: No"],
  [401, "The server refuses the key: No"],
])(
  "a server that answers %i changes nothing of the result",
  async (status, problem) => {
    const passing = failing().replace('<failure message="m"/>', "");
    const task = { command: `echo a > a.log; ${passing}`, artifacts: "a.log" };
    const { output, code } = await run(task, { status, body: { error: { code: "NOT_FOUND", message: "No" } } });
    expect(code).toBe(0);
    expect(output).toContain(`Attachments were not sent: ${problem}`);
  },
  30_000,
);

test("a server keeps what a runner sends with the key of its own", async () => {
  const command = `echo a > a.png; head -c 4300000 /dev/zero > trace.bin; echo log > a.log; ${failing("a.png", "trace.bin")}`;
  const { project, execution } = await run({ command, artifacts: "*.log" }, undefined, false);
  const attachments = await project.list(`/executions/${execution.id}/test-runs/unit/attachments`);
  expect(attachments.map(({ name, bytes, testCaseIds }) => [name, bytes, testCaseIds.length]).toSorted()).toEqual([
    ["a.log", 4, 0],
    ["a.png", 2, 1],
    ["trace.bin", 4_300_000, 1],
  ]);
}, 30_000);
