/** `assay bisect` on the runners of a server: starts a search, and prints its probes as they end. */

import { createAskGit } from "../runner/git_clone.ts";
import type { CulpritSearch } from "../schema/culprit_searches.ts";
import { describeCommit, PROBE_WORDS, shortHash } from "../wording/culprit.ts";
import { askServer, type BisectCase, findBugId } from "./bisect_case.ts";
import { culpritLines, itemLines } from "./bisect_lines.ts";
import { readServerAddress, type ServerAddress } from "./client.ts";
import type { Invocation } from "./invocation.ts";
import { UsageError } from "./usage.ts";

/** The time between two requests: it grows as long as nothing changes, because the key has a rate limit. */
const POLL_MS = { first: 1_000, most: 6_000 };

type ServerSearchOptions = {
  test: BisectCase;
  good: string | undefined;
  bad: string | undefined;
  budget: number | undefined;
};

/** Returns the search after its end. Throws UsageError. */
export async function searchOnServer(
  { test, good, bad, budget }: ServerSearchOptions,
  invocation: Invocation,
): Promise<CulpritSearch> {
  const { say } = invocation;
  const address = readServerAddress(invocation.environment);
  const path = `/bug-reports/${await findBugId(test, address)}/culprit`;
  const known = await askServer<CulpritSearch>(address, { path });
  let search = known;
  if (known?.status === "running") say("A search is running already");
  else {
    const range = {
      goodCommit: await toHash(invocation, "good", good),
      badCommit: await toHash(invocation, "bad", bad),
    };
    const body = { ...range, ...(budget === undefined ? {} : { maxProbes: budget }) };
    search = await askServer<CulpritSearch>(address, { path, body });
  }
  if (!search) throw new Error("The server has no such bug report");
  return await follow(address, path, search, say);
}

async function follow(
  address: ServerAddress,
  path: string,
  started: CulpritSearch,
  say: (message: string) => void,
): Promise<CulpritSearch> {
  let search = started;
  let [shown, waitingFor] = ["", ""];
  let ended = 0;
  let waitMs = POLL_MS.first;
  for (;;) {
    const probes = search.probes.filter(({ endedAt }) => endedAt !== null);
    const isNews = probes.length > ended || search.summary !== shown;
    for (const { commit, result } of probes.slice(ended))
      say(`Probe ${++ended}: ${PROBE_WORDS[result ?? "running"]}: ${shortHash({ hash: commit })}`);
    if (search.status !== "running") return search;
    if (search.summary !== shown) say((shown = search.summary));
    // The reason for waiting matters only while nothing else happens.
    if (!isNews && search.waitingFor && search.waitingFor !== waitingFor) say((waitingFor = search.waitingFor));
    waitMs = isNews ? POLL_MS.first : Math.min(2 * waitMs, POLL_MS.most);
    await Bun.sleep(waitMs);
    search = (await askServer<CulpritSearch>(address, { path })) ?? fail("The bug report was deleted");
  }
}

/** A name of a commit in the repository of this directory as its hash; a hash may also be unknown here. */
async function toHash(given: Invocation, name: string, ref: string | undefined): Promise<string | undefined> {
  if (ref === undefined) return undefined;
  const ask = createAskGit(given.directory, given.environment);
  const hash = await ask(["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`]);
  if (hash !== null) return hash;
  if (/^[0-9a-f]{7,64}$/i.test(ref)) return ref;
  throw new UsageError(`Cannot read --${name}: this directory is in no repository with the commit "${ref}"`);
}

/** The end of a search in sentences, as of a search on this machine. */
export function searchLines({ summary, culprit, suspects, verdict }: CulpritSearch): string[] {
  const toCommit = ({ commit: hash, author, date, subject }: { commit: string } & Omit<Listed, "hash">): Listed => {
    return { hash, author, date, subject };
  };
  if (culprit) return [summary, ...culpritLines(toCommit(culprit), culprit.files)];
  return verdict === "undecided"
    ? [summary, ...itemLines(suspects.map((one) => describeCommit(toCommit(one))))]
    : [summary];
}

type Listed = Parameters<typeof describeCommit>[0];

function fail(message: string): never {
  throw new Error(message);
}
