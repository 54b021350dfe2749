/** Replaces what a matcher finds in a stream of bytes, piece by piece. */

import { Automaton, type Trie } from "./automaton.ts";

const STARS = new TextEncoder().encode("***");
const NO_BYTES = new Uint8Array(0);

/**
 * Encoders wrap lines at 60 characters and more. A line break after fewer is not one of theirs: the last line of a log would
 * be kept whenever it ends like the beginning of a secret.
 */
const MIN_WRAPPED_LENGTH = 16;

/** More bytes in a row that are not part of the encoding end it, or they would be kept for ever. */
const MAX_SKIPPED = 64;

/** The class of a byte in an encoding: a symbol (below 256), or one of these. */
const BREAK = 256;
/** Stands between the bytes of hexadecimal digits. */
const SEPARATOR = 257;
/** Stands before what is wrapped. */
const INDENTATION = 258;
/** JSON writes a line break as a backslash and a letter. */
const BACKSLASH = 259;
const OTHER = 260;

type Symbols = Uint16Array;

/** The characters of `alphabet` stand for those of `canonical`. */
function symbolsOf(alphabet: string, canonical: string, others: Record<string, number>): Symbols {
  const symbols = new Uint16Array(256).fill(OTHER);
  for (const [char, meaning] of Object.entries(others)) symbols[char.charCodeAt(0)] = meaning;
  for (let at = 0; at < alphabet.length; at++) symbols[alphabet.charCodeAt(at)] = canonical.charCodeAt(at);
  return symbols;
}

const ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BREAKS = { "\n": BREAK, "\r": BREAK, "\\": BACKSLASH };
const PLAIN = Uint16Array.from({ length: 256 }, (_, byte) => byte);
const BASE64 = symbolsOf(`${ALPHANUMERIC}+/=-_`, `${ALPHANUMERIC}+/=+/`, {
  ...{ " ": INDENTATION, "\t": INDENTATION },
  ...BREAKS,
});
const HEX = symbolsOf("0123456789abcdefABCDEF", "0123456789abcdefabcdef", {
  ...{ " ": SEPARATOR, "\t": SEPARATOR, ":": SEPARATOR },
  ...BREAKS,
});
const [LETTER_N, LETTER_R] = [110, 114];

/** The patterns of one encoding. */
type Lookup = {
  automaton: Automaton;
  symbols: Symbols;
  /** For each pair of bytes, the first being the low one: 1 where a pattern may begin with it. */
  pairs: Uint8Array;
  /** By the hash of four symbols: 1 where a pattern may begin with them. */
  heads: Uint8Array;
};

const headSlot = (head: number): number => Math.imul(head, 0x9e3779b1) >>> 16;

function createLookup(trie: Trie, symbols: Symbols): Lookup {
  const pairs = new Uint8Array(65_536);
  const heads = new Uint8Array(65_536);
  const bytesOf = (...wanted: number[]) => [...symbols.keys()].filter((byte) => wanted.includes(symbols[byte]!));
  for (const head of trie.heads) heads[headSlot(head)] = 1;
  for (const pair of new Set([...trie.heads].map((head) => head & 0xffff)))
    for (const low of bytesOf(pair & 255))
      for (const high of bytesOf(pair >>> 8, BREAK, BACKSLASH)) pairs[low | (high << 8)] = 1;
  return { automaton: new Automaton(trie), symbols, pairs, heads };
}

export type Matcher = readonly Lookup[];

/**
 * Looks for the patterns of `plain` as they are. Those of `base64` are in its standard alphabet; the URL-safe one is found
 * as well. Those of `hex` are in lower case; upper case is found as well, and separators between bytes. Both may be wrapped.
 */
export function createMatcher(tries: { plain: Trie; base64: Trie; hex: Trie }): Matcher {
  return [createLookup(tries.plain, PLAIN), createLookup(tries.base64, BASE64), createLookup(tries.hex, HEX)];
}

/** Follows one automaton through the text and collects what it finds. */
class Scanner {
  protected state = 0;
  /** The matches as [from, to, from, to, …], in order; no two of them overlap. The first `taken` numbers are done. */
  private found: number[] = [];
  private taken = 0;
  protected readonly automaton: Automaton;
  protected readonly lookup: Lookup;

  constructor(lookup: Lookup) {
    this.lookup = lookup;
    this.automaton = lookup.automaton;
  }

