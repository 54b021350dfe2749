/** Names an execution in lists, sentences and titles. */

type Numbered = { key: string | null; number: number };
type Named = Numbered & { branch: string | null };

/** For a place that shows the branch beside it: `#412` where the CI system numbers its builds, else the key, else our number. */
export function executionNumber({ key, number }: Numbered): string {
  if (key === null) return `#${number}`;
  const ofCi = /^(?:sample )?(\d+)$/.exec(key)?.[1];
  return ofCi === undefined ? key : `#${ofCi}`;
}

/** As `executionNumber`; an execution without a key is called by its branch too: `main #128`. */
export const executionName = (execution: Named): string =>
  execution.key === null && execution.branch !== null
    ? `${execution.branch} ${executionNumber(execution)}`
    : executionNumber(execution);

const MAX_SHORT_NAME = 24;

/** As `executionName`; an execution with a long key is called by its commit instead, because long keys are for machines. */
export function shortExecutionName(execution: Named & { commit: string | null }): string {
  const name = executionName(execution);
  return name.length <= MAX_SHORT_NAME ? name : (execution.commit?.slice(0, 7) ?? `#${execution.number}`);
}
