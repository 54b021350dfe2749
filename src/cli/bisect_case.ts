/** Asks the server about the test that `assay bisect` searches for: its bug, flake rate, file and range. */

import { findSearchRange } from "../rules/culprit_range.ts";
import type { BugReport } from "../schema/bug_reports.ts";
import type { Project } from "../schema/projects.ts";
import type { TestCase, TestCaseResult } from "../schema/test_cases.ts";
import type { ListPage } from "../schema/page.ts";
import { askPatiently, messageOf, type Patience, type ServerAddress } from "./client.ts";

/** A test case or a bug, by its id or the address of its page. */
export type BisectCase = { id: string; kind: "tests" | "bugs" | undefined };

const UUID = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}";
const ADDRESS = new RegExp(`^(?:\\S{0,2000}/(tests|bugs)/)?(${UUID})(?:[?#/]\\S*)?$`, "i");
const PATIENCE: Patience = { waitsMs: [2_000, 5_000], withinMs: 90_000 };
const MAX_RESULTS = 100;

/** Returns undefined if the text is neither an id nor the address of a test case or a bug. */
export function readCase(text: string): BisectCase | undefined {
  const match = ADDRESS.exec(text.trim());
  return match ? { id: match[2]!.toLowerCase(), kind: match[1] as BisectCase["kind"] } : undefined;
}

/** Returns the answer; undefined: there is no such thing. Throws an error with the words of the server. */
export async function askServer<T>(
  address: ServerAddress,
  request: { path: string; body?: object },
): Promise<T | undefined> {
  const { path, body } = request;
  const headers = { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
  const post = body && { method: "POST" as const, body: JSON.stringify(body), headers };
  const answer = await askPatiently(address, { path, ...post }, PATIENCE);
  if (answer.status === 404) return undefined;
  if (answer.status >= 300) throw new Error(messageOf(answer));
  return JSON.parse(answer.text) as T;
}

const findTestCase = ({ id, kind }: BisectCase, address: ServerAddress): Promise<TestCase | undefined> =>
  kind === "bugs" ? Promise.resolve(undefined) : askServer<TestCase>(address, { path: `/test-cases/${id}` });

/** Returns the id of the bug: of a test case its newest bug that is open. Throws an error if there is none. */
export async function findBugId(one: BisectCase, address: ServerAddress): Promise<string> {
  if (await findTestCase(one, address)) {
    const path = `/bug-reports?status=open,in_progress&test_case_id=${one.id}&limit=1`;
    const [bug] = (await askServer<ListPage<BugReport>>(address, { path }))?.data ?? [];
    return bug?.id ?? fail("The test case has no open bug report");
  }
  return (await askServer<BugReport>(address, { path: `/bug-reports/${one.id}` }))?.id ?? fail(absence(one));
}

type KnownCase = {
  flakeRate: number | undefined;
  file: string | null;
  good: string | undefined;
  bad: string | undefined;
};

/** Throws an error if the server has no such test case. */
export async function readKnownCase(one: BisectCase, address: ServerAddress): Promise<KnownCase> {
  const test = (await findTestCase(one, address)) ?? fail(absence({ ...one, kind: "tests" }));
  const { defaultBranch = "main" } = (await askServer<Project>(address, { path: "" })) ?? {};
  const path = `/test-cases/${one.id}/results?limit=${MAX_RESULTS}&branch=${encodeURIComponent(defaultBranch)}`;
  const results = (await askServer<ListPage<TestCaseResult>>(address, { path }))?.data ?? [];
  const range = findSearchRange(
    results
      .filter(({ status, outage }) => status !== "skipped" && !outage)
      .map(({ executionId, commit, status }) => {
        return { executionId, commit, isPassed: status === "passed", isBug: status === "failed" };
      }),
  );
  const found = "obstacle" in range ? undefined : range;
  return { flakeRate: test.flakeRate || undefined, file: test.file, good: found?.good, bad: found?.bad };
}

const absence = ({ id, kind }: BisectCase): string =>
  `The server has no ${kind === "bugs" ? "bug report" : kind === "tests" ? "test case" : "test case or bug report"} ${id}`;

function fail(message: string): never {
  throw new Error(message);
}
