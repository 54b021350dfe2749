/** Writes annotations in the syntax of CI systems, so that names of tests cannot contain commands. */

import type { CiSystemName } from "../rules/ci_systems.ts";
import { toPlainLine, withoutWorkflowCommands } from "./output.ts";
import { runCounts, runState, type ReportedRun } from "../wording/run_line.ts";
import { caseTitle } from "../wording/case_title.ts";

export type AnnotatedFailure = {
  suite: string;
  name: string;
  file: string | null;
  line: number | null;
  message: string | null;
  blame: string | null;
  /** The sentence about an unclear failure. */
  reason?: string | null;
};

const MAX_ANNOTATIONS = 10;
const MAX_MESSAGE = 2_000;

/** Characters that are more than text for a terminal or for a reader of lines; line breaks stay. */
const CONTROLS = /[^\P{C}\n]+|[\p{Zl}\p{Zp}]/gu;

const toPlainText = (text: string) =>
  withoutWorkflowCommands(text.replace(/\r\n?/g, "\n").replace(CONTROLS, " ")).slice(0, MAX_MESSAGE).toWellFormed();

const messageOf = (failure: AnnotatedFailure) => failure.message ?? `${caseTitle(failure)} failed`;

/** Escapes like GitHub's toolkit: https://github.com/actions/toolkit, packages/core/src/command.ts. */
const toData = (text: string) =>
  toPlainText(text).replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
const toProperty = (text: string) => toData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");

/** `placeOf` makes a path of the repository of the file that a report names. */
function ofGithub(failures: readonly AnnotatedFailure[], placeOf: (file: string) => string): string[] {
  return failures.slice(0, MAX_ANNOTATIONS).map((failure) => {
    const { file, line } = failure;
    const properties = [
      ...(file === null ? [] : [`file=${toProperty(placeOf(file))}`, ...(line === null ? [] : [`line=${line}`])]),
      `title=${toProperty(caseTitle(failure))}`,
    ];
    return `::error ${properties.join(",")}::${toData(messageOf(failure))}`;
  });
}

/** https://www.jetbrains.com/help/teamcity/service-messages.html#Escaped+Values */
const toTeamcity = (text: string) =>
  toPlainLine(text)
    .replace(/[|'[\]]/g, "|$&")
    .replace(/[\u0080-\uffff]/g, (unit) => `|0x${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Percent-encoding of data; https://github.com/microsoft/azure-pipelines-agent, docs/design/percentEncoding.md. */
const toAzure = (text: string) => toPlainLine(text).replaceAll("%", "%AZP25");

/** All the ways in which annotations write a text. */
export const ANNOTATION_ENCODINGS = [toData, toProperty, toTeamcity, toAzure];

/**
 * Returns lines for the log of the build, besides the verdict. `newFailures` are the unexplained failures of this run. Empty for a system
 * without such lines.
 */
export function toAnnotations(
  system: CiSystemName | undefined,
  run: ReportedRun,
  newFailures: readonly AnnotatedFailure[],
  placeOf: (file: string) => string,
): string[] {
  const summary = `Assay: ${run.taskSlug} ${runCounts(run)}`;
  if (system === "github") return ofGithub(newFailures, placeOf);
  if (system === "gitlab") return [`Test results: ${toPlainLine(run.url)}`];
  if (system === "teamcity") return [`##teamcity[buildStatus text='{build.status.text}; ${toTeamcity(summary)}']`];
  if (system === "azure")
    return run.verdict === "failed" ? [`##vso[task.logissue type=error]${toAzure(`${runState(run)} ${summary}`)}`] : [];
  return [];
}

/** Returns the lines that make the CI system show a warning; empty for a system that has nothing of the kind. */
export function toWarning(system: CiSystemName | undefined, message: string): string[] {
  if (system === "github") return [`::warning title=Assay::${toData(message)}`];
  if (system === "teamcity") return [`##teamcity[message text='${toTeamcity(`Assay: ${message}`)}' status='WARNING']`];
  if (system === "azure") return [`##vso[task.logissue type=warning]${toAzure(`Assay: ${message}`)}`];
  return [];
}
