/** The commits that an upload describes: who made each of them, when, and why, as git writes them. */

import * as v from "valibot";
import { described, toStorable } from "./fields.ts";

/** Maximum number of commits that one upload describes. */
export const MAX_COMMITS = 50;
/** The arguments of git that write the lines of a commit and of at most `max - 1` before it. */
export const gitLogOf = (commit: string, max: number): string[] => [
  ...["log", "--first-parent", "--no-show-signature", `--max-count=${max}`, "--format=%H%x09%P%x09%an%x09%cI%x09%s"],
  commit,
];
const MAX_AUTHOR = 200;
const MAX_SUBJECT = 500;

const LINE =
  /^([0-9a-f]{40}|[0-9a-f]{64})\t([0-9a-f ]*)\t([^\n]*?)\t((?:19[7-9]|2\d\d)\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d))\t([^\n]*)$/i;

/** Characters that move the cursor of a terminal, or change the direction of the text after them. */
const CONTROLS = /[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g;
const toWords = (text: string, max: number): string => toStorable(text.replace(CONTROLS, " ").slice(0, max));

/** `parent` is the first one; null: there is none, or the clone does not have it. */
export type DescribedCommit = {
  hash: string;
  parent: string | null;
  author: string;
  committedAt: string;
  subject: string;
};

/** Returns the commit that a line describes; undefined if the line has another form. */
function readCommitLine(line: string): DescribedCommit | undefined {
  const [, hash, parents = "", author, time, subject] = LINE.exec(line) ?? [];
  if (hash === undefined || !Number.isFinite(Date.parse(time!))) return undefined;
  return {
    hash: hash.toLowerCase(),
    parent: parents.toLowerCase().split(" ")[0] || null,
    author: toWords(author!, MAX_AUTHOR),
    committedAt: new Date(time!).toISOString(),
    subject: toWords(subject!, MAX_SUBJECT),
  };
}

/** Returns the lines of git that describe a commit, each cut to so many characters. */
export const keepCommitLines = (output: string, maxLength: number): string =>
  commitLines(output)
    .filter((line) => readCommitLine(line) !== undefined)
    .map((line) => line.slice(0, maxLength).toWellFormed())
    .join("\n");

const commitLines = (text: string): string[] => text.split(/\r?\n/).filter((line) => line.trim() !== "");

const MAX_TEXT = 50_000;
const EXPECTED =
  "expected lines of a full hash, the hashes of the parents, an author, a time and a subject, separated by tabs";

export const commits = described(
  v.pipe(
    v.string(EXPECTED),
    v.maxLength(MAX_TEXT, `expected at most ${MAX_TEXT} characters`),
    v.check((text) => commitLines(text).length <= MAX_COMMITS, `expected at most ${MAX_COMMITS} commits`),
    v.check((text) => commitLines(text).every((line) => readCommitLine(line) !== undefined), EXPECTED),
    v.transform((text): DescribedCommit[] => commitLines(text).map((line) => readCommitLine(line)!)),
    v.metadata({ openapi: { type: "string", maxLength: MAX_TEXT } }),
  ),
  "The tested commit and those before it, a line each, at most 50, as `git log --format=%H%x09%P%x09%an%x09%cI%x09%s` writes " +
    "them: pages and messages show author and subject beside the hash. Those of an untrusted upload are ignored",
  "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432\t1a2b3c4d5e6f708192a3b4c5d6e7f80912345678\tAda\t2026-01-31T10:00:00+01:00\tRound prices",
);
