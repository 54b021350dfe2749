/** What to do about an upload that was refused, or taken in with warnings: the usual reasons. */

import type { LoggedUpload } from "../schema/uploads.ts";

type Advice = { pattern: RegExp; text: string };

/** In the order in which they are tried. */
const REFUSED: readonly Advice[] = [
  {
    pattern: /^Rate limit exceeded/,
    text: "Send the reports of a job in one request (-F file=@a.xml -F file=@b.xml), and let curl try again (--retry 6): the answer says when.",
  },
  {
    pattern: /holds no test case|: it is empty$/,
    text: "The tests did not run, or wrote their report elsewhere. Look at the step before; exit_code=$? makes a failure of it, allow_empty=true is for jobs that rightly run nothing.",
  },
  {
    pattern:
      /^Body too large|it is larger than|larger than \d|hold.{0,200} too many|more than [\d,]+ (?:elements|root elements)/,
    text: "Leave attachments and output out of the report, send it compressed (gzip), or one upload for each shard.",
  },
  {
    pattern: /coverage/i,
    text: "That is how much was covered, not what was tested: send the report of the test runner, JUnit XML for one.",
  },
  {
    pattern: /not a test report|of no known format|without a root element|compressed twice/,
    text: "Look at the file that the step sends: it is not what the test runner wrote. A zip archive is to be unpacked before; format=junit is for what is not recognised by itself.",
  },
  {
    pattern: /malformed XML|not valid JSON|breaks off|broken:|not whole/,
    text: "The report was cut off or damaged on its way: the job was stopped while it wrote, or two processes wrote one file.",
  },
  {
    pattern: /^The body broke off|took longer than/,
    text: "The connection ended before the report was there: the job was stopped, or a proxy in between cut it. curl --retry 6 sends it again.",
  },
  {
    pattern: /"shard"/,
    text: 'A shard is a number of how many, such as 2/4, and every upload of a task says the same "of how many".',
  },
  {
    pattern: /^Unknown field/,
    text: "A parameter is misspelt: task_slug, execution_key, branch, commit, pull_request, shard, exit_code, environment and build_url are the usual ones.",
  },
  {
    pattern: /^Idempotency-Key/,
    text: "Each upload wants an Idempotency-Key of its own; only one that is tried again has the same.",
  },
  {
    pattern: /execution_key for another build/,
    text: "All jobs of one build have the same execution_key, and no two builds do: take the id that CI gives each of them.",
  },
  { pattern: /lease/, text: "The runner was too late: its task was given to another one, or cancelled." },
  {
    pattern: /^Cannot read the body: |Content-Type|Content-Encoding|multipart/,
    text: "Send the file as it is: curl --data-binary @report.xml, or -F file=@report.xml for several.",
  },
  {
    pattern: /^Cannot read "/,
    text: "A parameter holds something else than expected, often a variable of CI that is empty or of another name there.",
  },
];

const WARNED: readonly Advice[] = [
  {
    pattern: /as far as possible|broke|breaks off|cut off/i,
    text: "The report ends too early: the tests were stopped while they wrote it. What was there counts.",
  },
  {
    pattern: /declare|totals|says that/i,
    text: "The report's totals are not those of its test cases: some were lost in the tool that wrote or merged it.",
  },
  { pattern: /no test case|is empty/i, text: "The tests did not run, or wrote their report elsewhere." },
];

/** Undefined where the words say all there is to say. */
export function adviceFor({
  outcome,
  statusCode,
  text,
}: Pick<LoggedUpload, "outcome" | "statusCode"> & { text: string }) {
  if (statusCode >= 500) return "That was the server's fault and not yours: curl --retry 6 sends the report again.";
  return (outcome === "refused" ? REFUSED : WARNED).find(({ pattern }) => pattern.test(text))?.text;
}
