/** The digest of a project: what changed since the last one, or in a week. */

import type { AutomationServices, Occasion } from "./occasion.ts";
import type { Action } from "../../schema/automation_actions.ts";
import type { CaseRef } from "../../schema/case_ref.ts";
import type { Digest } from "../../schema/digest.ts";
import type { Notification } from "../../schema/notifications.ts";
import { bugReportUrl, testCaseUrl } from "../../schema/urls.ts";
import {
  countBugs,
  countFlakyTests,
  countRescued,
  type DigestQuery,
  selectBuildFigures,
  selectDigestPeriod,
  selectHealthEvents,
  selectOldestBugs,
  selectSlowerInPeriod,
  selectSlowest,
} from "../../store/digest.ts";
import type { TeamProject } from "../../store/automations.ts";
import type { Tx } from "../../database/connect.ts";
import { toDigestNotice } from "../../wording/digest.ts";

/** The longest period of a digest: events are kept for as long. */
const MAX_PERIOD_MS = 7 * 86_400_000;
const MAX_TESTS = 5;
const MAX_SLOW_TESTS = 3;
const MAX_OLD_BUGS = 3;

/** Returns the message of a digest. Undefined: nothing has happened. */
export async function findDigest(
  sql: Tx,
  { publicUrl }: AutomationServices,
  { owners }: Extract<Action, { type: "digest" }>,
  { teamId, automation }: Pick<Occasion, "teamId" | "automation">,
  project: TeamProject,
): Promise<Notification | undefined> {
  const { since, until } = await selectDigestPeriod(sql, teamId, automation.id, MAX_PERIOD_MS);
  const period = { teamId, projectId: project.id, before: 2 * since - until, since, until, owners };
  const digest = await loadDigest(sql, period, project, publicUrl);
  return digest && toDigestNotice(project, digest, publicUrl);
}

async function loadDigest(
  sql: Tx,
  query: DigestQuery,
  project: TeamProject,
  publicUrl: string,
): Promise<Digest | undefined> {
  const linked = <Test extends CaseRef>(test: Test) => ({
    ...test,
    url: testCaseUrl(publicUrl, project.id, test.testCaseId),
  });
  const flaky = await loadFlaky(sql, query, linked);
  const counts = await countBugs(sql, query);
  const slower = await selectSlowerInPeriod(sql, query, MAX_SLOW_TESTS);
  const builds = query.owners === undefined ? await loadBuilds(sql, query, project) : null;
  const changes = flaky.becameCount + flaky.recoveredCount + counts.opened + counts.resolved + slower.length;
  if (changes === 0 && builds === null) return undefined;
  const oldest = await selectOldestBugs(sql, query, MAX_OLD_BUGS);
  const slowest = await selectSlowest(sql, query, MAX_SLOW_TESTS);
  return {
    since: new Date(query.since).toISOString(),
    until: new Date(query.until).toISOString(),
    owners: query.owners === undefined ? null : [...query.owners],
    flaky,
    bugs: {
      opened: { count: counts.opened, before: counts.openedBefore },
      resolved: { count: counts.resolved, before: counts.resolvedBefore },
      open: counts.open,
      oldest: oldest.map(({ id, ...bug }) => ({ ...bug, url: bugReportUrl(publicUrl, project.id, id) })),
    },
    slower: slower.map(linked),
    slowest: slowest.map(linked),
    builds,
  };
}

type Linked = <Test extends CaseRef>(test: Test) => Test & { url: string };

async function loadFlaky(sql: Tx, query: DigestQuery, linked: Linked): Promise<Digest["flaky"]> {
  const { now, removed } = await countFlakyTests(sql, query);
  const events = await selectHealthEvents(sql, query);
  const byTest = [...Map.groupBy(events, ({ testCase }) => testCase.id).values()];
  const turns = (some: typeof events) => some.filter(({ type }) => type !== "test_case.verified");
  const isFlaky = (event: (typeof events)[number] | undefined) => event?.type === "test_case.became_flaky";
  const became = byTest.filter((some) => isFlaky(turns(some)[0]));
  const recovered = byTest.filter(
    (some) =>
      !isFlaky(turns(some)[0]) && some.some(({ type, isVerified }) => type === "test_case.recovered" || isVerified),
  );
  // A test whose first event says that it became flaky was not before.
  const gained = became.filter((some) => isFlaky(turns(some).at(-1))).length;
  const lost = recovered.filter((some) => turns(some).at(-1)?.type === "test_case.recovered").length;
  const refOf = ({ testCase: { id, taskSlug, suite, name, file } }: (typeof events)[number]) =>
    linked({ testCaseId: id, taskSlug, suite, name, file });
  return {
    count: now,
    before: Math.max(0, now + removed - gained + lost),
    became: became.slice(0, MAX_TESTS).map(([last]) => ({
      ...refOf(last!),
      failed: last!.testCase.flakeFailures,
      results: last!.testCase.flakeResults,
    })),
    becameCount: became.length,
    recovered: recovered.slice(0, MAX_TESTS).map(([last]) => refOf(last!)),
    recoveredCount: recovered.length,
  };
}

/** Null: no build has ended in the period. */
async function loadBuilds(sql: Tx, query: DigestQuery, { defaultBranch }: TeamProject): Promise<Digest["builds"]> {
  const figures = await selectBuildFigures(sql, query);
  const current = figures.find(({ isCurrent }) => isCurrent);
  const earlier = figures.find(({ isCurrent }) => !isCurrent);
  if (current === undefined || current.builds === 0) return null;
  return {
    branch: defaultBranch,
    count: current.builds,
    before: earlier?.builds ?? 0,
    passed: current.passed,
    passedBefore: earlier?.passed ?? 0,
    timesRed: current.timesRed,
    redMs: current.redMs,
    redMsBefore: earlier?.redMs ?? 0,
    rescued: await countRescued(sql, query),
  };
}
