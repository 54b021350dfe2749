/** Aho–Corasick automaton over bytes: finds all patterns of a set in one pass, in time linear in the text. */

/** The first child is the next node. */
const HAS_NEXT = 1;
/** Further children are in the hash table. */
const HAS_MORE = 2;
const IS_PATTERN = 4;
/** A shorter pattern ends where this beginning of a longer one ends. */
const HAS_INNER = 8;

/**
 * The patterns, by their common beginnings, in about 10 bytes a node. Patterns are long and seldom branch: so a node's first
 * child is usually the node after it, and only further children are in a hash table. Node 0 is the root. At most 2^24 nodes, as `branchKey` has 32 bits.
 */
export class Trie {
  size = 1;
  labels = new Uint8Array(1_024);
  flags = new Uint8Array(1_024);
  depths = new Uint32Array(1_024);
  /** Children of the root. */
  readonly root = new Uint32Array(256);
  /** Further children, by `branchKey`. */
  readonly branches = new IntTable();
  /** The first four bytes of each pattern, the first being the lowest one. */
  readonly heads = new Set<number>();

  /** Returns how many nodes it has added. A pattern has at least four bytes. */
  add(pattern: Uint8Array): number {
    this.heads.add(pattern[0]! | (pattern[1]! << 8) | (pattern[2]! << 16) | (pattern[3]! << 24));
    let node = 0;
    let at = 0;
    for (let child; at < pattern.length && (child = this.child(node, pattern[at]!)) !== 0; at++) node = child;
    const added = pattern.length - at;
    this.reserve(added);
    for (; at < pattern.length; at++) node = this.addChild(node, pattern[at]!);
    this.flags[node]! |= IS_PATTERN;
    return added;
  }

  /** 0: there is none. */
  child(node: number, byte: number): number {
    if (node === 0) return this.root[byte]!;
    const flag = this.flags[node]!;
    if ((flag & HAS_NEXT) !== 0 && this.labels[node + 1] === byte) return node + 1;
    return (flag & HAS_MORE) === 0 ? 0 : this.branches.find(branchKey(node, byte));
  }

  private addChild(node: number, byte: number): number {
    const child = this.size++;
    this.labels[child] = byte;
    this.depths[child] = this.depths[node]! + 1;
    if (node === 0) this.root[byte] = child;
    else if (child === node + 1) this.flags[node]! |= HAS_NEXT;
    else {
      this.flags[node]! |= HAS_MORE;
      this.branches.add(branchKey(node, byte), child);
    }
    return child;
  }

  private reserve(count: number): void {
    if (this.size + count <= this.labels.length) return;
    const capacity = Math.max(2 * this.labels.length, this.size + count);
    const grow = <T extends Uint8Array | Uint32Array>(larger: T, old: T): T => (larger.set(old), larger);
    this.labels = grow(new Uint8Array(capacity), this.labels);
    this.flags = grow(new Uint8Array(capacity), this.flags);
    this.depths = grow(new Uint32Array(capacity), this.depths);
  }
}

const branchKey = (node: number, byte: number): number => ((node << 8) | byte) >>> 0;

/** State 0 is the root: no pattern has begun. */
export class Automaton {
  private readonly labels: Uint8Array;
  private readonly flags: Uint8Array;
  private readonly depths: Uint32Array;
  private readonly root: Uint32Array;
  private readonly branches: IntTable;
  /** For each node the node of its longest proper suffix. */
  private readonly failures: Uint32Array;
  /** The longest pattern that ends inside of another one, for the few nodes where that is so. */
  private readonly inner = new IntTable();

  /** The trie must not change any more. */
  constructor(trie: Trie) {
    ({ labels: this.labels, flags: this.flags, depths: this.depths, root: this.root, branches: this.branches } = trie);
    this.failures = new Uint32Array(trie.size);
    this.linkFailures(trie.size);
  }

