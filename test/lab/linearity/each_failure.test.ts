/**
 * What is done for each failure, name and branch is bounded in time, and not only in characters: a report of 500 KB has hundreds of
 * failures, and a request a thousand names. Words that took 50 ms to seconds each before are among the texts. `bun run linearity`.
 */

import { expect, test } from "bun:test";
import { isLongLived } from "../../../src/rules/branch.ts";
import { caseFingerprint, fingerprint, readFailure } from "../../../src/rules/fingerprint.ts";
import { isFromOutside } from "../../../src/rules/outside.ts";
import { createFileMatch } from "../../../src/rules/plan.ts";
import { readBugSearch } from "../../../src/rules/bug_search.ts";
import { plainWord } from "../../../src/rules/randomness.ts";
import { TIMEOUT_MS } from "./growth.ts";

/** Milliseconds of processor time; usual failures take a tenth of one. */
const MAX_MS = 10;
const ROUNDS = 5;

const UNITS = [
  ...[
    "a",
    "A",
    "1",
    "-",
    "_",
    ".",
    "/",
    "\\",
    "'",
    '"',
    "`",
    "<",
    "[",
    "(",
    "@",
    ":",
    "=",
    ",",
    " ",
    "\n",
    "\u2028",
    "é",
  ],
  ...[
    "a_a__",
    "a_",
    "a-",
    "a.",
    "a/",
    "/a",
    "@a",
    "1-/a",
    "1,",
    "1.",
    "1 ",
    "A1",
    "aA",
    "Aa",
    "ab1_",
    "'\\",
    '\\"',
    "x=",
  ],
  ...[
    "Assert",
    "Error.",
    "Error ",
    " \n",
    "\r\n",
    "cause: ",
    "Caused by: ",
    "--> ",
    "connection ",
    "status 50",
    "http://a/",
  ],
  ...[
    "at a (b:1)\n",
    "expected: ",
    "with data set ",
    "::",
    "a::",
    "<a>",
    "50%",
    "0x1",
    "\x1b[1m",
    "“a",
    "-a-",
    "a@b.",
    "1e1",
  ],
];
const TEXTS = UNITS.flatMap((unit) => {
  const long = unit.repeat(Math.ceil(8_000 / unit.length));
  return [long, `Error: ${long}`, `${long}$Error: x`, `A${long}!`, `${long}c`];
});

const failureOf = (text: string) => ({ kind: null, message: text, stack: text, suite: "s", name: "n", file: null });

const WORK: Record<string, (text: string) => unknown> = {
  fingerprint: (text) => fingerprint(failureOf(text)),
  caseFingerprint: (text) => caseFingerprint({ ...failureOf(text), testCase: 1 }),
  readFailure: (text) => readFailure(failureOf(text)),
  isFromOutside: (text) => isFromOutside(failureOf(text)),
  plainWord: (text) => plainWord(text.slice(0, 1_000)),
  createFileMatch: (text) => createFileMatch([`b/${text.slice(0, 990)}`])(text.slice(0, 1_000)),
  readBugSearch: (text) => readBugSearch(text.slice(0, 500)),
  isLongLived: (text) => isLongLived(text.slice(0, 255), [`${text.slice(0, 1)}${"*a".repeat(60)}b`]),
};

const cpuMs = (work: () => unknown): number => {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
};

test.each(Object.entries(WORK))(
  "%s takes milliseconds whatever the text",
  (_, work) => {
    const slow = TEXTS.flatMap((text) => {
      const ms = Math.min(...Array.from({ length: ROUNDS }, () => cpuMs(() => work(text))));
      return ms > MAX_MS ? [`${JSON.stringify(text.slice(0, 20))}: ${ms.toFixed(0)} ms`] : [];
    });
    expect(slow).toEqual([]);
  },
  TIMEOUT_MS,
);
