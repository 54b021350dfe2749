/** The badge of a branch, as an SVG image. */

import type { Sql } from "../../../database/connect.ts";
import { findShared } from "../../../operations/people/shares.ts";
import { FixedReply, Reply } from "../../../request/reply.ts";
import { sumTasks } from "../../../rules/execution.ts";
import type { SharedTarget } from "../../../schema/shares.ts";
import { selectBranch, selectBranchState } from "../../../store/state.ts";
import { type Badge, drawBadge } from "../../../wording/badge.ts";
import { toCount } from "../../../wording/numbers.ts";
import { wordOf } from "../../components/status.tsx";
import { page } from "../../site/page.ts";

const UNKNOWN: Badge = { label: "tests", message: "unknown", tone: "none", title: "Tests: unknown" };

export async function readBadge(
  sql: Sql,
  { projectId, defaultBranch, branch, shows }: Omit<SharedTarget, "kind">,
): Promise<Badge> {
  const of = branch ?? defaultBranch;
  const { state, tasks } = await selectBranchState(
    sql,
    projectId,
    await selectBranch(sql, projectId, of, defaultBranch),
  );
  const label = shows === "status" ? of : branch === null ? "tests" : `tests on ${branch}`;
  if (state === null) return { label, message: "no results", tone: "none", title: `${of}: no results yet` };
  const [passed, failed] = [sumTasks(tasks, "passed"), sumTasks(tasks, "failed")];
  const tests = failed > 0 ? `${toCount(failed)} failed, ${toCount(passed)} passed` : `${toCount(passed)} passed`;
  const isGood = state === "passed";
  // A red badge that only says "54 passed" would not explain its colour.
  const saysTests = shows === "tests" && (isGood ? passed + failed > 0 : failed > 0);
  const message = saysTests ? tests : wordOf(state);
  return { label, message, tone: isGood ? "good" : "bad", title: `${of}: ${wordOf(state)}, ${tests}` };
}

const BADGE_HEADERS = {
  "Cache-Control": "max-age=60",
  "Content-Security-Policy": "default-src 'none'",
  "Cross-Origin-Resource-Policy": "cross-origin",
};

function badgeReply(status: number, badge: Badge): Reply {
  const text = drawBadge(badge);
  return status === 200
    ? new FixedReply(text, "image/svg+xml", BADGE_HEADERS)
    : new Reply(status, text, "image/svg+xml", BADGE_HEADERS);
}

export const badgePage = page("/badge/:token", { access: "public" }, async ({ fast, params }) => {
  const match = /^(.+)\.svg$/.exec(params.token);
  const shared = match ? await findShared({ fast }, match[1]!, ["badge"]) : undefined;
  return badgeReply(shared ? 200 : 404, shared ? await readBadge(fast, shared) : UNKNOWN);
});
