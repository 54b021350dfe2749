/** Regular expressions of a subset that is matched in linear time.
 *
 * A pattern is compiled to an automaton, and matching reads each character once. There is no backtracking, so the subset has no
 * backreferences, and no assertions but ^ and $.
 */

/** What a pattern must not contain, or what it lacks, as the end of a sentence that begins with the field. */
export class PatternError extends Error {}

/** Code units that a node consumes, all of them in lower case. */
type CodeSet = { ascii: Uint8Array; other: (code: number) => boolean };

type Node =
  | { type: "codes"; set: CodeSet; literal?: string }
  | { type: "start" }
  | { type: "end" }
  | { type: "sequence"; parts: Node[] }
  | { type: "choice"; parts: Node[] }
  | { type: "repeat"; of: Node; min: number; max: number };

const MAX_COUNT = 100;
/** States of the automaton, after repetitions have been written out. */
const MAX_STATES = 500;

type Range = readonly [from: number, to: number];
const DIGITS: readonly Range[] = [[0x30, 0x39]];
const WORD: readonly Range[] = [...DIGITS, [0x61, 0x7a], [0x5f, 0x5f]];
const SPACE: readonly Range[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x2028, 0x2029],
  [0xfeff, 0xfeff],
];
const CLASSES: Record<string, readonly Range[]> = { d: DIGITS, w: WORD, s: SPACE };

const upperOf = (code: number): number => String.fromCharCode(code).toUpperCase().charCodeAt(0);

/** The text is compared in lower case, so a code of the set may also be the upper case of a code of the text. */
function toSet(isIn: (code: number) => boolean): CodeSet {
  const other = (code: number) => isIn(code) || isIn(upperOf(code));
  return { ascii: Uint8Array.from({ length: 128 }, (_, code) => (other(code) ? 1 : 0)), other };
}

const isInRanges = (ranges: readonly Range[]) => (code: number) =>
  ranges.some(([from, to]) => from <= code && code <= to);

const literalOf = (char: string): Node => {
  const lower = char.toLowerCase();
  const code = lower.charCodeAt(0);
  return { type: "codes", set: toSet((one) => one === code), literal: lower };
};

/** Returns the node of a class such as \d; undefined if the letter names none. */
function classOf(letter: string): ((code: number) => boolean) | undefined {
  const ranges = CLASSES[letter.toLowerCase()];
  if (!ranges) return undefined;
  const isIn = isInRanges(ranges);
  // \W of a capital letter would be true, so the negation asks for both cases.
  return letter === letter.toLowerCase() ? isIn : (code) => !isIn(code) && !isIn(lowerOf(code));
}

const lowerOf = (code: number): number => String.fromCharCode(code).toLowerCase().charCodeAt(0);

const GROUPS: readonly [start: string, name: string][] = [
  ["(?=", "lookahead (?=…)"],
  ["(?!", "lookahead (?!…)"],
  ["(?<=", "lookbehind (?<=…)"],
  ["(?<!", "lookbehind (?<!…)"],
  ["(?<", "named group (?<…>…)"],
  ["(?P", "named group (?P…)"],
  ["(?>", "atomic group (?>…)"],
  ["(?", "inline flag (?…)"],
];

