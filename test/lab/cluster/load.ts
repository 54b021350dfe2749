/** Uploads through nginx: some are repeated until they are acknowledged, others are sent at regular times to see when writes work. */

import type { Application, Project } from "./application.ts";

const CASES = 10;
const REPEATING_CLIENTS = 3;
const PROBE_EVERY_MS = 100;
const MAX_PROBES = 150;
const PAUSE_MS = 100;
const RETRY_MS = 250;
/** Longer than any deadline of the server or of nginx. */
const GIVE_UP_MS = 200_000;

type Attempt = { name: string; target: Project };

/** What callers experience: the answers by status, the longest request, and failures without a time to try again. */
export type Experience = {
  statuses: Map<string, number>;
  slowestMs: number;
  /** The longest time from the first attempt of an upload to its acknowledgement. */
  longestRetriedMs: number;
  unexpected: string[];
};

const newExperience = (): Experience => ({ statuses: new Map(), slowestMs: 0, longestRetriedMs: 0, unexpected: [] });

function report(name: string): string {
  const cases = Array.from({ length: CASES }, (_, at) => `<testcase name="${name} case ${at}" time="0.01"/>`);
  return `<testsuite name="${name}">${cases.join("")}</testsuite>`;
}

export function startUploads({ url, projects, database }: Pick<Application, "url" | "projects" | "database">) {
  /** Names of uploads that were acknowledged, which are also the slugs of their tasks. */
  const acknowledged: string[] = [];
  const acknowledgedAt: number[] = [];
  let experience = newExperience();
  let isOver = false;
  let [number, probing] = [0, 0];

  function next(): Attempt {
    const target = projects[number % projects.length]!;
    return { name: `upload-${number++}`, target };
  }

  function observe(response: Response, text: string): void {
    const isProxy = response.headers.get("content-type")?.startsWith("text/html") ?? false;
    const status = `${response.status}${isProxy ? " of nginx" : ""}`;
    experience.statuses.set(status, (experience.statuses.get(status) ?? 0) + 1);
    const isExpected =
      response.status === 201 ||
      (isProxy ? [502, 504].includes(response.status) : response.status === 500 && response.headers.has("retry-after"));
    if (!isExpected) experience.unexpected.push(`${status} ${text.slice(0, 200)}`);
  }

  async function upload({ name, target }: Attempt): Promise<boolean> {
    const began = performance.now();
    try {
      const response = await fetch(`${url}/api/v1/projects/${target.project}/test-runs?task_slug=${name}`, {
        method: "POST",
        headers: { authorization: `Bearer ${target.key}`, "idempotency-key": name },
        body: report(name),
        signal: AbortSignal.timeout(GIVE_UP_MS),
      });
      observe(response, await response.text());
      if (response.status !== 201) return false;
      acknowledged.push(name);
      acknowledgedAt.push(performance.now());
      return true;
    } catch (error) {
      experience.unexpected.push(String(error));
      return false;
    } finally {
      experience.slowestMs = Math.max(experience.slowestMs, performance.now() - began);
    }
  }

  async function repeat(): Promise<void> {
    while (!isOver) {
      const attempt = next();
      const began = performance.now();
      while (!(await upload(attempt))) await Bun.sleep(RETRY_MS);
      experience.longestRetriedMs = Math.max(experience.longestRetriedMs, performance.now() - began);
      await Bun.sleep(PAUSE_MS);
    }
  }

  async function probe(): Promise<void> {
    for (; !isOver; await Bun.sleep(PROBE_EVERY_MS)) {
      if (probing >= MAX_PROBES) continue;
      probing++;
      void upload(next()).finally(() => probing--);
    }
  }

  const working = [...Array.from({ length: REPEATING_CLIENTS }, repeat), probe()];

  return {
    acknowledged: () => acknowledged.length,
    /** The longest time without an acknowledgement since a moment, and when it ended. */
    longestPause(since: number): { ms: number; until: number } {
      const times = [...acknowledgedAt.filter((at) => at >= since), performance.now()];
      let longest = { ms: 0, until: since };
      let before = since;
      for (const at of times) {
        if (at - before > longest.ms) longest = { ms: at - before, until: at };
        before = at;
      }
      return longest;
    },
    /** Uploads that were acknowledged since a moment. */
    acknowledgedSince: (since: number) => acknowledgedAt.filter((at) => at >= since).length,
    /** What callers have experienced since the last call. */
    takeExperience(): Experience {
      const taken = experience;
      experience = newExperience();
      return taken;
    },
    /** Acknowledged uploads that are missing, stored twice, or stored by halves, from number `first` on. */
    async findDamaged(first = 0): Promise<{ lost: string[]; repeated: string[]; partial: string[] }> {
      const names = acknowledged.slice(first);
      const rows = await database.pool<{ slug: string; runs: number; cases: number }[]>`
        select task_slug as slug, count(*)::int as runs,
          min((select coalesce(sum(cardinality(c.test_cases)), 0) from case_result c
            where c.project_id = r.project_id and c.run_id = r.id))::int as cases
        from test_run r where task_slug like 'upload-%' group by 1`;
      const stored = new Map(rows.map((row) => [row.slug, row]));
      return {
        lost: names.filter((name) => !stored.has(name)),
        repeated: rows.filter(({ runs }) => runs !== 1).map(({ slug }) => slug),
        partial: rows.filter(({ cases, runs }) => cases !== CASES && runs === 1).map(({ slug }) => slug),
      };
    },
    async stop(): Promise<void> {
      isOver = true;
      await Promise.all(working);
      while (probing > 0) await Bun.sleep(50);
    },
  };
}

export type Uploads = ReturnType<typeof startUploads>;
