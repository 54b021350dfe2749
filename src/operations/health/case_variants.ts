/** Reads how a test does in the variants of its task. */

import { resultsByTag } from "../../rules/variants.ts";
import type { Sql } from "../../database/connect.ts";
import { type CaseVariant, selectCaseVariants, type TestName } from "../../store/variants.ts";

export type CaseVariants = { variants: CaseVariant[]; byTag: ReturnType<typeof resultsByTag> };

/** `variants` is empty if the task has none. */
export async function readCaseVariants(
  sql: Sql,
  projectId: string,
  test: TestName & { taskSlug: string },
): Promise<CaseVariants> {
  const found = await selectCaseVariants(sql, projectId, test);
  const variants = found.some(({ tags }) => tags.length > 0) ? found : [];
  return { variants, byTag: resultsByTag(variants) };
}