/** The parser of one pattern. */
function parse(pattern: string): Node {
  let at = 0;
  const without = (name: string): never => {
    throw new PatternError(`expected a pattern without the ${name}`);
  };
  const expected = (what: string): never => {
    throw new PatternError(`expected ${what}`);
  };
  const tree = parseChoice();
  if (at < pattern.length) expected(`a "(" before the ")" at character ${at + 1}`);
  return tree;

  function parseChoice(): Node {
    const parts = [parseSequence()];
    while (pattern[at] === "|") {
      at++;
      parts.push(parseSequence());
    }
    return parts.length === 1 ? parts[0]! : { type: "choice", parts };
  }

  function parseSequence(): Node {
    const parts: Node[] = [];
    while (at < pattern.length && pattern[at] !== "|" && pattern[at] !== ")") parts.push(parseRepeats(parseAtom()));
    return { type: "sequence", parts };
  }

  function parseRepeats(of: Node): Node {
    const count = parseCount();
    if (!count) return of;
    // A lazy quantifier finds another match, but not in other texts.
    if (pattern[at] === "?") at++;
    else if (pattern[at] === "+") without(`possessive quantifier ${pattern[at - 1]}+`);
    if (parseCount()) expected(`something to repeat at character ${at}`);
    return { type: "repeat", of, ...count };
  }

  function parseCount(): { min: number; max: number } | undefined {
    const char = pattern[at];
    const known = { "*": [0, Infinity], "+": [1, Infinity], "?": [0, 1] }[char ?? ""];
    if (known) {
      at++;
      return { min: known[0]!, max: known[1]! };
    }
    if (char !== "{") return undefined;
    const [text, from, comma, to] = /^\{(\d{1,4})(,?)(\d{0,4})\}/.exec(pattern.slice(at, at + 12)) ?? [];
    if (text === undefined) return undefined;
    at += text.length;
    const min = Number(from);
    const max = comma === "" ? min : to === "" ? Infinity : Number(to);
    if (min > MAX_COUNT || (max !== Infinity && max > MAX_COUNT))
      expected(`a count of at most ${MAX_COUNT} in ${text}`);
    if (max < min) expected(`the smaller count first in ${text}`);
    return { min, max };
  }

  function parseAtom(): Node {
    const char = pattern[at]!;
    if (char === "(") return parseGroup();
    if (char === "[") return { type: "codes", set: toSet(parseBrackets()) };
    if (char === "\\") return parseEscape();
    if ("*+?".includes(char)) expected(`something to repeat before the "${char}" at character ${at + 1}`);
    at++;
    if (char === ".") return { type: "codes", set: toSet(() => true) };
    if (char === "^") return { type: "start" };
    if (char === "$") return { type: "end" };
    return literalOf(char);
  }

  function parseGroup(): Node {
    if (pattern.startsWith("(?:", at)) at += 3;
    else {
      for (const [start, name] of GROUPS) if (pattern.startsWith(start, at)) without(name);
      at++;
    }
    const inner = parseChoice();
    if (pattern[at] !== ")") expected(`a closing ")"`);
    at++;
    return inner;
  }

  /** Returns the character or class behind a backslash. */
  function readEscape(): string | ((code: number) => boolean) {
    const letter = pattern[at + 1];
    if (letter === undefined) return expected(`a character after the "\\" at the end`);
    at += 2;
    if (/[1-9]/.test(letter) || letter === "k") without(`backreference \\${letter}`);
    if (letter === "b" || letter === "B") without(`word boundary \\${letter}`);
    if (letter === "p" || letter === "P") without(`Unicode property \\${letter}`);
    if (letter === "n" || letter === "r") without(`line break \\${letter}: a pattern matches within a line`);
    if (letter === "t") return "\t";
    const isIn = classOf(letter);
    if (isIn) return isIn;
    if (/[a-z0-9]/i.test(letter)) without(`escape \\${letter}`);
    return letter;
  }

  function parseEscape(): Node {
    const found = readEscape();
    return typeof found === "string" ? literalOf(found) : { type: "codes", set: toSet(found) };
  }

  function parseBrackets(): (code: number) => boolean {
    const start = at++;
    const isNegated = pattern[at] === "^";
    if (isNegated) at++;
    const tests: ((code: number) => boolean)[] = [];
    for (let isFirst = true; pattern[at] !== "]" || isFirst; isFirst = false) {
      if (at >= pattern.length) expected(`a closing "]" for the "[" at character ${start + 1}`);
      const from = readMember();
      if (typeof from !== "string") tests.push(from);
      else if (pattern[at] === "-" && at + 1 < pattern.length && pattern[at + 1] !== "]") {
        at++;
        const to = readMember();
        if (typeof to !== "string" || to < from)
          return expected(`a range with its smaller end first at character ${at}`);
        tests.push(isInRanges([[from.charCodeAt(0), to.charCodeAt(0)]]));
      } else tests.push(isInRanges([[from.charCodeAt(0), from.charCodeAt(0)]]));
    }
    at++;
    const isIn = (code: number) => tests.some((test) => test(code));
    return isNegated ? (code) => !isIn(code) && !isIn(upperOf(code)) && !isIn(lowerOf(code)) : isIn;
  }

  function readMember(): string | ((code: number) => boolean) {
    if (pattern[at] === "\\") return readEscape();
    return pattern[at++]!;
  }
}

/** A state of the automaton: it consumes a code, or it leads on without consuming, or the pattern has matched. */
type State =
  | { type: "codes"; set: CodeSet; next: number }
  | { type: "split"; next: number[] }
  | { type: "start" | "end"; next: number }
  | { type: "match" };

