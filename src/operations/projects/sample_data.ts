/** Two weeks of a plausible project, for looking around before the first report of one's own. */

import { takeReport } from "../ingest/ingest.ts";
import { prepareReport } from "../ingest/prepare.ts";
import { resolveReport } from "../ingest/resolve.ts";
import { toCase } from "../../reports/fields.ts";
import type { ReportedCase, Report } from "../../reports/report.ts";
import { createCutter } from "../../reports/text.ts";
import type { UploadParameters } from "../../schema/test_runs.ts";
import type { Tx } from "../../database/connect.ts";
import { lockExecutionKey } from "../../store/execution_of_build.ts";
import { markSample } from "../../store/onboarding.ts";
import { lockTestCases } from "../../store/test_case_names.ts";

const DAYS = 14;
const RUNS_A_DAY = 3;
const DAY_MS = 86_400_000;

type Suite = { taskSlug: string; suite: string; file: string; names: string[] };

const SUITES: Suite[] = [
  {
    taskSlug: "sample: checkout",
    suite: "Checkout",
    file: "tests/checkout.test.ts",
    names: [
      ...["adds an item to the cart", "removes an item", "applies a voucher", "refuses an expired voucher"],
      ...["charges the card once", "sends a receipt", "keeps the cart over a log-in", "computes shipping"],
      ...["rounds prices to cents", "refuses an empty cart", "shows the delivery date", "lets a guest pay"],
    ],
  },
  {
    taskSlug: "sample: search",
    suite: "Search",
    file: "tests/search.test.ts",
    names: [
      ...["finds by title", "finds by author", "ranks exact matches first", "ignores accents", "pages results"],
      ...["filters by price", "suggests while typing", "answers in time", "finds nothing politely", "sorts by date"],
    ],
  },
];

/** Returns the same numbers each time, so that sample data is always the same. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Returns the failure of a sample case, if any: one case is flaky, one has a bug that gets fixed, and one has a bug that does not. */
function outcome(
  name: string,
  day: number,
  random: () => number,
): Partial<Pick<ReportedCase, "message" | "stack" | "flaky">> {
  if (name === "answers in time" && random() < 0.2)
    return { message: `Timed out: no answer within ${2000 + Math.floor(random() * 500)} ms`, flaky: true };
  if (name === "applies a voucher" && day >= 4 && day < 7)
    return {
      message: "TypeError: Cannot read properties of undefined (reading 'percent')",
      stack:
        "TypeError: Cannot read properties of undefined (reading 'percent')\n    at discount (src/voucher.ts:31:18)\n    at Context.<anonymous> (tests/checkout.test.ts:48:20)",
    };
  if (name === "ignores accents" && day >= 12)
    return {
      message: "AssertionError: the results for café lack the coffee shop",
      stack:
        "AssertionError: the results for café lack the coffee shop\n    at normalize (src/index/normalize.ts:12:9)",
    };
  return {};
}

function report({ suite, file, names }: Suite, day: number, random: () => number): Report {
  const cutter = createCutter();
  return {
    format: "sample",
    suite,
    cases: names.map((name, index) => {
      const { message = null, stack = null, flaky = false } = outcome(name, day, random);
      const status = message === null || flaky ? "passed" : "failed";
      const durationMs = Math.round((20 + index * 15) * (0.8 + random() * 0.6));
      return toCase(cutter, { suite, name, file, line: 10 + index * 7, status, flaky, durationMs, message, stack });
    }),
    countsOnly: null,
    partial: false,
    durationMs: null,
    completedAt: null,
    context: {},
    warnings: [],
  };
}

const keyOf = (run: number): string => `sample ${run + 1}`;

/** Inserts sample data through the same code as uploads, with other times. */
export async function insertSampleData(sql: Tx, projectId: string, defaultBranch: string, now: Date): Promise<void> {
  const random = createRandom(7);
  const executionIds: string[] = [];
  // Keeps the order of database/locks.ts: storing a report takes locks that come after those of the next run.
  await lockTestCases(sql, projectId);
  for (let run = 0; run < DAYS * RUNS_A_DAY; run++) await lockExecutionKey(sql, projectId, keyOf(run));
  for (let run = 0; run < DAYS * RUNS_A_DAY; run++) {
    const at = new Date(now.getTime() - DAYS * DAY_MS + ((run + 0.5) / RUNS_A_DAY) * DAY_MS);
    const branch = run % RUNS_A_DAY === 1 ? `sample/feature-${Math.floor(run / 9) + 1}` : defaultBranch;
    const commit = Bun.SHA256.hash(`sample ${run}`, "hex").slice(0, 40);
    let executionId: string | undefined;
    for (const [index, suite] of SUITES.entries()) {
      const parameters: UploadParameters = {
        execution_id: executionId,
        execution_key: executionId === undefined ? keyOf(run) : undefined,
        task_slug: suite.taskSlug,
        branch,
        commit,
        completed_at: at.toISOString(),
        complete: index === SUITES.length - 1,
        allow_empty: false,
      };
      const digest = Bun.SHA256.hash(`${commit} ${index}`, "hex");
      const content = report(suite, Math.floor(run / RUNS_A_DAY), random);
      const prepared = await prepareReport(projectId, content, parameters, digest);
      const numbers = await resolveReport(sql, (work) => work(sql), projectId, prepared, parameters);
      const incoming = { prepared, parameters, numbers, isMuted: true };
      const taken = await takeReport(sql, projectId, incoming, at);
      executionId = taken.run.executionId;
    }
    executionIds.push(executionId!);
  }
  await markSample(
    sql,
    projectId,
    executionIds,
    SUITES.map(({ taskSlug }) => taskSlug),
  );
}
