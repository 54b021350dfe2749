/** Three machines with a server of Assay and HAProxy, nginx in front of them, and a team with projects. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { connect, type Database } from "../../../src/database/connect.ts";
import { generateProjectKey } from "../../../src/operations/people/keys.ts";
import { insertProject, insertTeam } from "../../../src/store/projects.ts";
import { guardProcess } from "../../places.ts";
import { haproxyConfig, nginxConfig, superuserUrl } from "./examples.ts";
import { createMachine, type Machine, OUTSIDE } from "./machines.ts";

const ROOT = join(import.meta.dir, "../../..");
/** nginx chooses the server by the key: enough keys for each server to get some. */
const PROJECTS = 9;
const HAPROXY = "127.0.0.1:5000";
const DATABASE = { role: "assay", password: "assay-password", name: "assay" };
const DATABASE_URL = `postgres://${DATABASE.role}:${DATABASE.password}@${HAPROXY}/${DATABASE.name}`;
const READY_MS = 60_000;

export type Project = { project: string; key: string };

async function untilTrue(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const began = performance.now(); !(await holds().catch(() => false)); await Bun.sleep(100))
    if (performance.now() - began > READY_MS) throw new Error(`Not within ${READY_MS / 1000} s: ${what}`);
}

async function createAssayDatabase(): Promise<void> {
  const sql = postgres(superuserUrl(HAPROXY), {
    max: 1,
    onnotice() {},
    connect_timeout: 3,
    target_session_attrs: "primary",
  });
  await untilTrue("HAProxy finds the leader", async () => (await sql`select 1`).length === 1);
  await sql.unsafe(`create role ${DATABASE.role} login password '${DATABASE.password}'`);
  await sql.unsafe(`create database ${DATABASE.name} owner ${DATABASE.role}`);
  await sql.end();
}

const createProjects = async ({ begin }: Database): Promise<Project[]> =>
  await begin(async (sql) => {
    const team = await insertTeam(sql, "Cluster");
    const projects: Project[] = [];
    for (let at = 0; at < PROJECTS; at++) {
      const project = (await insertProject(sql, team, `project ${at}`))!;
      projects.push({ project, key: (await generateProjectKey(sql, project))!.key });
    }
    return projects;
  });

/** The database must be running. */
export async function startApplication(parent: string, logs: string) {
  const haproxyFile = join(parent, "haproxy.cfg");
  writeFileSync(haproxyFile, haproxyConfig());
  const haproxy = ["haproxy", "-db", "-f", haproxyFile];
  // What verifies has an HAProxy of its own.
  const own = Bun.spawn(haproxy, { stdio: ["ignore", "ignore", "ignore"] });
  guardProcess(own);
  await createAssayDatabase();

  const machines: Machine[] = [];
  for (const at of [1, 2, 3]) machines.push(await createMachine(`app${at}`, `10.0.0.1${at}`, parent, logs));
  const secretKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64");
  const children = new Map<Machine, Bun.Subprocess>();
  const urlOf = ({ address }: Machine) => `http://${address}:8080`;
  const isReady = async (machine: Machine) => (await fetch(`${urlOf(machine)}/readyz`)).status === 200;

  async function startServer(machine: Machine): Promise<void> {
    const environment = {
      DATABASE_URL,
      HOST: machine.address,
      PORT: "8080",
      DATA_DIR: join(machine.folder, "data"),
      PUBLIC_URL: `http://${OUTSIDE}`,
      TRUST_PROXY: OUTSIDE,
      RATE_LIMIT_PER_MINUTE: "0",
      SECRET_KEY: secretKey,
    };
    const command = [process.execPath, join(ROOT, "src/main.ts")];
    await untilTrue(`${machine.name} is ready`, async () => {
      // As a supervisor does: a server does not start while there is no leader.
      const child = children.get(machine);
      if (!child || child.exitCode !== null || child.signalCode !== null)
        children.set(machine, machine.start("assay", command, { env: environment, cwd: ROOT }));
      return await isReady(machine);
    });
  }

  for (const machine of machines) machine.start("haproxy", haproxy);
  for (const machine of machines) await startServer(machine);

  const nginxFolder = join(parent, "nginx");
  mkdirSync(nginxFolder);
  writeFileSync(
    join(nginxFolder, "nginx.conf"),
    nginxConfig(
      `${OUTSIDE}:80`,
      machines.map(({ address }) => `${address}:8080`),
    ),
  );
  const nginx = Bun.spawn(
    ["nginx", "-p", nginxFolder, "-c", join(nginxFolder, "nginx.conf"), "-e", join(logs, "nginx.log")],
    {
      cwd: nginxFolder,
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  guardProcess(nginx);
  const url = `http://${OUTSIDE}`;
  await untilTrue("nginx answers", async () => (await fetch(`${url}/healthz`)).status === 200);

  const database = connect({ url: DATABASE_URL }, 2);
  return {
    /** The address of nginx. */
    url,
    machines,
    urls: machines.map(urlOf),
    projects: await createProjects(database),
    /** The database, through an HAProxy of its own. */
    database,
    startServer,
    /** Kills the server of a machine, and nothing else there. */
    async killServer(machine: Machine): Promise<void> {
      const child = children.get(machine)!;
      machine.signal("SIGKILL", "src/main.ts");
      await child.exited;
    },
    /** Stops the server of a machine as an upgrade does. Returns its exit code. */
    async stopServer(machine: Machine): Promise<number> {
      const child = children.get(machine)!;
      machine.signal("SIGTERM", "src/main.ts");
      return await child.exited;
    },
    async isReady(): Promise<boolean> {
      return (await Promise.all(machines.map((machine) => isReady(machine).catch(() => false)))).every(Boolean);
    },
  };
}

export type Application = Awaited<ReturnType<typeof startApplication>>;
