/** Sends a story to an Assay, as its CI system would, and writes down what it answers and when. */

import { type Cause } from "./failures.ts";
import type { Gate, GatedBuild } from "./gate.ts";
import { createRandom } from "../../random.ts";
import { type Reported, writeReport } from "./reports.ts";
import { type Build, fileIn, type Story, type Upload } from "./builds.ts";

/** Sends a request below /projects/:projectId and answers its body; fails unless it succeeds. */
export type Ask = (method: "GET" | "POST", path: string, body?: string) => Promise<any>;

/** A test case in an answer. */
export type Named = { taskSlug: string; suite: string; name: string };

export type Asked = { executionId: string; baselineId: string | null };

/** What the catalogue calls flaky or broken after a build of main. */
export type Snapshot = { build: Build; uploads: number; flaky: Named[]; broken: Named[] };

export type Bug = { title: string; occurrences: { build: Build; testCaseId: string }[] };

/** What an Assay has made of a story. */
export type Recording = {
  story: Story;
  /** Of the last report of each task of each build. */
  answers: { upload: Upload; newFailures: Named[]; flakyFailures: Named[]; mainFailures: Named[] }[];
  /** Each time that a report has reopened a bug. */
  reopened: { upload: Upload; bug: string }[];
  snapshots: Snapshot[];
  /** Asked when a build had ended, and once more at the end of the three weeks. */
  comparisons: { build: Build; first: Asked; again: Asked & { newFailures: Named[] } }[];
  catalogue: (Named & { id: string; health: string })[];
  bugs: Bug[];
  /** Empty where no gate decides. */
  gated: GatedBuild[];
  seconds: number;
};

async function walk(ask: Ask, path: string): Promise<any[]> {
  const all: any[] = [];
  for (let cursor = ""; ;) {
    const page = await ask("GET", `${path}${path.includes("?") ? "&" : "?"}limit=100${cursor}`);
    all.push(...page.data);
    if (!page.pagination.hasMore) return all;
    cursor = `&cursor=${encodeURIComponent(page.pagination.cursor)}`;
  }
}

function toReport({ build, task, attempt, cases, failed }: Upload, seed: number): string {
  const random = createRandom(seed, `report ${build.number} ${task.slug} ${attempt}`);
  const toReported = (testCase: Upload["cases"][number]): Reported => {
    const { area, duration, shownAs } = testCase;
    const name = shownAs?.(random) ?? testCase.name;
    const file = fileIn(build, testCase);
    const cause: Cause | undefined = failed.get(testCase);
    const line = 10 + (Bun.hash.xxHash32(testCase.name) % 400);
    const failure = cause ? cause.tell(random, { file, function: toFunction(testCase.name), line }) : null;
    return { name, area, file, durationMs: Math.round(duration * random.between(0.7, 1.5)), failure };
  };
  return writeReport(task, cases.map(toReported));
}

/** Runners of JavaScript call the function of a test anonymous. */
const toFunction = (name: string) => (/^\w+$/.test(name) ? name : "Object.<anonymous>");

const toQuery = ({ build, task, at, failed, isLastOfBuild }: Upload, isGated: boolean): string =>
  new URLSearchParams({
    execution_key: build.key,
    task_slug: task.slug,
    branch: build.branch,
    commit: build.commit,
    ...(build.environment ? { environment: build.environment } : {}),
    ...(build.hostOf ? { host: build.hostOf(task) } : {}),
    ...(build.pullRequest ? { pull_request: String(build.pullRequest.number) } : {}),
    build_url: `https://ci.example/acme/shop/runs/${build.number}`,
    completed_at: new Date(at).toISOString(),
    exit_code: failed.size > 0 ? "1" : "0",
    ...(isLastOfBuild ? { complete: "true" } : {}),
    ...(isGated ? { gate: "new" } : {}),
  }).toString();

export async function play(story: Story, ask: Ask, gate?: Gate): Promise<Recording> {
  const began = performance.now();
  const answers: Recording["answers"] = [];
  const snapshots: Snapshot[] = [];
  const reopened: Recording["reopened"] = [];
  const asked: { build: Build; first: Asked }[] = [];
  const builds = new Map<string, Build>();
  for (const [index, upload] of story.uploads.entries()) {
    const { build } = upload;
    const path = `/test-runs?${toQuery(upload, gate !== undefined)}`;
    const answer = await ask("POST", path, toReport(upload, story.seed));
    await gate?.record(upload, answer);
    builds.set(answer.executionId, build);
    const { newFailures, alsoFailingOnMain, stillFailing, quarantinedFailures } = answer;
    // Only flaky tests are in quarantine.
    const flakyFailures = [...answer.flakyFailures, ...quarantinedFailures];
    // What failed in the baseline already is main's as well.
    const mainFailures = [...alsoFailingOnMain, ...stillFailing];
    if (upload.isLastOfTask) answers.push({ upload, newFailures, flakyFailures, mainFailures });
    for (const { id, change } of answer.bugReports) if (change === "regressed") reopened.push({ upload, bug: id });
    if (!upload.isLastOfBuild) continue;
    asked.push({ build, first: await ask("GET", `/executions/${answer.executionId}/comparison`) });
    if (!build.isDefault) continue;
    const told = await walk(ask, "/test-cases?health=flaky,broken");
    const of = (health: string) => told.filter((one) => one.health === health);
    snapshots.push({ build, uploads: index + 1, flaky: of("flaky"), broken: of("broken") });
  }
  const comparisons: Recording["comparisons"] = [];
  for (const { build, first } of asked)
    comparisons.push({ build, first, again: await ask("GET", `/executions/${first.executionId}/comparison`) });
  const catalogue = await walk(ask, "/test-cases");
  const bugs: Bug[] = [];
  for (const { id, title } of await walk(ask, "/bug-reports?source=automatic")) {
    const occurrences: { executionId: string; testCaseId: string }[] = await walk(
      ask,
      `/bug-reports/${id}/occurrences`,
    );
    bugs.push({
      title,
      occurrences: occurrences.map(({ executionId, testCaseId }) => ({ build: builds.get(executionId)!, testCaseId })),
    });
  }
  return {
    story,
    answers,
    reopened,
    snapshots,
    comparisons,
    catalogue,
    bugs,
    gated: gate?.builds ?? [],
    seconds: (performance.now() - began) / 1000,
  };
}