  step(state: number, byte: number): number {
    const { labels, flags, branches, failures } = this;
    while (state !== 0) {
      const flag = flags[state]!;
      if ((flag & HAS_NEXT) !== 0 && labels[state + 1] === byte) return state + 1;
      if ((flag & HAS_MORE) !== 0) {
        const child = branches.find(branchKey(state, byte));
        if (child !== 0) return child;
      }
      state = failures[state]!;
    }
    return this.root[byte]!;
  }

  /** Length of the beginning of a pattern that has been read, in bytes. */
  depth(state: number): number {
    return this.depths[state]!;
  }

  /** The state of the longest proper suffix that is the beginning of a pattern as well. */
  suffix(state: number): number {
    return this.failures[state]!;
  }

  /** Whether a pattern begins so and is longer. */
  goesOn(state: number): boolean {
    return (this.flags[state]! & (HAS_NEXT | HAS_MORE)) !== 0;
  }

  /** Length of the longest pattern that ends in this state, in bytes; 0 where none does. */
  matched(state: number): number {
    const flag = this.flags[state]!;
    if ((flag & IS_PATTERN) !== 0) return this.depths[state]!;
    return (flag & HAS_INNER) === 0 ? 0 : this.inner.find(state);
  }

  private linkFailures(size: number): void {
    const { labels, flags, depths, branches, failures, inner } = this;
    const parents = new Uint32Array(size);
    for (let node = 1; node < size; node++) if ((flags[node]! & HAS_NEXT) !== 0) parents[node + 1] = node;
    branches.forEach((key, child) => (parents[child] = key >>> 8));
    for (const node of byDepth(depths, size)) {
      const parent = parents[node]!;
      if (parent === 0) continue;
      const target = this.step(failures[parent]!, labels[node]!);
      failures[node] = target;
      const length = this.matched(target);
      if (length === 0) continue;
      flags[node]! |= HAS_INNER;
      inner.add(node, length);
    }
  }
}

/** All nodes but the root, those with the smaller depth first (a counting sort). */
function byDepth(depths: Uint32Array, size: number): Uint32Array {
  let deepest = 0;
  for (let node = 1; node < size; node++) if (depths[node]! > deepest) deepest = depths[node]!;
  const places = new Uint32Array(deepest + 2);
  for (let node = 1; node < size; node++) places[depths[node]! + 1]!++;
  for (let depth = 1; depth < places.length; depth++) places[depth]! += places[depth - 1]!;
  const sorted = new Uint32Array(size - 1);
  for (let node = 1; node < size; node++) sorted[places[depths[node]!]!++] = node;
  return sorted;
}

/** An open-addressing hash table of 32-bit integers; 0 is neither a key nor a value. */
class IntTable {
  private keys = new Uint32Array(64);
  private values = new Uint32Array(64);
  private count = 0;
  /** The upper bits of the 32-bit hash are the slot. */
  private shift = 26;

  find(key: number): number {
    return this.values[this.slotOf(key)]!;
  }

  add(key: number, value: number): void {
    if (2 * this.count >= this.keys.length) this.grow();
    const slot = this.slotOf(key);
    if (this.keys[slot] === 0) this.count++;
    this.keys[slot] = key;
    this.values[slot] = value;
  }

  forEach(visit: (key: number, value: number) => void): void {
    for (let at = 0; at < this.keys.length; at++) if (this.keys[at] !== 0) visit(this.keys[at]!, this.values[at]!);
  }

  private slotOf(key: number): number {
    const { keys } = this;
    let slot = Math.imul(key, 0x9e3779b1) >>> this.shift;
    while (keys[slot] !== 0 && keys[slot] !== key) slot = (slot + 1) & (keys.length - 1);
    return slot;
  }

  private grow(): void {
    const { keys, values } = this;
    this.keys = new Uint32Array(2 * keys.length);
    this.values = new Uint32Array(2 * keys.length);
    this.shift--;
    for (let at = 0; at < keys.length; at++) {
      if (keys[at] === 0) continue;
      const slot = this.slotOf(keys[at]!);
      this.keys[slot] = keys[at]!;
      this.values[slot] = values[at]!;
    }
  }
}
