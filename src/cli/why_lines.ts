/** Lays out the answer of `assay why` for a terminal: at most forty lines, in which untrusted text is no command. */

import type { Execution } from "../schema/executions.ts";
import type { Cause } from "../schema/failures.ts";
import { isRed, type Why } from "../mcp/why.ts";
import { absentLines } from "../wording/absent_tests.ts";
import { caseTitle } from "../wording/case_title.ts";
import { lineName } from "../wording/execution_name.ts";
import { counted } from "../wording/numbers.ts";
import { branchSentence, bugLines, causeFacts, causeTitle, noExecution, redElsewhere } from "../wording/why.ts";
import { toPlainLine } from "./output.ts";

export const MAX_LINES = 40;
/** Lines that stand below the causes. */
const FOOTER_LINES = 3;
const MAX_TESTS = 2;
/** Maximum number of attachments of a cause. */
const MAX_ATTACHMENTS = 2;
/** Maximum number of other executions with red tasks. */
const MAX_ELSEWHERE = 5;
/** A line is read as far as a terminal could show it, also where a message has a megabyte. */
const MAX_READ = 2_000;

type Style = "red" | "green" | "bold" | "dim";
const STYLES: Record<Style, string> = { red: "\x1b[31m", green: "\x1b[32m", bold: "\x1b[1m", dim: "\x1b[2m" };

type Layout = { hasColours: boolean; columns: number };

/** Returns the lines without line breaks. */
export function whyLines(why: Why, { hasColours, columns }: Layout): string[] {
  const line = (indent: number, text: string, style?: Style): string => {
    const plain = `${" ".repeat(indent)}${toPlainLine(text.slice(0, MAX_READ)).trim()}`;
    const characters = [...plain];
    const shown = characters.length > columns ? `${characters.slice(0, columns - 1).join("")}…` : plain;
    return hasColours && style ? `${STYLES[style]}${shown}\x1b[0m` : shown;
  };
  const { state, execution, failures, running } = why;
  const sentence = state && branchSentence(state);
  if (!execution || !failures) return [line(0, sentence ?? noExecution(state ? "branch" : "pull request"))];
  const style = isRed(why) ? "red" : "green";
  const head = [
    ...(sentence ? [line(0, sentence, style)] : []),
    line(0, failures.headline, sentence ? "bold" : style),
    line(0, originOf(execution), "dim"),
    // An address that is cut leads nowhere.
    toPlainLine(execution.url),
    ...absentLines(failures).map((text) => line(0, text)),
    ...(running === null ? [] : [line(0, "A newer execution has not ended yet", "dim")]),
    ...(state ? elsewhereLines(redElsewhere(state, execution.id)) : []).map((text) => line(0, text)),
  ];
  const blocks = failures.causes.map((cause, index) => [
    "",
    line(0, `${index + 1}. ${causeTitle(cause)}`, "bold"),
    line(3, causeFacts(cause, execution.id).join(" · ")),
    ...bugLines(cause).map((text) => line(3, text)),
    ...testLines(cause).map((text) => line(3, text, "dim")),
    ...attachmentsOf(cause).flatMap(({ name, path, contentType, url }) => [
      line(3, `${name === path ? name : `${name}: ${path}`} (${contentType})`, "dim"),
      `   ${toPlainLine(url)}`,
    ]),
  ]);
  const shown = blocks.slice(0, countFitting(blocks, MAX_LINES - head.length - FOOTER_LINES));
  const more = failures.causeCount - shown.length;
  return [...head, ...shown.flat(), ...(more > 0 ? ["", line(0, `${counted(more, "more cause")} on the page`)] : [])];
}

/** Names the commands that explain the other red tasks of the branch. */
function elsewhereLines(elsewhere: ReadonlyMap<string, readonly string[]>): string[] {
  const shown = [...elsewhere].slice(0, MAX_ELSEWHERE);
  const more = elsewhere.size - shown.length;
  return [
    ...shown.map(([id, slugs]) => `Also red: ${slugs.join(", ")} (assay why --execution ${id})`),
    ...(more > 0 ? [`and ${counted(more, "more execution")} with red tasks`] : []),
  ];
}

/** Returns the number of blocks whose lines fit into `room`. */
function countFitting(blocks: readonly (readonly string[])[], room: number): number {
  let lines = 0;
  const first = blocks.findIndex((block) => (lines += block.length) > room);
  return first === -1 ? blocks.length : first;
}

/** Why the failure counts as it does, and the tests of a cause that is named by its message. */
function testLines({ failed, failures }: Cause): string[] {
  const [first] = failures;
  const names = failures.slice(0, MAX_TESTS).map((failure) => `${failure.taskSlug}: ${caseTitle(failure)}`);
  return [
    ...(first?.reason ? [first.reason] : []),
    ...(failed === 1 ? placeOf(first) : [`${names.join(", ")}${failed > names.length ? " and others" : ""}`]),
  ];
}

/** The files that explain the first failure. */
const attachmentsOf = ({ failures: [first] }: Cause) => first?.attachments.slice(0, MAX_ATTACHMENTS) ?? [];

const placeOf = (failure: Cause["failures"][number] | undefined): string[] =>
  failure?.file ? [`${failure.file}${failure.line === null ? "" : `:${failure.line}`}`] : [];

const originOf = ({ key, branch, baseBranch, commit, pullRequest, completedAt, createdAt }: Execution): string =>
  [
    key === null ? null : `execution ${key}`,
    lineName({ branch, baseBranch }),
    commit?.slice(0, 12),
    pullRequest === null ? null : `pull request ${pullRequest}`,
    completedAt === null ? `created ${createdAt}` : `ended ${completedAt}`,
  ]
    .filter(Boolean)
    .join(" · ");
