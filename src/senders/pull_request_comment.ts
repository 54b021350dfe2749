/** Writes the comment on a pull request in Markdown, for GitHub and GitLab. */

import type {
  CulpritComment,
  FailedCause,
  FailedTest,
  NamedTest,
  PullRequestState,
  SomeOf,
} from "../schema/pull_requests.ts";
import { counted, toCount, toDuration } from "../wording/numbers.ts";
import { slowerWords } from "../wording/slower.ts";
import { code, isHttp, oneLine, shorten } from "./sender.ts";

/** GitHub takes 65,536 characters. */
const MAX_COMMENT_CHARACTERS = 65_535;
const MAX_TITLE_CHARACTERS = 200;
const MAX_MESSAGE_CHARACTERS = 300;
const MAX_PROOF_CHARACTERS = 400;
/** Maximum number of owners that are named of one test. */
const MAX_OWNERS = 3;

/** An invisible line that distinguishes the comment from others of the same author. */
export const markerOf = (projectId: string): string => `<!-- assay ${projectId} -->`;

/** Tells the comment about a bug on the pull request that brought its culprit from others of the same author. */
export const culpritMarkerOf = (projectId: string, bugReportId: string): string =>
  `<!-- assay ${projectId} culprit ${bugReportId} -->`;

const escapeUrl = (url: string) => url.replace(/[<>\s\\]/g, encodeURIComponent);
const link = ({ title, url }: NamedTest, max = MAX_TITLE_CHARACTERS) =>
  `[${code(shorten(title, max))}](<${escapeUrl(url)}>)`;

/** A cell of a table ends at a bar, even within code, unless an odd number of backslashes is before it. */
const cell = (text: string) => text.replace(/(\\*)\|/g, "$1$1\\|");

/** The list of a section, each item at the depth of `indent`. */
function list(lines: readonly string[], more: number, indent = ""): string {
  const all = more > 0 ? [...lines, `and ${toCount(more)} more`] : lines;
  return all.map((line) => `${indent}- ${line}`).join("\n");
}

function section<Item>(title: string, { first, total }: SomeOf<Item>, toLine: (item: Item) => string): string[] {
  if (first.length === 0) return [];
  return [
    `**${title} (${toCount(total)})**`,
    list(
      first.map((item) => toLine(item)),
      total - first.length,
    ),
  ];
}

const testWords = ({ owners, location, ...test }: FailedTest): string =>
  [link(test), location === null ? "" : code(location), ...owners.slice(0, MAX_OWNERS).map(code)]
    .filter(Boolean)
    .join(" ");

/** Formats the tests of one cause: the shared message once, then the names. */
function causeLine({ message, bug, tests: { first, total } }: FailedCause): string {
  const said = message === "" ? "" : code(shorten(oneLine(message), MAX_MESSAGE_CHARACTERS));
  const known = bug === null ? "" : ` ${link(bug)}`;
  if (total === 1) return `${testWords(first[0]!)}${known}${said === "" ? "" : `\n  ${said}`}`;
  const head = `${counted(total, "test")}${said === "" ? "" : `: ${said}`}${known}`;
  return `${head}\n${list(first.map(testWords), total - first.length, "  ")}`;
}

function newFailures({ first, total }: PullRequestState["newFailures"]): string[] {
  if (first.length === 0) return [];
  const shown = first.reduce((sum, { tests }) => sum + tests.total, 0);
  return [`**New failures (${toCount(total)})**`, list(first.map(causeLine), total - shown)];
}

function knownBugLine({ failed, culprit, ...bug }: PullRequestState["knownBugs"]["first"][number]): string {
  const head = `${link(bug)} ${counted(failed, "failure")}`;
  return culprit === null ? head : `${head}\n  ${link(culprit, MAX_PROOF_CHARACTERS)}`;
}

function taskDuration(durationMs: number, slower: { usualMs: number } | null): string {
  if (slower !== null) return slowerWords(durationMs, slower);
  return durationMs > 0 ? toDuration(durationMs) : "";
}

function taskTable({ first, total }: PullRequestState["tasks"]): string[] {
  if (first.length === 0) return [];
  const rows = first.map(
    ({ outcome, durationMs, slower, ...task }) =>
      `| ${cell(link(task))} | ${cell(code(outcome))} | ${taskDuration(durationMs, slower)} |`,
  );
  const more = total > first.length ? [`| and ${toCount(total - first.length)} more | | |`] : [];
  return [["| Task | Result | Duration |", "| --- | --- | ---: |", ...rows, ...more].join("\n")];
}

function originLine({ url, buildUrl, commit, queue, durationMs, baseline }: PullRequestState): string {
  const parts = [
    `[Assay](<${escapeUrl(url)}>)`,
    buildUrl !== null && isHttp(buildUrl) && `[Build](<${escapeUrl(buildUrl)}>)`,
    commit !== null && `commit ${code(commit.slice(0, 12))}`,
    queue !== null && `merge queue ${code(queue)}`,
    durationMs > 0 && toDuration(durationMs),
    baseline !== null && `compared with ${link(baseline)}`,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Renders at most 65,535 characters. If everything is fine the details are folded, so that the comment takes one line. */
export function renderComment(state: PullRequestState, projectId: string): string {
  const { projectName, headline, rerun, isGood } = state;
  const title = `${code(shorten(projectName, MAX_TITLE_CHARACTERS))}: ${code(shorten(headline, 500))}${rerun === null ? "" : `, ${rerun}`}`;
  const details = [
    ...newFailures(state.newFailures),
    ...section("Unclear: a rerun tells", state.unclearFailures, ({ reason, ...test }) => `${link(test)} ${reason}`),
    ...section("Known bugs", state.knownBugs, knownBugLine),
    ...section("New tests that are not reliable", state.unreliableNewTests, ({ statement, ...test }) => {
      return `${link(test)} ${statement}`;
    }),
    ...section("Tests of the baseline that did not run", state.missing, link),
    ...section("Newly skipped", state.newlySkipped, link),
    ...taskTable(state.tasks),
    ...section("Failures of known flaky tests", state.flakyFailures, link),
    ...section("Flaky: passed on retry", state.flaky, link),
    ...section("Fixed", state.fixed, link),
    ...section("Slower than usual", state.slower, ({ durationMs, usualMs, ...test }) => {
      return `${link(test)} ${slowerWords(durationMs, { usualMs })}`;
    }),
    originLine(state),
  ];
  // Markdown is not read in the line of a summary.
  const summary = Bun.escapeHTML(oneLine(`${shorten(projectName, MAX_TITLE_CHARACTERS)}: ${headline}`));
  const parts = isGood
    ? [`<details><summary>${withoutMentions(summary)}</summary>`, ...details, "</details>"]
    : [`### ${title}`, ...details];
  return shorten([markerOf(projectId), ...parts].join("\n\n"), MAX_COMMENT_CHARACTERS);
}

/** The comment on the pull request that broke a test. The code host links the hashes, which stand outside of code. */
export function renderCulpritComment({ projectId, test, commit, proof, bugReport }: CulpritComment): string {
  const { id, number, url } = bugReport;
  return [
    culpritMarkerOf(projectId, id),
    `This change broke ${link(test)}. Commit ${commit.slice(0, 10)}: ${proof} · [bug report #${number}](<${escapeUrl(url)}>)`,
  ].join("\n\n");
}

/** Names of projects are entered by people: outside of code, an @ would notify someone. */
const withoutMentions = (html: string) => `<code>${html.replaceAll("@", "&#64;")}</code>`;
