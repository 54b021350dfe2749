/** Reads ownership files: CODEOWNERS as GitHub and GitLab write it, with patterns of classes and packages beside paths. */

import { compilePattern, type OwnerPattern, type OwnerSyntax } from "./owner_patterns.ts";

export type OwnerRule = {
  /** The line number, from 1. */
  line: number;
  /** The pattern as it is written. */
  text: string;
  /** Whether the pattern is of classes and packages, and not of paths. */
  isOfClass: boolean;
  pattern: OwnerPattern;
  /** The owners; empty: matching files have no owner in this section. */
  owners: string[];
};

/** The last rule of a section that matches decides; the owners of all sections add up. */
export type OwnerSection = {
  /** Lower case; "" before the first heading. */
  name: string;
  rules: OwnerRule[];
  /** Patterns of paths and classes that the section does not apply to. */
  exclusions: OwnerRule[];
};

export type ParsedOwners = {
  syntax: OwnerSyntax;
  sections: OwnerSection[];
  /** Lines that could not be read, or only in part, in words. */
  warnings: string[];
};

/** Maximum length of a pattern in characters. */
const MAX_PATTERN_LENGTH = 500;
/** Maximum number of owners of one rule. */
const MAX_OWNERS = 50;
/** Maximum length of an owner's name in characters; a filter takes no longer text. */
const MAX_NAME_LENGTH = 200;
const MAX_WARNINGS = 100;

const CLASS = "class:";
/** Separators of class and package names in the languages that tests are written in. */
const CLASS_SEPARATOR = /\.|\/|\\|::|\$|#| > /;

/** `com.acme.cart.CartTest` → `["com", "acme", "cart", "CartTest"]`. */
export const splitClassName = (name: string): string[] => name.split(CLASS_SEPARATOR).filter((part) => part !== "");

const HEADING = /^(\^)?\[([^\]]+)\](?:\[(\d+)\])?(?:[ \t]([^]*))?$/;

/** A name, a group or a role with "@" before it, or an address. */
const isOwner = (word: string): boolean =>
  word.length <= MAX_NAME_LENGTH && (/^@@?[\w.-]+(?:\/[\w.-]+)*$/.test(word) || /^[^\s@]+@[^\s@]+$/.test(word));

const linesOf = (text: string): string[] =>
  text
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .map((line) => line.trim());

/** Only GitLab has sections. */
export const detectSyntax = (text: string): OwnerSyntax =>
  linesOf(text).some((line) => HEADING.test(line)) ? "gitlab" : "github";

/** `syntax`: if it is not given, a file with section headings is read as GitLab's. */
export function parseOwners(text: string, syntax: OwnerSyntax = detectSyntax(text)): ParsedOwners {
  const lines = linesOf(text);
  const file: ParsedOwners = { syntax, sections: [], warnings: [] };
  let left = 0;
  const warn = (line: number, problem: string) => {
    if (file.warnings.length < MAX_WARNINGS) file.warnings.push(`Line ${line}: ${problem}`);
    else left++;
  };
  const sections = new Map<string, OwnerSection>();
  const open = (name: string): OwnerSection => {
    let section = sections.get(name);
    if (!section) sections.set(name, (section = { name, rules: [], exclusions: [] }));
    return section;
  };
  let section: OwnerSection | undefined;
  let defaults: string[] = [];
  for (const [index, line] of lines.entries()) {
    const number = index + 1;
    if (line === "" || line.startsWith("#")) continue;
    const heading = file.syntax === "gitlab" ? HEADING.exec(line) : null;
    if (heading) {
      section = open(heading[2]!.trim().toLowerCase());
      defaults = readNames(heading[4] ?? "", file.syntax, (problem) => warn(number, problem)).names;
      continue;
    }
    section ??= open("");
    const rule = readRule(line, number, file.syntax, (problem) => warn(number, problem));
    if (!rule) continue;
    const { isExclusion, hasNames, ...read } = rule;
    if (isExclusion) section.exclusions.push(read);
    else section.rules.push(hasNames ? read : { ...read, owners: defaults });
  }
  file.sections = [...sections.values()];
  if (left > 0) file.warnings.push(`${left} more lines could not be read`);
  return file;
}

const shown = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

type ReadRule = OwnerRule & { isExclusion: boolean; hasNames: boolean };

/** Undefined: the line gives no rule, and `warn` has been called. */
function readRule(
  line: string,
  number: number,
  syntax: OwnerSyntax,
  warn: (problem: string) => void,
): ReadRule | undefined {
  const end = endOfPattern(line);
  const whole = line.slice(0, end);
  const isExclusion = syntax === "gitlab" && whole.startsWith("!");
  const text = isExclusion ? whole.slice(1) : whole;
  if (text.length > MAX_PATTERN_LENGTH) {
    warn(`the pattern has more than ${MAX_PATTERN_LENGTH} characters`);
    return undefined;
  }
  if (syntax === "github" && (text.startsWith("!") || /(?<!\\)\[/.test(text))) {
    warn(`GitHub does not support "!" and "[ ]" in patterns, got ${shown(text)}`);
    return undefined;
  }
  const isOfClass = text.startsWith(CLASS);
  const pattern = compilePattern(
    isOfClass ? toClassPath(text.slice(CLASS.length)) : text,
    isOfClass ? "github" : syntax,
  );
  if (!pattern) {
    warn(`expected a pattern, got ${shown(text)}`);
    return undefined;
  }
  const { names, isWhole } = readNames(line.slice(end), syntax, warn);
  // GitHub ignores a line as soon as one of its owners cannot be read, GitLab only that owner.
  if (!isWhole && (syntax === "github" || names.length === 0)) return undefined;
  if (isExclusion && names.length > 0) warn("an exclusion has no owners, they are ignored");
  return { line: number, text, isOfClass, pattern, owners: names, isExclusion, hasNames: names.length > 0 };
}

/** The pattern ends at the first blank that no backslash stands before. */
function endOfPattern(line: string): number {
  for (let index = 0; index < line.length; index++) {
    if (line[index] === "\\") index++;
    else if (line[index] === " " || line[index] === "\t") return index;
  }
  return line.length;
}

/** A pattern of one part matches at any depth, as a path without a slash does. */
const toClassPath = (text: string): string => text.split(CLASS_SEPARATOR).join("/");

function readNames(
  text: string,
  syntax: OwnerSyntax,
  warn: (problem: string) => void,
): { names: string[]; isWhole: boolean } {
  const names = new Set<string>();
  let isWhole = true;
  for (const word of text.split(/[ \t]+/)) {
    if (word === "") continue;
    // GitLab reads the owners that a comment behind a rule mentions; GitHub ends the line there.
    if (word.startsWith("#") && syntax === "github") break;
    if (isOwner(word)) names.add(word);
    else if (syntax === "github" || word.startsWith("@")) {
      warn(`expected an owner such as "@name", "@group/team" or an e-mail address, got ${shown(word)}`);
      isWhole = false;
    }
  }
  if (names.size > MAX_OWNERS) warn(`a rule has at most ${MAX_OWNERS} owners, ${names.size - MAX_OWNERS} are ignored`);
  return { names: [...names].slice(0, MAX_OWNERS), isWhole };
}