/** Builds the states from the end of the pattern to its beginning; returns the first one. */
function build(tree: Node): { states: State[]; first: number } {
  const states: State[] = [];
  const add = (state: State): number => {
    if (states.length >= MAX_STATES)
      throw new PatternError(`expected a pattern of at most ${MAX_STATES} states after its counts are written out`);
    return states.push(state) - 1;
  };
  const first = addNode(tree, add({ type: "match" }));
  return { states, first };

  function addNode(node: Node, next: number): number {
    switch (node.type) {
      case "codes":
        return add({ type: "codes", set: node.set, next });
      case "start":
      case "end":
        return add({ type: node.type, next });
      case "sequence":
        return node.parts.reduceRight((after, part) => addNode(part, after), next);
      case "choice":
        return add({ type: "split", next: node.parts.map((part) => addNode(part, next)) });
      case "repeat":
        return addRepeat(node, next);
    }
  }

  function addRepeat({ of, min, max }: Extract<Node, { type: "repeat" }>, next: number): number {
    let after = next;
    if (max === Infinity) {
      const loop: State = { type: "split", next: [next] };
      after = add(loop);
      loop.next.push(addNode(of, after));
    } else for (let copy = min; copy < max; copy++) after = add({ type: "split", next: [next, addNode(of, after)] });
    for (let copy = 0; copy < min; copy++) after = addNode(of, after);
    return after;
  }
}

/** A text that every match contains; "" if none is known. Searching for it is much faster than the automaton. */
function requiredText(tree: Node): string {
  if (tree.type !== "sequence") return "";
  let [longest, current] = ["", ""];
  for (const part of tree.parts) {
    current = part.type === "codes" && part.literal !== undefined ? current + part.literal : "";
    if (current.length > longest.length) longest = current;
  }
  return longest;
}

/** A set of states, and what is known of the sets that follow it. */
type StateSet = { states: number[]; accepts: boolean; acceptsAtEnd: boolean; next: Map<number, StateSet> };

/** What a caller is willing to spend, in steps; a matcher that has used it up finds nothing. */
export type MatchBudget = { steps: number };

/** Maximum known transitions of a matcher. Beyond that they are forgotten, so that no text makes it grow without bound. */
const MAX_TRANSITIONS = 5_000;
/** Finding a new transition takes so many times as long for each state as following a known one. */
const STEPS_PER_STATE = 40;

/**
 * Returns a function that tells whether the pattern matches a part of a line of a text in lower case. It takes one step for each
 * character where it knows the transition, and otherwise a fixed number for each of its states. Throws a PatternError.
 */
export function compileLinearPattern(pattern: string): (text: string, budget: MatchBudget) => boolean {
  const tree = parse(pattern);
  const required = requiredText(tree);
  const { states, first } = build(tree);
  let known = new Map<string, StateSet>();
  let transitions = 0;
  let start = toStateSet([first], true);
  if (start.acceptsAtEnd) throw new PatternError("expected a pattern that does not match an empty text");

  /** Follows the states that consume nothing. */
  function toStateSet(from: readonly number[], isAtStart: boolean): StateSet {
    const [plain, atEnd] = [closure(from, isAtStart, false), closure(from, isAtStart, true)];
    const isMatch = (id: number) => states[id]!.type === "match";
    const key = `${isAtStart ? "^" : ""}${plain.join(",")}|${atEnd.some(isMatch)}`;
    const found = known.get(key);
    if (found) return found;
    const set = { states: plain, accepts: plain.some(isMatch), acceptsAtEnd: atEnd.some(isMatch), next: new Map() };
    known.set(key, set);
    return set;
  }

  function closure(from: readonly number[], isAtStart: boolean, isAtEnd: boolean): number[] {
    const seen = new Set<number>();
    const waiting = [...from];
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      if (seen.has(id)) continue;
      seen.add(id);
      const state = states[id]!;
      if (state.type === "split") waiting.push(...state.next);
      else if ((state.type === "start" && isAtStart) || (state.type === "end" && isAtEnd)) waiting.push(state.next);
    }
    return [...seen].sort((a, b) => a - b);
  }

  function step(set: StateSet, code: number, budget: MatchBudget): StateSet {
    budget.steps -= STEPS_PER_STATE * states.length;
    if (++transitions > MAX_TRANSITIONS) {
      known = new Map();
      transitions = 0;
      start = toStateSet([first], true);
    }
    // A match may also begin with the next character.
    const after = [first];
    for (const id of set.states) {
      const state = states[id]!;
      if (state.type === "codes" && (code < 128 ? state.set.ascii[code] === 1 : state.set.other(code)))
        after.push(state.next);
    }
    const next = toStateSet(after, false);
    set.next.set(code, next);
    return next;
  }

  function matchesLine(line: string, budget: MatchBudget): boolean {
    let set = start;
    for (let index = 0; index < line.length && !set.accepts; index++) {
      const code = line.charCodeAt(index);
      set = set.next.get(code) ?? step(set, code, budget);
      if (--budget.steps < 0) return false;
    }
    return set.accepts || set.acceptsAtEnd;
  }

  return (text, budget) => {
    if (budget.steps <= 0 || !text.includes(required)) return false;
    for (const line of text.split("\n")) if (matchesLine(line, budget)) return true;
    return false;
  };
}