  /** The first place from `at` on where a pattern may begin; the last byte at most, after which everything may come. */
  protected nextBeginning(bytes: Uint8Array, at: number): number {
    const { pairs, heads, symbols } = this.lookup;
    const last = bytes.length - 1;
    for (; at < last; at++) {
      if (pairs[bytes[at]! | (bytes[at + 1]! << 8)] === 0) continue;
      if (at + 3 > last) break;
      const [second, third, fourth] = [symbols[bytes[at + 1]!]!, symbols[bytes[at + 2]!]!, symbols[bytes[at + 3]!]!];
      // There may be a line break in it.
      if ((second | third | fourth) >= 256) break;
      const head = symbols[bytes[at]!]! | (second << 8) | (third << 16) | (fourth << 24);
      if (heads[headSlot(head)] !== 0) break;
    }
    return at;
  }

  /** Reads `bytes` from `first` on; `start` is the offset of the first of all of them. */
  scan(bytes: Uint8Array, first: number, start: number): void {
    const { automaton } = this;
    let { state } = this;
    for (let at = first; at < bytes.length; at++) {
      if (state === 0) at = this.nextBeginning(bytes, at);
      state = automaton.step(state, bytes[at]!);
      if (automaton.depth(state) <= 1) {
        // Most bytes with which a pattern begins are not its beginning.
        const next = this.nextBeginning(bytes, at);
        if (next > at) [state, at] = [0, next - 1];
        continue;
      }
      const length = automaton.matched(state);
      if (length > 0) this.hide(start + at + 1 - length, start + at + 1);
    }
    this.state = state;
  }

  /** Where the first pattern begins that may still be found; `end` where there is none. */
  pendingFrom(end: number): number {
    const state = this.openState();
    return state === 0 ? end : this.beginning(this.automaton.depth(state), end);
  }

  /** Where the first match begins that is not taken yet. */
  nextFrom(): number {
    return this.taken < this.found.length ? this.found[this.taken]! : Infinity;
  }

  take(): [number, number] {
    const match: [number, number] = [this.found[this.taken]!, this.found[this.taken + 1]!];
    this.taken += 2;
    if (this.taken === this.found.length) {
      this.found = [];
      this.taken = 0;
    }
    return match;
  }

  /** Where the last `length` symbols before `end` begin. */
  protected beginning(length: number, end: number): number {
    return end - length;
  }

  private openState(): number {
    let { state } = this;
    while (!this.automaton.goesOn(state) && state !== 0) state = this.automaton.suffix(state);
    return state;
  }

  protected hide(from: number, to: number): void {
    const { found, taken } = this;
    while (found.length > taken && found[found.length - 1]! > from) {
      const before = found[found.length - 2]!;
      if (before <= from) {
        found[found.length - 1] = to;
        return;
      }
      found.length -= 2;
    }
    found.push(from, to);
  }
}

/** For an encoding whose text has several spellings, and is wrapped. */
class EncodedScanner extends Scanner {
  /** The offsets of the last symbols, of which there were `count`: a ring that is larger than the state is deep. */
  private offsets = new Float64Array(256);
  private count = 0;
  /** How many bytes were skipped since the last symbol. */
  private skipped = 0;
  private isAfterBreak = false;
  private isAfterBackslash = false;

  override scan(bytes: Uint8Array, first: number, start: number): void {
    const { automaton } = this;
    const { symbols } = this.lookup;
    for (let at = first; at < bytes.length; at++) {
      if (this.state === 0) at = this.nextBeginning(bytes, at);
      if (this.state !== 0 && this.skipped > MAX_SKIPPED) this.reset();
      if (this.isAfterBackslash && this.readEscape(bytes[at]!)) continue;
      const symbol = symbols[bytes[at]!]!;
      if (symbol >= 256) {
        if (this.state !== 0) this.skip(symbol, bytes, at);
        continue;
      }
      this.isAfterBreak = false;
      this.skipped = 0;
      const state = automaton.step(this.state, symbol);
      const depth = automaton.depth(state);
      if (depth <= 1) {
        const next = this.nextBeginning(bytes, at);
        if (next > at) {
          this.state = 0;
          at = next - 1;
          continue;
        }
      }
      this.state = state;
      if (depth > this.offsets.length) this.grow();
      this.offsets[this.count++ & (this.offsets.length - 1)] = start + at;
      const length = automaton.matched(state);
      if (length > 0) this.hide(this.beginning(length), start + at + 1);
    }
  }

