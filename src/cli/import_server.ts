/** Reads from the server, before an import uploads anything, the settings of the project and the builds that are stored already. */

import * as v from "valibot";
import { isSameCommit } from "../rules/commit.ts";
import { hasEnded } from "../rules/execution.ts";
import type { PastBuild } from "../history/build.ts";
import { askPatiently, messageOf, type Patience, type ServerAddress } from "./client.ts";

/** The server refuses what an import needs. */
export class ImportRefusedError extends Error {
  override name = "ImportRefusedError";
}

const projectAnswer = v.object({ retentionDays: v.number() });
const executionsAnswer = v.object({
  data: v.array(
    v.object({
      key: v.nullable(v.string()),
      status: v.string(),
      branch: v.nullable(v.string()),
      commit: v.nullable(v.string()),
      tasks: v.array(v.object({ slug: v.string() })),
    }),
  ),
  pagination: v.object({ cursor: v.optional(v.string()) }),
});
type StoredExecution = v.InferOutput<typeof executionsAnswer>["data"][number];

async function read<Schema extends v.GenericSchema>(
  address: ServerAddress,
  path: string,
  schema: Schema,
  patience: Patience,
): Promise<v.InferOutput<Schema>> {
  const answer = await askPatiently(address, { path }, patience);
  if (answer.status !== 200) throw new ImportRefusedError(messageOf(answer));
  try {
    return v.parse(schema, JSON.parse(answer.text));
  } catch {
    throw new ImportRefusedError(`${address.url} is not an Assay server: check ASSAY_URL`);
  }
}

/** Throws ImportRefusedError, or ServerAwayError. */
export const readProject = (address: ServerAddress, patience: Patience) => read(address, "", projectAnswer, patience);

const DAY_MS = 86_400_000;

/** Returns the executions around the builds by their keys. Throws ImportRefusedError, or ServerAwayError. */
export async function readExecutions(
  address: ServerAddress,
  builds: readonly PastBuild[],
  patience: () => Patience,
): Promise<Map<string, StoredExecution[]>> {
  const found = new Map<string, StoredExecution[]>();
  const [first, last] = [builds[0], builds.at(-1)];
  if (!first || !last) return found;
  // CI may have uploaded a build itself, some time before or after this date.
  const query = new URLSearchParams({
    limit: "100",
    created_after: new Date(first.completedAt.getTime() - 7 * DAY_MS).toISOString(),
    created_before: new Date(last.completedAt.getTime() + 7 * DAY_MS).toISOString(),
  });
  for (;;) {
    const { data, pagination } = await read(address, `/executions?${query}`, executionsAnswer, patience());
    for (const execution of data)
      if (execution.key !== null) found.set(execution.key, [...(found.get(execution.key) ?? []), execution]);
    if (pagination.cursor === undefined) return found;
    query.set("cursor", pagination.cursor);
  }
}

/** Whether the server has the report of the build already. */
export function isStored(build: PastBuild, stored: ReadonlyMap<string, readonly StoredExecution[]>): boolean {
  const same = stored.get(build.key)?.find((execution) => isSame(build, execution));
  // An execution that has not ended may lack the report; the server recognises a report that it has.
  if (!same || !hasEnded(same.status as never)) return false;
  return build.task === undefined ? same.tasks.length > 0 : same.tasks.some(({ slug }) => slug === build.task);
}

const isSame = ({ branch, commit }: PastBuild, execution: StoredExecution): boolean =>
  (branch === undefined || execution.branch === null || branch === execution.branch) &&
  (commit === undefined || execution.commit === null || isSameCommit(commit, execution.commit));
