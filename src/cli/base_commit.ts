/** Finds the commit of the target branch that the tests of a pull request ran with, where only the checkout knows it. */

/** Returns the output of git, if it succeeds and prints anything. */
export type Git = (...args: string[]) => string | undefined;

type TestedBuild = { commit?: string | undefined; baseBranch?: string | undefined };

/**
 * Returns the other parent if HEAD merges the head of the pull request, which a shallow clone knows as well, or the merge base if HEAD is
 * that head and the history is there. Undefined: something else is checked out.
 */
export function findBaseCommit({ commit, baseBranch }: TestedBuild, git: Git): string | undefined {
  // This format names the true parents. Lines of the message are indented.
  const raw = git("show", "-s", "HEAD", "--format=raw") ?? "";
  const head = /^commit (\w+)/m.exec(raw)?.[1];
  const parents = [...raw.matchAll(/^parent (\w+)/gm)].map(([, parent]) => parent!);
  if (commit === undefined || head === undefined) return undefined;
  if (parents.length === 2 && parents.includes(commit)) return parents.find((parent) => parent !== commit);
  return head === commit ? git("merge-base", "HEAD", `origin/${baseBranch ?? "HEAD"}`) : undefined;
}
