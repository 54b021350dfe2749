/** Determines probes that several searches share: one execution runs the test cases of all searches that its commit is informative for. */

/** The probes that a search requests. */
export type ProbeRequest = {
  searchId: string;
  /**
   * The hashes of the commits that it would probe itself, the same possibly more than once, at most as many as its budget allows.
   * Empty: its own probes have not ended, but it may join others.
   */
  next: readonly string[];
  /** Returns the expected information of a result at a commit for the search, in bits. */
  bitsOf: (hash: string) => number;
};

/** A probe and the searches whose test cases it runs, at least one. The first one has asked for it. */
type SharedCommit = { hash: string; searchIds: string[] };

/** Minimum expected information, in bits, of a shared probe that a search joins. */
const MIN_JOIN_BITS = 0.2;
/** Maximum ratio between the information of a search's own probe and that of a shared one which replaces it. */
const MAX_BITS_RATIO = 2;

/**
 * Returns the probes to create. A search joins the probes of those before it at the commits that it would probe itself, and at
 * others that say at least half as much instead of its own; then it joins, in addition, all that say enough. `atOnce`: how many
 * probes can begin at once; each search gets at least one.
 */
export function shareProbes(requests: readonly ProbeRequest[], atOnce: number): SharedCommit[] {
  const probes: SharedCommit[] = [];
  for (const request of requests) {
    const missing = joinWanted(request, probes);
    let count = request.next.length - missing.length;
    for (const hash of missing) {
      if (count > 0 && probes.length >= atOnce) break;
      probes.push({ hash, searchIds: [request.searchId] });
      count++;
    }
  }
  for (const request of requests) joinOthers(request, probes);
  return probes;
}

const hasJoined = ({ searchId }: ProbeRequest, probe: SharedCommit): boolean => probe.searchIds.includes(searchId);

/** Returns the commits that are still missing. */
function joinWanted(request: ProbeRequest, probes: readonly SharedCommit[]): string[] {
  const missing = [...request.next];
  const join = (probe: SharedCommit, at: number) => {
    probe.searchIds.push(request.searchId);
    missing.splice(at, 1);
  };
  for (const probe of probes) {
    const at = missing.indexOf(probe.hash);
    if (at !== -1) join(probe, at);
  }
  for (const probe of probes) {
    if (missing.length === 0) break;
    const bits = request.bitsOf(probe.hash);
    const at = missing.findIndex((hash) => request.bitsOf(hash) <= MAX_BITS_RATIO * bits);
    if (bits >= MIN_JOIN_BITS && at !== -1 && !hasJoined(request, probe)) join(probe, at);
  }
  return missing;
}

/** Joins the probes at other commits that say enough. */
function joinOthers(request: ProbeRequest, probes: readonly SharedCommit[]): void {
  const hashes = new Set(probes.filter((probe) => hasJoined(request, probe)).map(({ hash }) => hash));
  for (const probe of probes) {
    if (hashes.has(probe.hash) || request.bitsOf(probe.hash) < MIN_JOIN_BITS) continue;
    probe.searchIds.push(request.searchId);
    hashes.add(probe.hash);
  }
}
