/** Which probes several searches for culprits share: one execution runs the test cases of all searches to which its commit says something. */

/** What a search would probe next. */
export type ProbeWish = {
  searchId: string;
  /** The hashes of the commits, the same possibly more than once. Empty: its own probes have not ended, but it may join others. */
  next: readonly string[];
  /** How much a result at a commit is expected to tell the search, in bits. */
  bitsOf: (hash: string) => number;
  /** How many more probes the search may have. */
  left: number;
};

/** A probe and the searches whose test cases it runs, at least one. */
export type SharedCommit = { hash: string; searchIds: string[] };

/** From this on, a result is worth a probe of the budget of a search. */
const MIN_BITS = 0.2;
/** A probe of another search replaces one of its own that says at most this times as much. */
const REPLACES = 2;

/**
 * Returns the probes to create. A search joins the probes of those before it at the commits that it would probe itself, and at
 * others that say at least half as much instead of its own; then it joins, in addition, all that say enough. `atOnce`: how many
 * probes can begin at once; each search gets at least one.
 */
export function shareProbes(wishes: readonly ProbeWish[], atOnce: number): SharedCommit[] {
  const probes: SharedCommit[] = [];
  for (const wish of wishes) {
    const joined = joinWanted(wish, probes);
    let count = joined.count;
    for (const hash of joined.missing) {
      if (count >= wish.left || (count > 0 && probes.length >= atOnce)) break;
      probes.push({ hash, searchIds: [wish.searchId] });
      count++;
    }
  }
  for (const wish of wishes) joinOthers(wish, probes);
  return probes;
}

const hasJoined = ({ searchId }: ProbeWish, probe: SharedCommit): boolean => probe.searchIds.includes(searchId);

/** Returns the commits that are still missing, and the number of probes joined. */
function joinWanted(wish: ProbeWish, probes: readonly SharedCommit[]): { missing: string[]; count: number } {
  const missing = [...wish.next];
  let count = 0;
  const join = (probe: SharedCommit, at: number) => {
    probe.searchIds.push(wish.searchId);
    missing.splice(at, 1);
    count++;
  };
  for (const probe of probes) {
    const at = missing.indexOf(probe.hash);
    if (at !== -1 && count < wish.left) join(probe, at);
  }
  for (const probe of probes) {
    if (missing.length === 0 || count >= wish.left) break;
    const bits = wish.bitsOf(probe.hash);
    const at = missing.findIndex((hash) => wish.bitsOf(hash) <= REPLACES * bits);
    if (bits >= MIN_BITS && at !== -1 && !hasJoined(wish, probe)) join(probe, at);
  }
  return { missing, count };
}

/** Joins the probes at other commits that say enough. */
function joinOthers(wish: ProbeWish, probes: readonly SharedCommit[]): void {
  const own = probes.filter((probe) => hasJoined(wish, probe));
  const hashes = new Set(own.map(({ hash }) => hash));
  let count = own.length;
  for (const probe of probes) {
    if (count >= wish.left) return;
    if (hashes.has(probe.hash) || wish.bitsOf(probe.hash) < MIN_BITS) continue;
    probe.searchIds.push(wish.searchId);
    hashes.add(probe.hash);
    count++;
  }
}
