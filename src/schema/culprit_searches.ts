/** Searches for the commit that broke the test of a bug. */

import * as v from "valibot";
import { createdAt, described, executionId, integer, slug, testCaseId, time, uuid } from "./fields.ts";
import type { MissingRunner } from "./leases.ts";
import { commitHash } from "./verifications.ts";

const DEFAULT_PROBES = 30;
const DEFAULT_MINUTES = 60;

export const searchBudget = {
  maxProbes: v.pipe(
    v.optional(integer(1, 200), DEFAULT_PROBES),
    v.description(
      "The maximum number of probes that are created for the search; probes of other searches that it joins do not count",
    ),
  ),
  maxMinutes: v.pipe(
    v.optional(integer(1, 1_440), DEFAULT_MINUTES),
    v.description("The maximum time of the search in minutes"),
  ),
};

export const newCulpritSearch = v.strictObject({
  ...searchBudget,
  goodCommit: described(
    v.optional(commitHash),
    "A commit in which the test passes. Default: the last good build of the default branch",
    "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
  ),
  badCommit: described(
    v.optional(commitHash),
    "A commit in which the test fails because of the bug. Default: the first bad build of the default branch",
    "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234",
  ),
});
export const searchLimits = v.strictObject(searchBudget);
export type NewCulpritSearch = v.InferOutput<typeof newCulpritSearch>;

const hash = (what: string) => described(v.string(), what, "c4d5e6f0127a8b9c0d1e2f3a4b5c6d7e8f901234");

const commitEntries = {
  commit: hash("The hash"),
  author: described(v.string(), "The author", "Ada"),
  date: described(v.string(), "The time of the commit", "2026-01-31T10:00:00+01:00"),
  subject: described(v.string(), "The first line of its message", "Round prices"),
};
const searchedCommit = v.strictObject(commitEntries);

const STATUSES = ["running", "completed", "cancelled"] as const;
export type SearchStatus = (typeof STATUSES)[number];
const VERDICTS = ["culprit", "environment", "undecided"] as const;
const REASONS = [
  ...(["good_fails", "bad_passes", "outage"] as const),
  ...(["no_result", "budget", "time", "no_runner", "no_commits"] as const),
] as const;
export type SearchReason = (typeof REASONS)[number];

const status = described(
  v.picklist(STATUSES),
  "running: probes run; completed: it has a verdict; cancelled: someone has cancelled it",
  "completed",
);
const verdict = described(
  v.nullable(v.picklist(VERDICTS)),
  "culprit: a commit is named, and confirmed; environment: not the code of these commits; undecided: it cannot tell; null: no verdict",
  "culprit",
);
const reason = described(
  v.nullable(v.picklist(REASONS)),
  "For environment: good_fails: the good commit fails as well; bad_passes: the bad commit passes; outage: all commits fail since " +
    "some probe. For undecided: no_result: commits have no result; budget: maxProbes is reached; time: maxMinutes is " +
    "reached; no_runner: no runner took the probes; no_commits: the commits could not be listed. null: a culprit, or no verdict",
  null,
);
const summary = described(
  v.string(),
  "What is known, as one sentence; a commit is named as the culprit only if it was confirmed",
  "c4d5e6f012 by Ada broke it: it failed there 2 of 2 times, on its parent 0a1b2c3d4e it passed 2 of 2 times",
);

const PROBE_RESULTS = ["passed", "failed", "other_failure", "no_build", "no_result"] as const;

/** The probes of a search that have not ended. */
export type OpenProbes = {
  /** commits: a probe lists the commits of the range. */
  kind: "test" | "commits";
  running: number;
  queued: number;
  /** Why no runner will take the queued probes; null: one will. */
  missingRunner: MissingRunner | null;
};

const searchProbe = v.strictObject({
  executionId,
  commit: hash("The commit that it ran on"),
  result: described(
    v.nullable(v.picklist(PROBE_RESULTS)),
    "failed: in the way that is searched for; other_failure: in another way; no_build: the commit cannot be built; no_result: the " +
      "test did not run; null: it has not ended",
    "failed",
  ),
  createdAt,
  endedAt: described(v.nullable(time), "When it ended; null: not yet"),
});
export type SearchProbe = v.InferOutput<typeof searchProbe>;

export const culpritSearch = v.strictObject({
  id: described(uuid, "The id of the search"),
  bugReportId: described(uuid, "The bug report"),
  testCaseId,
  taskSlug: slug,
  status,
  verdict,
  reason,
  summary,
  waitingFor: described(
    v.nullable(v.string()),
    "What a running search waits for, as one sentence; null: it has ended, or the server is about to begin the next probes",
    "3 probes wait for a runner: no runner has been online in the last 2 minutes",
  ),
  goodCommit: hash("The last good commit on the default branch"),
  badCommit: hash("The first bad commit on the default branch"),
  commitCount: described(
    v.nullable(v.number()),
    "The number of commits after the good one, the bad one included; null: not listed yet",
    14,
  ),
  ...{ maxProbes: searchBudget.maxProbes, maxMinutes: searchBudget.maxMinutes },
  culprit: described(
    v.nullable(
      v.strictObject({
        ...commitEntries,
        files: described(v.array(v.string()), "The files that it changes", ["cart.ts"]),
      }),
    ),
    "The commit that broke the test, which was confirmed; null: none is proven",
  ),
  parent: described(v.nullable(searchedCommit), "The commit before the culprit; null: none is proven"),
  suspects: described(
    v.array(v.strictObject({ ...commitEntries, chance: described(v.number(), "Its probability, from 0 to 1", 0.42) })),
    "The most probable commits, at most 20, in the order of the range: probably one of them is the culprit",
  ),
  probes: described(v.array(searchProbe), "The probes in the order in which they were created"),
  createdAt,
  endedAt: described(v.nullable(time), "When the search ended; null: it is running"),
});
export type CulpritSearch = v.InferOutput<typeof culpritSearch>;

/** The newest search as a field of a bug report. */
export const culpritSummary = v.strictObject({
  searchId: described(uuid, "The id of the search"),
  ...{ status, verdict, reason, summary },
  commit: described(v.nullable(v.string()), "The hash of the culprit; null: none is proven", "c4d5e6f0127a"),
  author: described(v.nullable(v.string()), "The author of the culprit; null: none is proven", "Ada"),
  createdAt,
  endedAt: described(v.nullable(time), "When the search ended; null: it is running"),
});
export type CulpritSummary = v.InferOutput<typeof culpritSummary>;

/** Maximum number of commits in a range, and of files of each that are kept. */
export const MAX_RANGE_COMMITS = 1_024;
export const MAX_COMMIT_FILES = 200;
/** Maximum lengths of the texts of a commit, in characters. */
export const MAX_COMMIT_AUTHOR = 200;
export const MAX_COMMIT_SUBJECT = 500;
export const MAX_COMMIT_PATH = 1_000;
