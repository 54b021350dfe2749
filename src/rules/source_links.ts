/** Addresses of a pull request, a commit and a range of commits at the code host, derived from the address of the CI run. */

type Origin = {
  buildUrl: string | null;
  pullRequest?: string | null;
  commit: string | null;
  /** The commit that `commit` is compared with. */
  since?: string | null;
};
type SourceLinks = { pullRequest: string | null; commit: string | null; comparison: string | null };

/** The runs of CI systems that are part of a code host: their addresses begin with that of the repository. */
const HOSTS: readonly { run: RegExp; pullRequest: string; commit: string; comparison: string }[] = [
  {
    // GitHub, Gitea and Forgejo.
    run: /^\/[\w.-]+\/[\w.-]+(?=\/actions\/runs\/\d)/,
    ...{ pullRequest: "/pull/", commit: "/commit/", comparison: "/compare/" },
  },
  {
    run: /^(?:\/[\w.-]+){2,20}(?=\/-\/(?:pipelines|jobs)\/\d)/,
    ...{ pullRequest: "/-/merge_requests/", commit: "/-/commit/", comparison: "/-/compare/" },
  },
];

const isHash = (commit: string | null) => /^[\da-f]{7,64}$/i.test(commit ?? "");

/** Null for unknown links, and for a build whose address is not one of a code host. */
export function sourceLinks({ buildUrl, pullRequest = null, commit, since = null }: Origin): SourceLinks {
  const none = { pullRequest: null, commit: null, comparison: null };
  if (buildUrl === null || !/^https?:\/\//i.test(buildUrl) || !URL.canParse(buildUrl)) return none;
  const { origin, pathname } = new URL(buildUrl);
  for (const host of HOSTS) {
    const path = host.run.exec(pathname)?.[0];
    if (path === undefined) continue;
    const repository = origin + path;
    return {
      pullRequest: /^\d{1,10}$/.test(pullRequest ?? "") ? `${repository}${host.pullRequest}${pullRequest}` : null,
      commit: isHash(commit) ? `${repository}${host.commit}${commit}` : null,
      comparison: isHash(commit) && isHash(since) ? `${repository}${host.comparison}${since}...${commit}` : null,
    };
  }
  return none;
}
