/** Finds the lines of a log that report an error, so that readers can jump from one to the next. */

/** Longer lines are data: an error is named at the beginning of its line. */
const MAX_LENGTH = 1_000;

const ERROR_WORD =
  /\b(?:errors?|fail(?:ed|ures?|s)?|fatal|panic(?:ked)?|exceptions?|ERR!|segmentation fault|traceback)(?![\w-]|\.\w)/gi;

/** The classes of errors: TypeError, java.lang.IllegalStateException. */
const ERROR_CLASS = /\b(?:\w{1,40}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception)(?![\w-]|\.\w)/g;

/** A test that failed, as runners of tests list it. */
const FAILED_TEST = /^\s{0,40}(?:[✘✗✖×]\s|not ok\b)/;

/** Text directly before the word that turns it into the absence of an error: "0 failed", "no errors". */
const NONE_BEFORE = /(?:^|[^\w.,])(?:0|no|not?|without(?: any)?|zero|never|any|ignore[ds]?|non)[\s_-]{1,3}$/i;

/** Text directly after the word that does the same: "failed: 0", "errors=0", "errors (0)". */
const NONE_AFTER = /^\s{0,3}[:=(]?\s{0,8}0(?![\d.]*[1-9]|\w)/;

/** Part of a name: a file, an option or a path such as --fail-fast, error.log or src/error/. */
const NAME_BEFORE = /[\w$./\\-]$/;

/** Returns whether a line without colours reports an error. */
export function isErrorLine(line: string): boolean {
  const text = line.slice(0, MAX_LENGTH);
  if (FAILED_TEST.test(text)) return true;
  for (const match of [...text.matchAll(ERROR_WORD), ...text.matchAll(ERROR_CLASS)]) {
    const before = text.slice(Math.max(0, match.index - 20), match.index);
    const after = text.slice(match.index + match[0].length, match.index + match[0].length + 20);
    if (NAME_BEFORE.test(before) || /^[/\\]/.test(after)) continue;
    if (!NONE_BEFORE.test(before) && !NONE_AFTER.test(after)) return true;
  }
  return false;
}
