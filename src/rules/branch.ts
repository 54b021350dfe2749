/** Determines the line of builds that an execution belongs to. */

/** A branch and a pull request as an upload or a request names them. */
type NamedBranch = {
  branch?: string | null | undefined;
  pullRequest?: string | null | undefined;
  baseBranch?: string | null | undefined;
};

/** The same as an execution stores it. */
export type Line = {
  /** Null for a build of a merge queue. */
  branch: string | null | undefined;
  pullRequest: string | null | undefined;
  /** The branch that a pull request or a merge queue merges into; null for any other build, and if the upload does not name it. */
  baseBranch: string | null;
  /** The ref that a merge queue has made for the build; null for any other build. */
  queueRef: string | null;
};

/** GitHub's merge queue. The base branch may contain slashes. */
const GITHUB_QUEUE = /^gh-readonly-queue\/(?<base>.+)\/pr-(?<number>\d{1,10})-[0-9a-f]{7,64}$/;
/** GitLab's merge trains. The ref does not name the base branch. */
const GITLAB_TRAIN = /^refs\/merge-requests\/(?<number>\d{1,10})\/train$/;

/** Returns the ref of the merge train of a merge request, as GitLab names it. */
export const trainRef = (mergeRequest: string): string => `refs/merge-requests/${mergeRequest}/train`;

/** Recognizes a build of a merge queue by the name of its branch: it is a build of a pull request against its base branch. */
export function resolveBranch({ branch, pullRequest, baseBranch = null }: NamedBranch): Line {
  const parts = (GITHUB_QUEUE.exec(branch ?? "") ?? GITLAB_TRAIN.exec(branch ?? ""))?.groups;
  if (branch == null || !parts)
    return {
      branch,
      pullRequest,
      baseBranch: branch == null || pullRequest == null ? null : baseBranch,
      queueRef: null,
    };
  return {
    branch: null,
    pullRequest: pullRequest ?? parts.number!,
    baseBranch: parts.base ?? baseBranch,
    queueRef: branch,
  };
}

/**
 * Returns the branch; by default the default branch. The branch of a fork may have the name of the default branch, so such a pull request
 * is a line of its own, named `pull/12`. The same applies to a build of a merge queue without a branch.
 */
export function lineOf(
  { branch, pullRequest }: { branch: string | null; pullRequest: string | null },
  defaultBranch: string,
): string {
  const line = branch ?? defaultBranch;
  return line === defaultBranch && pullRequest !== null ? `pull/${pullRequest}` : line;
}

/** Whether a branch is compared with its own builds; `*` matches any text. `is_long_lived` says the same to the database. */
export const isLongLived = (branch: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) => matches(branch, pattern));

/** Looks for each part behind the one before it: a regular expression would try all ways to distribute them. */
function matches(text: string, pattern: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return text === first;
  const end = text.length - last.length;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= end;
}