  protected override beginning(length: number): number {
    return this.offsets[(this.count - length) & (this.offsets.length - 1)]!;
  }

  /** Whether the byte belongs to the line break that a backslash has begun. */
  private readEscape(byte: number): boolean {
    this.skipped++;
    if (this.lookup.symbols[byte] === BACKSLASH) return true;
    this.isAfterBackslash = false;
    this.isAfterBreak = byte === LETTER_N || byte === LETTER_R;
    if (!this.isAfterBreak) this.state = 0;
    return this.isAfterBreak;
  }

  /** Keeps the state where what is wrapped or separated may go on after the byte. */
  private skip(symbol: number, bytes: Uint8Array, at: number): void {
    this.skipped++;
    if (symbol === SEPARATOR && !this.isAfterBreak) {
      // It does not stand inside of a byte, but a shorter beginning may be between two.
      while (this.automaton.depth(this.state) % 2 !== 0) this.state = this.automaton.suffix(this.state);
    } else if (symbol === BREAK || symbol === BACKSLASH) {
      if (!this.isAfterBreak && !this.isWrapped(bytes, at)) this.state = 0;
      else if (symbol === BREAK) this.isAfterBreak = true;
      else this.isAfterBackslash = true;
    } else if (symbol === OTHER || !this.isAfterBreak) this.state = 0;
  }

  private reset(): void {
    this.state = 0;
    this.isAfterBackslash = false;
  }

  private isWrapped(bytes: Uint8Array, at: number): boolean {
    if (at < MIN_WRAPPED_LENGTH) return false;
    for (let before = at - MIN_WRAPPED_LENGTH; before < at; before++) {
      const symbol = this.lookup.symbols[bytes[before]!]!;
      if (symbol >= 256 && symbol !== SEPARATOR) return false;
    }
    return true;
  }

  private grow(): void {
    const old = this.offsets;
    this.offsets = new Float64Array(2 * old.length);
    for (let index = Math.max(0, this.count - old.length); index < this.count; index++)
      this.offsets[index & (this.offsets.length - 1)] = old[index & (old.length - 1)]!;
  }
}

export function createMaskStream(matcher: Matcher) {
  const scanners = matcher.map((lookup) => new (lookup.symbols === PLAIN ? Scanner : EncodedScanner)(lookup));
  /** From `start` on: what is not written yet, and before that what `isWrapped` looks at. */
  let kept: Uint8Array = NO_BYTES;
  let start = 0;
  /** Up to here the text is written, or the stars that stand for it. */
  let written = 0;
  /** Up to here it is stars. */
  let hiddenUntil = 0;

  /** The match that begins first; undefined: none begins before `end`. */
  const nextMatch = (end: number): [number, number] | undefined => {
    let next: Scanner | undefined;
    for (const scanner of scanners) if (scanner.nextFrom() < (next?.nextFrom() ?? end)) next = scanner;
    return next?.take();
  };

  /** Returns what stands before `end`, and stars for the matches that begin before it; they may end behind it. */
  const write = (bytes: Uint8Array, end: number): Uint8Array => {
    const parts: Uint8Array[] = [];
    const copyUntil = (offset: number) => {
      if (written < offset) parts.push(bytes.subarray(written - start, offset - start));
      written = Math.max(written, offset);
    };
    for (let match; (match = nextMatch(end));) {
      const [from, to] = match;
      copyUntil(from);
      if (from >= hiddenUntil) parts.push(STARS);
      written = hiddenUntil = Math.max(hiddenUntil, to);
    }
    copyUntil(end);
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  };

  const advance = (more: Uint8Array, isEnd: boolean): Uint8Array => {
    const bytes = kept.length === 0 ? more : Buffer.concat([kept, more]);
    for (const scanner of scanners) scanner.scan(bytes, kept.length, start);
    const end = start + bytes.length;
    const pending = isEnd ? end : Math.min(end, ...scanners.map((scanner) => scanner.pendingFrom(end)));
    const result = write(bytes, pending);
    const keptFrom = Math.max(start, Math.min(pending, end - MIN_WRAPPED_LENGTH));
    // A copy: a few bytes must not keep the whole piece in memory.
    kept = bytes.slice(keptFrom - start);
    start = keptFrom;
    return result;
  };
  return { push: (bytes: Uint8Array) => advance(bytes, false), end: () => advance(NO_BYTES, true) };
}
