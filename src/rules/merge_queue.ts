/** Which pull request a merge queue tests, by the name of the ref that it has made for it. */

const REFS = [
  // GitHub: gh-readonly-queue/main/pr-12-9f8e7d6c…
  /^(?:refs\/heads\/)?gh-readonly-queue\/.+\/pr-(\d{1,10})-[0-9a-f]{7,64}$/i,
  // GitLab's merge trains.
  /^refs\/merge-requests\/(\d{1,10})\/train$/,
];

/** Null for any other branch. */
export function queuedPullRequest(branch: string | null | undefined): string | null {
  for (const ref of REFS) {
    const number = ref.exec(branch ?? "")?.[1];
    if (number !== undefined) return number;
  }
  return null;
}
