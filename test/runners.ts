/** Runners of `assay runner` and the executions that they run, with a server that can go away and come back. */

import { afterAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createAsking, type Project } from "./asking.ts";
import {
  createFolder,
  type Ended,
  start as startCommand,
  startProgram,
  type Variables,
  variablesOf,
} from "./commands.ts";
import { type createHarness, junit, until } from "./harness.ts";

/** A request of a runner, as its server got it. */
export type RunnerRequest = { method: string; path: string; body: string; at: number };

/** What the runner takes for the server: passes everything on and keeps it, and is away when it is told to be. */
function createFront(url: string) {
  const requests: RunnerRequest[] = [];
  const answers: ((request: RunnerRequest) => Response | undefined)[] = [];
  const serve = (port: number) =>
    Bun.serve({
      ...{ port, hostname: "127.0.0.1", development: false, idleTimeout: 0 },
      async fetch(request) {
        const bytes = new Uint8Array(await request.arrayBuffer());
        const isGzip = request.headers.get("content-encoding") === "gzip";
        const { pathname, search } = new URL(request.url);
        const body = Buffer.from(isGzip ? Bun.gunzipSync(bytes) : bytes).toString();
        const recorded = { method: request.method, path: pathname + search, body, at: performance.now() };
        requests.push(recorded);
        const scripted = answers[0]?.(recorded);
        if (scripted) {
          answers.shift();
          return scripted;
        }
        const passed = await fetch(url + pathname + search, {
          ...{ method: request.method, headers: request.headers, signal: request.signal },
          ...(request.method === "GET" ? {} : { body: bytes }),
        });
        return new Response(await passed.bytes(), { status: passed.status, headers: plain(passed.headers) });
      },
    });
  let server = serve(0);
  const { port } = server;
  afterAll(() => server.stop(true));
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    /** What is answered instead of what the server would say, once. */
    answerOnce: (answer: (request: RunnerRequest) => Response | undefined) => void answers.push(answer),
    leave: () => server.stop(true),
    comeBack: () => void (server = serve(port!)),
  };
}

const plain = (headers: Headers) => {
  const kept = new Headers(headers);
  for (const name of ["content-encoding", "content-length", "transfer-encoding"]) kept.delete(name);
  return kept;
};

export type RunnerOptions = {
  place: Project;
  tasks: object;
  args?: string[];
  environment?: Variables;
  /** Default: one of its own, with an assay.yaml that has the tasks. */
  directory?: string;
  /** As a process of its own, which can be killed. */
  isProcess?: boolean;
};

function startRunner(
  url: string,
  { place, tasks, args = [], environment = {}, isProcess = false, ...more }: RunnerOptions,
) {
  const front = createFront(url);
  const directory = more.directory ?? createFolder({ "assay.yaml": JSON.stringify({ tasks }) });
  const options = { cwd: directory, env: { ...variablesOf(front.url, place), ...environment } };
  const runner = (isProcess ? startProgram : startCommand)(["runner", ...args], options);
  return {
    front,
    directory,
    file: (name: string) => join(directory, name),
    output: runner.output,
    errors: runner.errors,
    signal: (name: "SIGTERM" | "SIGINT") => runner.signal(name),
    kill: () => (runner as ReturnType<typeof startProgram>).child.kill("SIGKILL"),
    pid: () => (runner as ReturnType<typeof startProgram>).child.pid,
    ended: runner.ended.then(({ code }: Ended) => code),
    syncs: () => front.requests.filter(({ path }) => path.endsWith("/leases")).map(({ body }) => JSON.parse(body)),
  };
}

export type StartedRunner = ReturnType<typeof startRunner>;
type Harness = Pick<Awaited<ReturnType<typeof createHarness>>, "url" | "ask" | "acme" | "addProject">;

/** What tests of runners do with a server. */
export function createRunners({ url, ask, acme, addProject }: Harness) {
  const get = (place: Project, path: string) => createAsking(ask, place).get(path);
  const see = (place: Project, id: string) => get(place, `/executions/${id}`);
  return {
    startRunner: (options: RunnerOptions) => startRunner(url, options),
    /** A project of its own: queues are a project's. */
    fresh: (): Promise<Project> => addProject(acme),
    start: async ({ project, key }: Project, more: object = {}) => {
      const body = { mode: "run", tasks: ["unit"], ...more };
      const answer = await ask(`POST /projects/${project}/executions`, { key, body });
      expect(answer.status).toBe(201);
      return answer.body.id as string;
    },
    see,
    logOf: (place: Project, id: string, task = "unit") => get(place, `/executions/${id}/test-runs/${task}/log`),
    casesOf: async (place: Project, id: string, task = "unit") =>
      (await get(place, `/executions/${id}/test-runs/${task}/cases`)).data,
    ends: async (place: Project, id: string) => {
      await until(async () => !["queued", "running"].includes((await see(place, id)).status));
      return await see(place, id);
    },
    runs: (place: Project, id: string) => until(async () => (await see(place, id)).tasks[0].status === "running"),
  };
}

export const report = (letters: string, name = "report.xml") => `printf '%s' '${junit(letters)}' > "${name}"`;
export const task = (command: string, more: object = {}) => ({ command, report: "*.xml", ...more });
/** Waits until a file is there. */
export const awaitFile = (name: string) => `while [ ! -e ${name} ]; do sleep 0.02; done`;

export const readText = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};

export async function stopped(runner: StartedRunner): Promise<void> {
  runner.signal("SIGTERM");
  expect(await runner.ended).toBe(0);
}

export function lives(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
export const pidIn = (text: string) => Number(/pid (\d+)/.exec(text)![1]);

/** A task as a server hands it out to a runner. */
export const handedOut = {
  timeoutSeconds: 60,
  execution: { id: crypto.randomUUID(), key: null, branch: null, commit: null, baseUrl: null, later: "unknown" },
  taskSlug: "unit",
  attempt: 1,
  variables: {},
  secretNames: [],
  executionNames: [],
  later: "a field of a newer server",
};
