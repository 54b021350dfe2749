/** Regular expressions that match the titles of test cases, as test tools write them. */

import { MAX_NAME } from "../reports/text.ts";
import { DRAWN_PART } from "./drawn_name.ts";
import type { PlacedCase } from "./identity.ts";
import type { Cases } from "./rerun_cases.ts";

/** Stands for a drawn part while a name is made a pattern: no reader leaves such a character in a name. */
const DRAWN = "\u0000";
export const escape = (text: string): string =>
  text
    .replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
    .replaceAll("\ufffd", ".")
    .replaceAll(DRAWN, ".*");

/** The separators between suites and names: where one tool has a blank, another has " > " or " › ". */
export type Style = {
  /** The arrows alone: looking for the blanks around them as well would take quadratic time for a run of blanks. */
  arrows: RegExp;
  gap: string;
  /** The suite may be no part of the title, or be in the name already. */
  isVague?: boolean;
};
export const TITLES: Style = { arrows: />+/, gap: "[\\s>]+" };
export const VAGUE: Style = { ...TITLES, isVague: true };
export const ARROWS: Style = { arrows: /[>›]+/, gap: "[\\s>›]+" };

export const ANYTHING = "[\\s\\S]*";

/** A reader cuts between two halves of a character. */
export const isCut = (text: string) => text.length >= MAX_NAME - 1;

/** JUnit XML has a blank for whatever white space there was. */
export function flatten(text: string, { arrows, gap }: Style): string {
  const pieces = text.replace(DRAWN_PART, DRAWN).split(arrows);
  const last = pieces.length - 1;
  // Around arrows there may be blanks, and arrows with nothing but blanks between them are one.
  const parts = pieces
    .map((piece, at) => (at === 0 ? piece : piece.trimStart()))
    .map((piece, at) => (at === last ? piece : piece.trimEnd()))
    .filter((piece, at) => at === 0 || at === last || piece !== "");
  return parts.map((part) => part.split(/\s+/).map(escape).join("\\s+")).join(gap) + (isCut(text) ? ANYTHING : "");
}

export const either = (patterns: string[]): string => {
  const [first = "", ...rest] = new Set(patterns);
  return rest.length === 0 ? first : `(?:${[first, ...rest].join("|")})`;
};

export const anchored = (pattern: string): string => `^\\s*(?:${pattern})\\s*$`;

/** Returns the pattern of the suites, which come before the name. */
function suitePattern({ suite, file }: Omit<PlacedCase, "name">, style: Style): string {
  if (suite === "" || isNameOf(suite, file)) return "";
  const around = flatten(suite, style) + style.gap;
  return style.isVague ? `(?:${around})?` : around;
}

export const titlePattern = (one: PlacedCase, style: Style): string =>
  suitePattern(one, style) + flatten(one.name, style);

/** rspec_junit_formatter calls the file a class. */
function isNameOf(suite: string, file: string | null): boolean {
  return file !== null && suite === file.replace(/\.\w+$/, "").replaceAll("/", ".");
}

/** The suites from the outside in and the name; each suite once. */
export function titles({ only }: Cases, style: Style): string {
  const suites = Map.groupBy(only, (one) => suitePattern(one, style));
  const patterns = [...suites].map(
    ([around, inside]) => around + either(inside.map(({ name }) => flatten(name, style))),
  );
  return anchored([...new Set(patterns)].join("|"));
}
