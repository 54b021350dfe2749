/** Advice for uploads that were refused or accepted with warnings, by the text of the answer. */

import type { LoggedUpload } from "../schema/uploads.ts";

type Advice = { pattern: RegExp; text: string };

/** Advice in the order in which it is tried. */
const REFUSED: readonly Advice[] = [
  {
    pattern: /^Rate limit exceeded/,
    text: "Send the reports of a job in one request (-F file=@a.xml -F file=@b.xml), and let curl retry (--retry 6): the answer says when.",
  },
  {
    pattern: /holds no test case|: it is empty$/,
    text: "The tests did not run, or wrote their report elsewhere. Check the previous step; exit_code=$? records a failure, and allow_empty=true is for jobs that may run no tests.",
  },
  {
    pattern:
      /^Body too large|it is larger than|larger than \d|hold.{0,200} too many|more than [\d,]+ (?:elements|root elements)/,
    text: "Remove attachments and output from the report, compress it (gzip), or upload each shard separately.",
  },
  {
    pattern: /coverage/i,
    text: "This is a coverage report. Send the report of the test tool instead, such as JUnit XML.",
  },
  {
    pattern: /not a test report|of no known format|without a root element|compressed twice/,
    text: "Check the file that the step sends: it is not a test report. Unpack a zip archive first; use format=junit if the format is not recognised.",
  },
  {
    pattern: /malformed XML|not valid JSON|breaks off|broken:|not complete/,
    text: "The report is truncated or damaged: the job was stopped while writing it, or two processes wrote one file.",
  },
  {
    pattern: /^The body is truncated|took longer than/,
    text: "The connection ended before the report was complete: the job was stopped, or a proxy closed the connection. curl --retry 6 sends it again.",
  },
  {
    pattern: /"shard"/,
    text: "A shard has a number and a total, such as 2/4, and every upload of a task must have the same total.",
  },
  {
    pattern: /^Unknown field/,
    text: "A parameter is misspelt. Common parameters are task_slug, execution_key, branch, commit, pull_request, shard, exit_code, environment and build_url.",
  },
  {
    pattern: /^Idempotency-Key/,
    text: "Use a new Idempotency-Key for each upload, and the same key only to retry an upload.",
  },
  {
    pattern: /execution_key for another build/,
    text: "Use one execution_key for all jobs of a build, and a different one for each build, such as the id of the build in CI.",
  },
  { pattern: /lease/, text: "The runner was too late: its task was given to another runner, or cancelled." },
  {
    pattern: /^Cannot read the body: |Content-Type|Content-Encoding|multipart/,
    text: "Send the file unchanged: curl --data-binary @report.xml, or -F file=@report.xml for several.",
  },
  {
    pattern: /^Cannot read "/,
    text: "A parameter has an unexpected value, often because a CI variable is empty or has another name.",
  },
];

const WARNED: readonly Advice[] = [
  {
    pattern: /as far as possible|broke|breaks off|cut off/i,
    text: "The report is truncated: the tests were stopped while writing it. The complete results count.",
  },
  {
    pattern: /declare|totals|says that/i,
    text: "The totals of the report differ from its test cases: the tool that wrote or merged it lost some.",
  },
  { pattern: /no test case|is empty/i, text: "The tests did not run, or wrote their report elsewhere." },
];

/** Returns undefined if the text of the answer needs no advice. */
export function adviceFor({
  outcome,
  statusCode,
  text,
}: Pick<LoggedUpload, "outcome" | "statusCode"> & { text: string }) {
  if (statusCode >= 500) return "This is an error of the server: curl --retry 6 sends the report again.";
  return (outcome === "refused" ? REFUSED : WARNED).find(({ pattern }) => pattern.test(text))?.text;
}
