/**
 * An older version, then this one beside it on one database, as in an upgrade of several servers one after the other: both store
 * reports and answer. The older client and runner work with the newer server, and the older server does not start any more. `bun test/lab/faults/older_server.ts [COMMIT…]` needs git,
 * and takes some seconds for each commit; without one it takes those of all released schemas from 12 on.
 */

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { junit } from "../../harness.ts";
import { createPlace, guardProcess, removePlace } from "../../places.ts";
import { checkOut } from "../../upgrades/old_server.ts";
import { RELEASES } from "../../upgrades/releases.ts";
import { judge, startServers } from "./servers.ts";

const ROOT = join(import.meta.dir, "../../..");
const REPORTS = 80;
const WARM_UP_ROUNDS = 4;
const READS = ["executions", "test-cases", "test-runs", "bug-reports", "uploads", "trends", "state"];
const REFUSAL = /^The database has schema \d+, this version of Assay knows up to \d+: .*\n$/;
/** Versions of earlier schemas fail uploads beside this one: docs/operations.md says that they are to be stopped before. */
const OLDEST_SCHEMA = 12;
const named = process.argv.slice(2);
const working = RELEASES.filter(({ schema }) => schema >= OLDEST_SCHEMA);
const commits = named.length > 0 ? named : working.map(({ commit }) => commit);

async function compare(commit: string): Promise<Parameters<typeof judge>> {
  const place = createPlace("older");
  const source = await checkOut(commit, place);
  const world = await startServers({ source });
  const [older] = world.servers;
  const headers = { authorization: `Bearer ${world.key}` };
  const project = (url: string) => `${url}/api/v1/projects/${world.project}`;
  const refused: string[] = [];
  let number = 0;

  async function upload(url: string, letters: string, branch: string): Promise<void> {
    const build = `execution_key=build-${++number}&commit=${number.toString(16).padStart(40, "0")}&complete=true`;
    const path = `${project(url)}/test-runs?task_slug=unit&branch=${branch}&${build}`;
    const response = await fetch(path, { method: "POST", headers, body: junit(letters) });
    const text = await response.text();
    if (response.status !== 201) refused.push(`${response.status} ${text}`);
  }

  for (const letters of ["pppp", "fppp", "pppp"]) await upload(older!.url, letters, "main");
  // All connections of the older server have prepared its statements before the upgrade.
  for (let round = 0; round < WARM_UP_ROUNDS; round++)
    await Promise.all(Array.from({ length: 50 }, () => upload(older!.url, "pfpp", "topic")));
  const schema = () => world.database.pool<{ number: number }[]>`select max(number) as number from migration`;
  const [before] = await schema();
  const newer = await world.add({}, ROOT);
  const [after] = await schema();
  for (let round = 0; round < REPORTS / 2; round++)
    for (const { url } of [older!, newer])
      await upload(url, ["pppp", "fppp", "pfpp", "ppff"][round % 4]!, round % 3 === 0 ? "topic" : "main");

  const unanswered: string[] = [];
  const answer = async (url: string) => (await fetch(url, { headers })).status;
  // A path that the older version does not have is 404 there.
  for (const path of READS)
    for (const { url } of [older!, newer]) {
      const status = await answer(`${project(url)}/${path}`);
      if (status !== 200 && !(url === older!.url && status === 404)) unanswered.push(`${status} ${url}/${path}`);
    }
  const ready = [await answer(`${older!.url}/readyz`), await answer(`${newer.url}/readyz`)];
  const [stored] = await world.database.pool<{ runs: number }[]>`select count(*)::int as runs from test_run`;
  const errors = [...older!.logged("error"), ...newer.logged("error")];
  const clientFailure = await runOlderClient(source, { url: newer.url, project: world.project, key: world.key });
  const refusal = await readRefusal(source, world.directory);
  await world.stop();
  await removePlace(place);
  const where = `${commit}, schema ${before!.number} under ${after!.number}`;
  return [
    [`${where}: both take all reports`, refused.length === 0, refused[0] ?? `${number} uploads`],
    [`${where}: each report is stored once`, stored!.runs === number, `${stored!.runs} runs`],
    [`${where}: both answer`, unanswered.length === 0, unanswered.join(" ") || undefined],
    [`${where}: both are ready`, ready.every((status) => status === 200), ready.join(" ")],
    [`${where}: neither logs an error`, errors.length === 0, errors[0] && JSON.stringify(errors[0])],
    [`${where}: the older client and runner work`, clientFailure === undefined, clientFailure],
    [
      `${where}: the older one does not start again`,
      after!.number === before!.number || REFUSAL.test(refusal),
      refusal.trim(),
    ],
  ];
}

type Target = { url: string; project: string; key: string };

/** Uploads a report with the older client, and runs a task with the older runner; returns the first failure. */
async function runOlderClient(source: string, { url, project, key }: Target): Promise<string | undefined> {
  // The first versions have no client.
  if (!existsSync(join(source, "src/cli/upload.ts"))) return undefined;
  const headers = { authorization: `Bearer ${key}` };
  const executions = `${url}/api/v1/projects/${project}/executions`;
  const body = JSON.stringify({ mode: "run", tasks: ["older"] });
  const started = await fetch(executions, { method: "POST", headers, body });
  const { id } = (await started.json()) as { id: string };
  const folder = join(source, "..", "client");
  mkdirSync(folder);
  const command = ["cp", "stored.xml", "report.xml"];
  await Bun.write(join(folder, "stored.xml"), junit("pp"));
  const task = { command: command.join(" "), report: "report.xml" };
  await Bun.write(join(folder, "assay.yaml"), JSON.stringify({ tasks: { older: task } }));
  const environment = { ...process.env, ASSAY_URL: url, ASSAY_PROJECT: project, ASSAY_KEY: key };
  for (const args of [
    ["upload", "report.xml", "--task", "older-client", "--", ...command],
    ["runner", "--once"],
  ]) {
    const child = Bun.spawn([process.execPath, join(source, "src/cli/assay.ts"), ...args], {
      ...{ cwd: folder, env: environment, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: 30_000 },
    });
    guardProcess(child);
    const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    if ((await child.exited) !== 0) return `${args[0]} ended with ${child.exitCode}: ${errors}`;
    const printed = output + errors;
    if (args[0] === "upload" && !printed.includes("PASSED older-client: 2 passed")) return printed;
  }
  const ended = await fetch(`${executions}/${id}`, { headers });
  const { status } = (await ended.json()) as { status: string };
  return status === "passed" ? undefined : `the task of the runner ended with ${status}`;
}

/** Starts the older version on the migrated database; returns what it prints before it ends. */
async function readRefusal(source: string, dataDir: string): Promise<string> {
  const environment = {
    ...process.env,
    DATABASE_URL: "",
    PUBLIC_URL: "",
    PORT: "0",
    DATA_DIR: dataDir,
    LOG_LEVEL: "warn",
  };
  const child = Bun.spawn([process.execPath, join(source, "src/main.ts")], {
    ...{ env: environment, stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  });
  guardProcess(child);
  // A version that starts nevertheless is ended.
  const deadline = setTimeout(() => child.kill("SIGTERM"), 10_000);
  const text = await new Response(child.stderr).text();
  clearTimeout(deadline);
  return text;
}

const claims: Parameters<typeof judge> = [];
for (const commit of commits) claims.push(...(await compare(commit)));
judge(...claims);
