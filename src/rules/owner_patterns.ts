/** The patterns of ownership files: compiled once, matched against paths in time proportional to both lengths. */

/** One character of a segment: exactly this one, any one, any number of any, or one of (or none of) some ranges. */
type Token = string | typeof ANY | typeof STAR | { ranges: [from: string, to: string][]; isNegated: boolean };

const ANY: unique symbol = Symbol("?");
const STAR: unique symbol = Symbol("*");
/** Any number of segments, none included. */
const GLOBSTAR: unique symbol = Symbol("**");

/** A segment without wildcards is a text; of another, every match begins with `head` and ends with `tail`. */
type Segment = string | { tokens: Token[]; head: string; tail: string };

export type OwnerPattern = {
  /** The segments that a path must begin with, joined by "/"; "" if the pattern does not begin with a literal segment. */
  prefix: string;
  /** The segments after the prefix. */
  rest: (Segment | typeof GLOBSTAR)[];
  /** A segment that a path must have somewhere, if the pattern begins with a globstar and a literal segment. */
  anywhere: string | undefined;
  /** Every path matches, and so does a test case whose file is unknown. */
  matchesAll: boolean;
};

/** Longer paths match nothing. */
export const MAX_OWNED_PATH_LENGTH = 4_096;
/** Paths of more segments have no owners either. */
export const MAX_OWNED_SEGMENTS = 100;

/** Counts comparisons of segments and characters: time grows with rules, segments and characters at once. */
export type Steps = { taken: number };
/** Maximum steps for one test case, tens of milliseconds. */
export const MAX_STEPS_OF_CASE = 1_000_000;

export type OwnerSyntax = "github" | "gitlab";

/** Returns undefined where a character class is not closed. */
function compileSegment(text: string, syntax: OwnerSyntax): Segment | undefined {
  const tokens: Token[] = [];
  for (let index = 0; index < text.length; index++) {
    const char = text[index]!;
    if (char === "\\" && index + 1 < text.length) tokens.push(text[++index]!);
    else if (char === "?") tokens.push(ANY);
    else if (char === "*") {
      if (tokens.at(-1) !== STAR) tokens.push(STAR);
    } else if (char === "[" && syntax === "gitlab") {
      const end = text.indexOf("]", index + 2);
      if (end === -1) return undefined;
      tokens.push(compileClass(text.slice(index + 1, end)));
      index = end;
    } else tokens.push(char);
  }
  return toSegment(tokens);
}

function toSegment(tokens: Token[]): Segment {
  const isLiteral = (token: Token) => typeof token === "string";
  const first = tokens.findIndex((token) => !isLiteral(token));
  if (first === -1) return tokens.join("");
  const last = tokens.findLastIndex((token) => !isLiteral(token));
  return { tokens, head: tokens.slice(0, first).join(""), tail: tokens.slice(last + 1).join("") };
}

const ANY_SEGMENT = toSegment([STAR]);

function compileClass(text: string): Token {
  const isNegated = /^[!^]/.test(text);
  const ranges: [string, string][] = [];
  for (let index = isNegated ? 1 : 0; index < text.length; index++) {
    const from = text[index]!;
    const to = text[index + 1] === "-" && index + 2 < text.length ? text[index + 2]! : from;
    ranges.push([from, to]);
    if (to !== from || text[index + 1] === "-") index += index + 2 < text.length ? 2 : 0;
  }
  return { ranges, isNegated };
}

const ROOT: OwnerPattern = { prefix: "", rest: [GLOBSTAR], anywhere: undefined, matchesAll: true };

/**
 * GitHub reads patterns as .gitignore does: one with a slash before its end is relative to the root, a match includes
 * everything below it, and "docs/*" matches only files directly in docs. GitLab matches a pattern without a leading slash in
 * any folder, and includes what is below only where the pattern ends with a slash.
 *
 * Returns undefined where the pattern is empty or a character class is not closed.
 */
export function compilePattern(pattern: string, syntax: OwnerSyntax): OwnerPattern | undefined {
  const isFolder = pattern.endsWith("/");
  const body = pattern.replace(/^\//, "").replace(/\/$/, "");
  if (body === "") return pattern === "/" ? ROOT : undefined;
  const parts = body.split("/");
  const isAnchored = pattern.startsWith("/") || (syntax === "github" && parts.length > 1);
  const segments: OwnerPattern["rest"] = isAnchored ? [] : [GLOBSTAR];
  for (const part of parts) {
    const segment = part === "**" ? GLOBSTAR : compileSegment(part, syntax);
    if (segment === undefined || segment === "") return undefined;
    if (segment !== GLOBSTAR || segments.at(-1) !== GLOBSTAR) segments.push(segment);
  }
  const last = parts.at(-1);
  // "a/**" is everything in a, and not a itself.
  if (isFolder && last !== "**") segments.push(GLOBSTAR);
  if (isFolder || last === "**") segments.push(ANY_SEGMENT);
  const isOneLevel = last === "*" && isAnchored;
  if (syntax === "github" && !isFolder && last !== "**" && !isOneLevel) segments.push(GLOBSTAR);
  const literals = segments.findIndex((segment) => typeof segment !== "string");
  const count = literals === -1 ? segments.length : literals;
  return {
    prefix: segments.slice(0, count).join("/"),
    rest: segments.slice(count),
    anywhere: segments[0] === GLOBSTAR && typeof segments[1] === "string" ? segments[1] : undefined,
    matchesAll: segments.every(isWild) && !isOneLevel,
  };
}

const isWild = (segment: Segment | typeof GLOBSTAR): boolean =>
  segment === GLOBSTAR || (typeof segment !== "string" && segment.tokens.every((token) => token === STAR));

function matchesToken(token: Token, char: string): boolean {
  if (typeof token === "string") return token === char;
  if (typeof token === "symbol") return true;
  return token.ranges.some(([from, to]) => from <= char && char <= to) !== token.isNegated;
}

/** Only the last star is tried again: an earlier one that took less could not match more. */
function matchesSegment(segment: Segment, text: string, steps: Steps): boolean {
  steps.taken++;
  if (typeof segment === "string") return segment === text;
  const { tokens, head, tail } = segment;
  // Most segments of a repository fail here, at a fraction of the time.
  if (text.length < head.length + tail.length || !text.endsWith(tail) || !text.startsWith(head)) return false;
  let [at, token, star, starAt] = [0, 0, -1, 0];
  while (at < text.length) {
    steps.taken++;
    if (token < tokens.length && tokens[token] !== STAR && matchesToken(tokens[token]!, text[at]!)) {
      at++;
      token++;
    } else if (token < tokens.length && tokens[token] === STAR) {
      star = token++;
      starAt = at;
    } else if (star !== -1) {
      token = star + 1;
      at = ++starAt;
    } else return false;
  }
  while (token < tokens.length && tokens[token] === STAR) token++;
  return token === tokens.length;
}

/** Whether the segments of a path from `start` on match the part after a pattern's prefix. */
export function matchesRest({ rest }: OwnerPattern, path: readonly string[], start: number, steps: Steps): boolean {
  let [at, index, star, starAt] = [start, 0, -1, 0];
  while (at < path.length) {
    if (++steps.taken > MAX_STEPS_OF_CASE) return false;
    const segment = rest[index];
    if (segment === GLOBSTAR) {
      star = index++;
      starAt = at;
    } else if (segment !== undefined && matchesSegment(segment, path[at]!, steps)) {
      at++;
      index++;
    } else if (star !== -1) {
      index = star + 1;
      at = ++starAt;
    } else return false;
  }
  while (rest[index] === GLOBSTAR) index++;
  return index === rest.length;
}
