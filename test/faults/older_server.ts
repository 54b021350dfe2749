/**
 * An older version, then this one beside it on one database, as in an upgrade of several servers one after the other: both store
 * reports and answer. `bun test/faults/older_server.ts COMMIT…` needs git, and takes some seconds for each commit.
 */

import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { junit } from "../harness.ts";
import { createPlace, removePlace } from "../places.ts";
import { judge, startServers } from "./servers.ts";

const ROOT = join(import.meta.dir, "../..");
const REPORTS = 80;
const READS = ["executions", "test-cases", "test-runs", "bug-reports", "uploads", "trends", "state"];
const commits = process.argv.slice(2);
if (commits.length === 0) throw new Error("Name a commit whose version is the older one");

/** Writes the sources of a commit into a folder; they use the packages of this checkout. */
async function checkOut(commit: string, place: string): Promise<string> {
  const source = join(place, "source");
  mkdirSync(source);
  await Bun.$`git -C ${ROOT} archive ${commit} src sql package.json tsconfig.json | tar -x -C ${source}`;
  symlinkSync(join(ROOT, "node_modules"), join(source, "node_modules"));
  return source;
}

async function compare(commit: string): Promise<Parameters<typeof judge>> {
  const place = createPlace("older");
  const world = await startServers({ source: await checkOut(commit, place) });
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
  const schema = () => world.database.pool<{ number: number }[]>`select max(number) as number from migration`;
  const [before] = await schema();
  const newer = await world.add({}, ROOT);
  const [after] = await schema();
  for (let round = 0; round < REPORTS / 2; round++)
    for (const { url } of [older!, newer])
      await upload(url, ["pppp", "fppp", "pfpp", "ppff"][round % 4]!, round % 3 === 0 ? "topic" : "main");

  const unanswered: string[] = [];
  const answer = async (url: string) => (await fetch(url, { headers })).status;
  for (const path of READS)
    for (const { url } of [older!, newer])
      if ((await answer(`${project(url)}/${path}`)) !== 200) unanswered.push(`${url}/${path}`);
  const ready = [await answer(`${older!.url}/readyz`), await answer(`${newer.url}/readyz`)];
  const [stored] = await world.database.pool<{ runs: number }[]>`select count(*)::int as runs from test_run`;
  const errors = [...older!.logged("error"), ...newer.logged("error")];
  await world.stop();
  await removePlace(place);
  const where = `${commit}, schema ${before!.number} under ${after!.number}`;
  return [
    [`${where}: both take all reports`, refused.length === 0, refused[0] ?? `${number} uploads`],
    [`${where}: each report is stored once`, stored!.runs === number, `${stored!.runs} runs`],
    [`${where}: both answer`, unanswered.length === 0, unanswered.join(" ") || undefined],
    [`${where}: both are ready`, ready.every((status) => status === 200), ready.join(" ")],
    [`${where}: neither logs an error`, errors.length === 0, errors[0]?.["message"]],
  ];
}

const claims: Parameters<typeof judge> = [];
for (const commit of commits) claims.push(...(await compare(commit)));
judge(...claims);
