/** Names an execution in lists, sentences and titles. */

type Numbered = { key: string | null; number: number };
type Line = { branch: string | null; baseBranch?: string | null };
type Named = Numbered & Line;

/** Names the branch, or the merge queue whose build the execution is: "merge queue of main". Null if it names neither. */
export const lineName = ({ branch, baseBranch = null }: Line): string | null =>
  branch ?? (baseBranch === null ? null : `merge queue of ${baseBranch}`);

/** Names an execution where its branch is shown beside it: `#412` if the CI system numbers its builds, else the key, else our number. */
export function executionNumber({ key, number }: Numbered): string {
  if (key === null) return `#${number}`;
  const ofCi = /^(?:sample )?(\d+)$/.exec(key)?.[1];
  return ofCi === undefined ? key : `#${ofCi}`;
}

/** As `executionNumber`; an execution without a key is called by its branch too: `main #128`. */
export function executionName(execution: Named): string {
  const line = lineName(execution);
  return execution.key === null && line !== null ? `${line} ${executionNumber(execution)}` : executionNumber(execution);
}

const MAX_SHORT_NAME = 24;

/** As `executionName`; an execution with a long key is called by its commit instead, because long keys are for machines. */
export function shortExecutionName(execution: Named & { commit: string | null }): string {
  const name = executionName(execution);
  return name.length <= MAX_SHORT_NAME ? name : (execution.commit?.slice(0, 7) ?? `#${execution.number}`);
}
