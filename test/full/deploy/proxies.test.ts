/** The examples for nginx, HAProxy and Caddy, in front of two servers on one database; skipped where they are not installed. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findPort } from "../../../src/http/serve.ts";
import { openStream } from "../../event_stream.ts";
import { createHarness, createServer, junit, until } from "../../harness.ts";
import { createPlace, guardProcess, removePlace } from "../../places.ts";
import { beginUpload } from "../../slow_upload.ts";

const DEPLOY = join(import.meta.dir, "../../../deploy");
const LIMIT = 60;
/** Other addresses of the loopback interface are clients that no server trusts. */
const PROXY = "127.0.0.1";
const CLIENT = "127.0.0.2";

type Proxy = {
  name: string;
  example: string;
  /** Whether an answer reaches a client that has not sent its whole request; a server of Go waits for more of it. */
  passesEarlyAnswers: boolean;
  /** What the example has and a test cannot have, with its replacement. */
  changes: (port: number) => [example: string, replacement: string][];
  /** Returns the whole configuration. */
  wrap: (example: string) => string;
  command: (program: string, config: string, folder: string) => string[];
};

const PROXIES: Proxy[] = [
  {
    name: "nginx",
    example: "nginx.conf",
    passesEarlyAnswers: true,
    changes: (port) => [
      ["listen 443 ssl;", `listen ${PROXY}:${port};`],
      ["    ssl_certificate     /etc/ssl/assay.pem;\n", ""],
      ["    ssl_certificate_key /etc/ssl/assay.key;\n", ""],
      ["/var/cache/nginx/assay", "cache"],
    ],
    wrap: (example) => `daemon off;
master_process off;
pid nginx.pid;
events {}
http {
access_log off;
${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${name};`).join("\n")}
${example}
}`,
    command: (program, config, folder) => [program, "-p", folder, "-c", config, "-e", "error.log"],
  },
  {
    name: "haproxy",
    example: "haproxy.cfg",
    passesEarlyAnswers: true,
    changes: (port) => [["bind :443 ssl crt /etc/ssl/assay.pem", `bind ${PROXY}:${port}`]],
    wrap: (example) => example,
    command: (program, config) => [program, "-db", "-f", config],
  },
  {
    name: "caddy",
    example: "Caddyfile",
    passesEarlyAnswers: false,
    changes: (port) => [["assay.example.com", `http://:${port}`]],
    wrap: (example) => `{\nadmin off\ndefault_bind ${PROXY}\n}\n${example}`,
    command: (program, config) => [program, "run", "--config", config, "--adapter", "caddyfile"],
  },
];

const options = { rateLimitPerMinute: LIMIT, trustProxy: [PROXY] };
let readiness: () => Promise<boolean> = async () => true;
const first = await createHarness({ ...options, isReady: () => readiness() });
const second = await createServer(first.database, options);

