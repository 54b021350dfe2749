import { expect, test } from "bun:test";
import { sourceLinks } from "../../src/rules/source_links.ts";

const commit = "0123456789abcdef0123456789abcdef01234567";

test("a run of GitHub Actions leads to its pull request and commit, on a server of one's own too", () => {
  expect(
    sourceLinks({
      buildUrl: "https://git.example/acme/shop/actions/runs/77/attempts/2",
      pullRequest: "12",
      commit,
      since: "abcdef0",
    }),
  ).toEqual({
    pullRequest: "https://git.example/acme/shop/pull/12",
    commit: `https://git.example/acme/shop/commit/${commit}`,
    comparison: `https://git.example/acme/shop/compare/abcdef0...${commit}`,
  });
});

test("a pipeline or job of GitLab leads to its merge request, in nested groups too", () => {
  for (const run of ["pipelines/9", "jobs/10"])
    expect(sourceLinks({ buildUrl: `https://gitlab.example/a/b/c/-/${run}`, pullRequest: "5", commit: null })).toEqual({
      pullRequest: "https://gitlab.example/a/b/c/-/merge_requests/5",
      ...{ commit: null, comparison: null },
    });
});

test("nothing is known of other builds, and a name that is no number is not put into an address", () => {
  const none = { pullRequest: null, commit: null, comparison: null };
  for (const buildUrl of [null, "https://ci.example/job/shop/12", "javascript://a/b/actions/runs/1", "nonsense"])
    expect(sourceLinks({ buildUrl, pullRequest: "12", commit })).toEqual(none);
  expect(
    sourceLinks({ buildUrl: "https://git.example/a/b/actions/runs/1", pullRequest: "../x", commit: "<b>" }),
  ).toEqual(none);
});
