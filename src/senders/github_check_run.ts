/** Check runs of a GitHub App: the outcome of a commit, with annotations at the lines that failed. */

import type { Outbound, OutboundAnswer } from "../http/outbound.ts";
import type { Annotation } from "../schema/pull_requests.ts";
import {
  at,
  type Job,
  listAt,
  oneLine,
  type Outcome,
  parse,
  postJson,
  shorten,
  textAt,
  toMarkdown,
  withLink,
} from "./sender.ts";

type Access = {
  http: Pick<Outbound, "request">;
  headers: Record<string, string>;
  /** The address of the repository. */
  repository: string;
  judge: (answer: OutboundAnswer, ok: boolean, now: Date) => Outcome;
};

/** GitHub takes no more in one request; further requests add to them. */
const MAX_BATCH_SIZE = 50;
const MAX_TITLE_CHARACTERS = 255;
/** GitHub takes 64 KiB. */
const MAX_MESSAGE = 4_000;

const CONCLUSIONS = { success: "success", failure: "failure", error: "timed_out" } as const;

const toAnnotation = ({ path, line, title, message }: Annotation) => ({
  path,
  start_line: line,
  end_line: line,
  annotation_level: "failure",
  title: shorten(oneLine(title), MAX_TITLE_CHARACTERS),
  message: shorten(Bun.stripANSI(message), MAX_MESSAGE),
});

/** A check run that an earlier try has made, with the number of its annotations. */
async function findCheckRun({ http, headers, repository }: Access, { id, notice, options }: Job) {
  const name = encodeURIComponent(options.context ?? "assay");
  const url = `${repository}/commits/${notice.commit}/check-runs?check_name=${name}&filter=all&per_page=100`;
  const answer = await http.request({ method: "GET", url, headers, maxBytes: 1_048_576 });
  const run = listAt(parse(answer.text), "check_runs").find((one) => textAt(one, "external_id") === id);
  const runId = at(run, "id");
  return typeof runId === "number" ? { runId, count: Number(at(run, "output", "annotations_count")) || 0 } : undefined;
}

/** Creates one check run per delivery; GitHub shows the newest of a name. */
export async function createCheckRun(access: Access, job: Job): Promise<Outcome> {
  const { http, headers, repository, judge } = access;
  const { notice, options, annotations = [], now } = job;
  if (notice.state === null || !/^[0-9a-f]{40}$/i.test(notice.commit ?? ""))
    return { status: "refused", error: "A check run needs the whole hash of the commit" };
  const output = {
    title: shorten(oneLine(notice.text), MAX_TITLE_CHARACTERS),
    summary: shorten(toMarkdown(notice), 60_000),
  };
  const found = job.isRetry ? await findCheckRun(access, job) : undefined;
  let runId: unknown = found?.runId;
  let sent = found?.count ?? 0;
  let link: string | undefined;
  if (!found) {
    const answer = await http.request(
      postJson(`${repository}/check-runs`, headers, {
        name: options.context ?? "assay",
        head_sha: notice.commit,
        external_id: job.id,
        ...(notice.url === null ? {} : { details_url: notice.url }),
        status: "completed",
        conclusion: CONCLUSIONS[notice.state],
        output: { ...output, annotations: annotations.slice(0, MAX_BATCH_SIZE).map(toAnnotation) },
      }),
    );
    if (answer.status !== 201) return judge(answer, false, now);
    runId = at(parse(answer.text), "id");
    link = textAt(parse(answer.text), "html_url");
    sent = MAX_BATCH_SIZE;
  }
  for (; sent < annotations.length; sent += MAX_BATCH_SIZE) {
    const batch = annotations.slice(sent, sent + MAX_BATCH_SIZE).map(toAnnotation);
    const url = `${repository}/check-runs/${runId}`;
    const answer = await http.request({
      ...postJson(url, headers, { output: { ...output, annotations: batch } }),
      method: "PATCH",
    });
    if (answer.status !== 200) return judge(answer, false, now);
  }
  return withLink({ status: "sent" }, link);
}
