/** A random history of a project, told over HTTP: builds, shards, retries, reruns, outages, quarantines, deletions. */

import { expireExecutions } from "../../src/work/expire.ts";
import type { Database } from "../../src/database/connect.ts";
import type { Answer, Ask } from "../harness.ts";

export type Tell = (request: string, given: Ask) => Promise<Answer>;
type Place = { project: string; key: string };

/** A number below `below`, the same ones for the same seed. */
export function createRandom(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

const TASKS: Record<string, number> = { unit: 12, e2e: 6, lint: 3 };
const BRANCHES = ["main", "main", "main", "feature/a", "feature/b"];

type Build = { id: string; branch: string; key: string; letters: Map<string, string> };

const reportOf = (task: string, letters: string, first = 0): string =>
  `<testsuite name="${task}">${[...letters]
    .map((letter, index) => {
      const number = first + index;
      const inner =
        letter === "f"
          ? `<failure message="case ${number} of ${task} broke"/>`
          : letter === "r"
            ? `<flakyFailure message="case ${number} of ${task} was slow"/>`
            : letter === "s"
              ? "<skipped/>"
              : "";
      return `<testcase classname="${task}" name="case ${number}" time="0.1">${inner}</testcase>`;
    })
    .join("")}</testsuite>`;

/** So many things happen in a project; the same ones for the same seed. */
export async function tellHistory(
  tell: Tell,
  database: Database,
  { project, key }: Place,
  { seed, steps }: { seed: number; steps: number },
): Promise<void> {
  const random = createRandom(seed);
  const oneOf = <T>(list: readonly T[]): T => list[random(list.length)]!;
  const builds: Build[] = [];
  let begun = 0;
  const sharded = new Set<string>();
  const send = async (query: Record<string, string>, body: string) => {
    const answer = await tell(`POST /projects/${project}/test-runs?${new URLSearchParams(query)}`, { key, body });
    if (answer.status >= 300) throw new Error(answer.text);
    return answer.body.executionId as string;
  };
  const lettersOf = (size: number, isOutage: boolean): string =>
    Array.from({ length: size }, () => (isOutage ? "f" : "ppppppppppppfrs"[random(15)]!)).join("");

  async function build(): Promise<void> {
    const [branch, buildKey] = [oneOf(BRANCHES), `k${++begun}`];
    // Of the whole build, or of one of its tasks.
    const [isOutage, isPart] = [random(9) === 0, random(2) === 0];
    const tasks = Object.keys(TASKS).filter(() => random(3) > 0);
    if (tasks.length === 0) tasks.push("unit");
    const made: Build = { id: "", branch, key: buildKey, letters: new Map() };
    for (const [index, task] of tasks.entries()) {
      const letters = lettersOf(TASKS[task]!, isOutage && (!isPart || index === 0));
      made.letters.set(task, letters);
      const isLast = index === tasks.length - 1 && random(8) > 0;
      const common = { branch, execution_key: buildKey, task_slug: task, commit: `${1_000_000 + begun}` };
      if (random(4) === 0) {
        const half = Math.ceil(letters.length / 2);
        // One of two shards may never come.
        if (random(5) > 0) await send({ ...common, shard: "1/2" }, reportOf(task, letters.slice(0, half)));
        made.id = await send(
          { ...common, shard: "2/2", ...(isLast ? { complete: "true" } : {}) },
          reportOf(task, letters.slice(half), half),
        );
        sharded.add(`${made.id} ${task}`);
      } else made.id = await send({ ...common, ...(isLast ? { complete: "true" } : {}) }, reportOf(task, letters));
    }
    builds.push(made);
  }

  async function retry({ id, letters }: Build): Promise<void> {
    const [task, before] = oneOf([...letters]);
    const after = [...before].map((letter) => (letter === "f" && random(2) === 0 ? "p" : letter)).join("");
    const half = Math.ceil(after.length / 2);
    const isSharded = sharded.has(`${id} ${task}`);
    if (isSharded && random(2) === 0)
      await send({ execution_id: id, task_slug: task, shard: "1/2" }, reportOf(task, after.slice(0, half)));
    else await send({ execution_id: id, task_slug: task, exit_code: "1" }, reportOf(task, after));
  }

  async function rerun({ id, letters }: Build): Promise<void> {
    const asked = await tell(`POST /projects/${project}/executions/${id}/rerun`, {
      key,
      body: { failedOnly: random(2) === 0 },
    });
    if (asked.status !== 201) return;
    for (const { slug } of asked.body.tasks)
      if (random(4) > 0) {
        const before = letters.get(slug) ?? "p";
        const after = [...before].map((letter) => (letter === "f" && random(2) === 0 ? "p" : letter)).join("");
        await send({ execution_id: asked.body.id, task_slug: slug }, reportOf(slug, after));
      }
  }

  async function quarantine(): Promise<void> {
    const { data } = (await tell(`GET /projects/${project}/test-cases?limit=100`, { key })).body;
    const { id, quarantine } = oneOf<any>(data);
    const body = { quarantine: quarantine === null ? { reason: "for now" } : null };
    await tell(`PATCH /projects/${project}/test-cases/${id}`, { key, body });
  }

  async function expire(): Promise<void> {
    await database.pool`update execution set expires_at = now() - interval '1 minute'
      where project_id = ${project} and expires_at is not null`;
    await expireExecutions(database);
  }

  for (let step = 0; step < steps; step++) {
    const what = builds.length < 3 ? 0 : random(12);
    if (what < 6) await build();
    else if (what < 8) await retry(oneOf(builds));
    else if (what < 9) await rerun(oneOf(builds));
    else if (what < 10) await quarantine();
    else if (what < 11) await expire();
    else {
      const [gone] = builds.splice(random(builds.length), 1);
      await tell(`DELETE /projects/${project}/executions/${gone!.id}`, { key });
    }
  }
}