/** Returns how many lists of runs a server has answered. */
async function countLists({ metrics }: Pick<typeof first, "metrics">): Promise<number> {
  const lines = (await metrics.exposition()).matchAll(
    /^assay_http_requests_total\{[^}]*projectId\/test-runs"[^}]*\} (\d+)$/gm,
  );
  return lines.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function startProxy({ name, example, changes, wrap, command }: Proxy, program: string, folder: string) {
  const port = await findPort(PROXY, 0);
  const backends = [first, second].map(({ url }, index): [string, string] => [
    `10.0.0.1${index + 1}:8080`,
    url.replace("http://", "").replace("localhost", PROXY),
  ]);
  let text = readFileSync(join(DEPLOY, example), "utf8");
  for (const [found, replacement] of [...changes(port), ...backends]) {
    expect(text, `${example} contains ${found}`).toContain(found);
    text = text.replace(found, replacement);
  }
  const config = join(folder, name);
  writeFileSync(config, wrap(text));
  const child = Bun.spawn(command(program, config, folder), {
    cwd: folder,
    env: { PATH: process.env["PATH"]!, HOME: folder },
    stdout: "ignore",
    stderr: Bun.file(join(folder, "output.log")),
  });
  guardProcess(child);
  const url = `http://${PROXY}:${port}`;
  await until(async () => {
    if (child.exitCode !== null) throw new Error(readFileSync(join(folder, "output.log"), "utf8"));
    const answer = await fetch(`${url}/healthz`).catch(() => undefined);
    return answer?.status === 200;
  }, 20);
  return { url, child };
}

for (const proxy of PROXIES) {
  const program = Bun.which(proxy.name, { PATH: `${process.env["PATH"]}:/usr/sbin` });
  if (program === null) console.warn(`${proxy.name} is not installed: its example is not tested`);

  describe.skipIf(program === null)(`${proxy.example} with two servers`, () => {
    let url: string;
    let folder: string;
    let child: Bun.Subprocess;

    beforeAll(async () => {
      folder = createPlace("proxy");
      ({ url, child } = await startProxy(proxy, program!, folder));
    });
    afterAll(async () => {
      // Caddy would wait for connections that clients keep open.
      child.kill("SIGKILL");
      await child.exited;
      await removePlace(folder);
    });

    test("each key has one limit, however the header is written, and the keys use both servers", async () => {
      const projects = await Promise.all(Array.from({ length: 12 }, () => first.addProject(first.acme)));
      const before = await Promise.all([first, second].map(countLists));
      for (const { project, key } of projects) {
        const answers = Array.from({ length: LIMIT + 10 }, async (_, index) => {
          const authorization = `${["Bearer ", "bearer ", "BEARER  "][index % 3]}${key}`;
          const answer = await fetch(`${url}/api/v1/projects/${project}/test-runs`, { headers: { authorization } });
          await answer.arrayBuffer();
          return answer.status;
        });
        const statuses = await Promise.all(answers);
        expect(statuses.filter((status) => status === 200)).toHaveLength(LIMIT);
        expect(statuses.filter((status) => status === 429)).toHaveLength(10);
      }
      const after = await Promise.all([first, second].map(countLists));
      expect(Math.min(after[0]! - before[0]!, after[1]! - before[1]!)).toBeGreaterThan(0);
    });

    test.each<[string, () => Promise<boolean>]>([
      ["says that it is not ready", async () => false],
      ["does not answer", () => new Promise(() => {})],
    ])("a server that %s gets nothing after ten seconds, and everything goes to the other", async (_, answer) => {
      /** With keys of its own, so that no limit is reached. */
      const askAll = async () => {
        const projects = await Promise.all(Array.from({ length: 16 }, () => first.addProject(first.acme)));
        const before = await countLists(first);
        const answers = projects.map(({ project, key }) =>
          fetch(`${url}/api/v1/projects/${project}/test-runs`, { headers: { authorization: `Bearer ${key}` } }),
        );
        const statuses = await Promise.all(answers.map(async (one) => (await one).status));
        return { statuses, isLeft: (await countLists(first)) === before };
      };
      const all = Array.from({ length: 16 }, () => 200);
      expect(await askAll()).toEqual({ statuses: all, isLeft: false });
      readiness = answer;
      try {
        let rounds = 0;
        await until(async () => (rounds = (await askAll()).isLeft ? rounds + 1 : 0) === 3, 10);
        for (let round = 0; round < 3; round++) expect(await askAll()).toEqual({ statuses: all, isLeft: true });
      } finally {
        readiness = async () => true;
      }
      await until(async () => !(await askAll()).isLeft, 10);
    });

    test("events arrive at once", async () => {
      const { project, key } = await first.addProject(first.acme);
      const stream = await openStream(url, project, { key });
      expect(stream.status).toBe(200);
      const headers = { authorization: `Bearer ${key}` };
      const path = `${url}/api/v1/projects/${project}/test-runs?task_slug=unit&complete=true`;
      expect((await fetch(path, { method: "POST", headers, body: junit("pf") })).status).toBe(201);
      await until(() => stream.told.some(({ event }) => event === "test_run.completed"));
      await stream.close();
    });

    test("large reports are accepted", async () => {
      const { project, key } = await first.addProject(first.acme);
      const body = junit("p".repeat(40_000));
      const path = `${url}/api/v1/projects/${project}/test-runs?task_slug=unit`;
      const uploaded = await fetch(path, { method: "POST", headers: { authorization: `Bearer ${key}` }, body });
      expect(await uploaded.json()).toMatchObject({ passed: 40_000 });
    });

    test.skipIf(!proxy.passesEarlyAnswers)("a report is refused while it arrives", async () => {
      const { project } = await first.addProject(first.acme);
      const upload = await beginUpload(url, { project, key: "svc_proj_unknown" }, junit("pf"));
      expect(await upload.answered).toContain("401");
      upload.finish();
    });

    test("the servers know the client's address, and ignore an address that the client claims", async () => {
      const { project, key } = await first.addProject(first.acme);
      const headers = { authorization: `Bearer ${key}` };
      const path = `${url}/api/v1/projects/${project}`;
      await Bun.$`curl -sS --interface ${CLIENT} -H ${`Authorization: Bearer ${key}`} -H ${"X-Forwarded-For: 203.0.113.9"} --data-binary nothing ${`${path}/test-runs?task_slug=unit`}`.quiet();
      let addresses: string[] = [];
      await until(async () => {
        const { data } = (await (await fetch(`${path}/uploads`, { headers })).json()) as {
          data: { clientAddress: string }[];
        };
        addresses = data.map(({ clientAddress }) => clientAddress);
        return addresses.length > 0;
      });
      expect(addresses).toEqual([CLIENT]);
    });
  });
}
