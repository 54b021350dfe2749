/** Addresses of a pull request and a commit at the code host, as the address of the CI run tells them. */

type Origin = { buildUrl: string | null; pullRequest: string | null; commit: string | null };
export type SourceLinks = { pullRequest: string | null; commit: string | null };

/** The runs of CI systems that are part of a code host, whose addresses begin with that of the repository. */
const RUNS: readonly { run: RegExp; pullRequest: string; commit: string }[] = [
  // GitHub, Gitea and Forgejo.
  { run: /^\/[\w.-]+\/[\w.-]+(?=\/actions\/runs\/\d)/, pullRequest: "/pull/", commit: "/commit/" },
  {
    run: /^(?:\/[\w.-]+){2,20}(?=\/-\/(?:pipelines|jobs)\/\d)/,
    pullRequest: "/-/merge_requests/",
    commit: "/-/commit/",
  },
];

/** Null for what is not known, and for a build whose address is not one of a code host. */
export function sourceLinks({ buildUrl, pullRequest, commit }: Origin): SourceLinks {
  const none = { pullRequest: null, commit: null };
  if (buildUrl === null || !/^https?:\/\//i.test(buildUrl) || !URL.canParse(buildUrl)) return none;
  const { origin, pathname } = new URL(buildUrl);
  for (const host of RUNS) {
    const repository = host.run.exec(pathname)?.[0];
    if (repository === undefined) continue;
    const isNumber = pullRequest !== null && /^\d{1,10}$/.test(pullRequest);
    const isHash = commit !== null && /^[\da-f]{7,64}$/i.test(commit);
    return {
      pullRequest: isNumber ? `${origin}${repository}${host.pullRequest}${pullRequest}` : null,
      commit: isHash ? `${origin}${repository}${host.commit}${commit}` : null,
    };
  }
  return none;
}
