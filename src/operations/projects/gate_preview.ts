/** Tries shares of a project's gates on its stored builds. */

import { previewGate } from "../../rules/gate_preview.ts";
import type { GatePreview } from "../../schema/gate.ts";
import type { Sql } from "../../database/connect.ts";
import { selectRedBuilds } from "../../store/gate_preview.ts";
import { gatePreviewSummary } from "../../wording/gate_preview.ts";

const DAY_MS = 86_400_000;

/** Returns the decisions that gates would have made with each of these shares in the last days. */
export async function readGatePreviews(
  sql: Sql,
  projectId: string,
  { shares, days, now }: { shares: readonly number[]; days: number; now: Date },
): Promise<GatePreview[]> {
  const fromMs = now.getTime() - days * DAY_MS;
  const builds = await selectRedBuilds(sql, projectId, fromMs);
  const oldest = builds.at(-1);
  const since = oldest?.isLimited ? oldest.createdAt : new Date(fromMs).toISOString();
  return shares.map((share) => {
    const counts = previewGate(builds, share);
    return { share, since, ...counts, summary: gatePreviewSummary(counts, Date.parse(since), now.getTime()) };
  });
}
