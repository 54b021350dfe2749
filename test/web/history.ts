/** A random history of a project, over HTTP: builds, shards, retries, reruns, outages, quarantines, deletions. */

import { expireExecutions } from "../../src/work/expire.ts";
import type { Database } from "../../src/database/connect.ts";
import type { createAsking } from "../asking.ts";
import { createRandom } from "../random.ts";

const TASKS: Record<string, number> = { unit: 12, e2e: 6, lint: 3 };
const BRANCHES = ["main", "main", "main", "feature/a", "feature/b"];

type Build = { id: string; letters: Map<string, string> };

function reportOf(task: string, letters: string, first = 0): string {
  const cases = [...letters].map((letter, index) => {
    const number = first + index;
    const inner = {
      f: `<failure message="case ${number} of ${task} broke"/>`,
      r: `<flakyFailure message="case ${number} of ${task} was slow"/>`,
      s: "<skipped/>",
    }[letter];
    return `<testcase classname="${task}" name="case ${number}" time="0.1">${inner ?? ""}</testcase>`;
  });
  return `<testsuite name="${task}">${cases.join("")}</testsuite>`;
}

/** So many things happen in a project; the same ones for the same seed. */
export async function createHistory(
  { project, call, list, patch, uploadReport }: ReturnType<typeof createAsking>,
  database: Database,
  { seed, steps }: { seed: number; steps: number },
): Promise<void> {
  const { pick, chance, text } = createRandom(seed);
  const builds: Build[] = [];
  let begun = 0;
  const sharded = new Set<string>();
  const send = async (query: Record<string, string>, report: string): Promise<string> =>
    (await uploadReport(report, query)).executionId;
  /** Half of the failed cases pass. */
  const repeat = (letters: string): string =>
    [...letters].map((letter) => (letter === "f" && chance(1 / 2) ? "p" : letter)).join("");

  async function build(): Promise<void> {
    const number = ++begun;
    // Of the whole build, or of one of its tasks.
    const [isOutage, isPart] = [chance(1 / 9), chance(1 / 2)];
    const tasks = Object.keys(TASKS).filter(() => chance(2 / 3));
    if (tasks.length === 0) tasks.push("unit");
    const made: Build = { id: "", letters: new Map() };
    const named = { branch: pick(BRANCHES), execution_key: `k${number}`, commit: `${1_000_000 + number}` };
    for (const [index, task] of tasks.entries()) {
      const isDown = isOutage && (!isPart || index === 0);
      const letters = text(TASKS[task]!, isDown ? "f" : "ppppppppppppfrs");
      made.letters.set(task, letters);
      const isLast = index === tasks.length - 1 && chance(7 / 8);
      const common = { ...named, task_slug: task };
      const last = { ...common, ...(isLast ? { complete: "true" } : {}) };
      if (chance(3 / 4)) made.id = await send(last, reportOf(task, letters));
      else {
        const half = Math.ceil(letters.length / 2);
        // One of two shards may never come.
        if (chance(4 / 5)) await send({ ...common, shard: "1/2" }, reportOf(task, letters.slice(0, half)));
        made.id = await send({ ...last, shard: "2/2" }, reportOf(task, letters.slice(half), half));
        sharded.add(`${made.id} ${task}`);
      }
    }
    builds.push(made);
  }

  async function retry({ id, letters }: Build): Promise<void> {
    const [task, before] = pick([...letters]);
    const after = repeat(before);
    const half = Math.ceil(after.length / 2);
    const common = { execution_id: id, task_slug: task };
    if (sharded.has(`${id} ${task}`) && chance(1 / 2))
      await send({ ...common, shard: "1/2" }, reportOf(task, after.slice(0, half)));
    else await send({ ...common, exit_code: "1" }, reportOf(task, after));
  }

  async function rerun({ id, letters }: Build): Promise<void> {
    const { status, body } = await call("POST", `/executions/${id}/rerun`, { failedOnly: chance(1 / 2) });
    if (status !== 201) return;
    for (const { slug } of body.tasks)
      if (chance(3 / 4))
        await send({ execution_id: body.id, task_slug: slug }, reportOf(slug, repeat(letters.get(slug) ?? "p")));
  }

  async function quarantine(): Promise<void> {
    const { id, quarantine } = pick(await list("/test-cases?limit=100"));
    await patch(`/test-cases/${id}`, { quarantine: quarantine === null ? { reason: "for now" } : null });
  }

  async function expire(): Promise<void> {
    await database.pool`update execution set expires_at = now() - interval '1 minute'
      where project_id = ${project} and expires_at is not null`;
    await expireExecutions(database);
  }

  async function remove(): Promise<void> {
    const gone = pick(builds);
    builds.splice(builds.indexOf(gone), 1);
    await call("DELETE", `/executions/${gone.id}`);
  }

  const others = [
    ...[() => retry(pick(builds)), () => retry(pick(builds)), () => rerun(pick(builds))],
    ...[quarantine, expire, remove],
  ];
  for (let step = 0; step < steps; step++)
    if (builds.length < 3 || chance(1 / 2)) await build();
    else await pick(others)();
}
