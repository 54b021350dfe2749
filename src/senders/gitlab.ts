/** Commit statuses, issues, notes on merge requests and pipelines on GitLab, gitlab.com or one's own server. */

import type { Outbound, OutboundAnswer, OutboundRequest } from "../http/outbound.ts";
import type { ConfigOf } from "../schema/integration_configs.ts";
import { findTarget } from "./comment_target.ts";
import {
  at,
  type CommentJob,
  commentKey,
  shorten,
  isCommitHash,
  type Job,
  judge,
  listAt,
  oneLine,
  type Outcome,
  parse,
  postJson,
  type Sender,
  textAt,
  toMarkdown,
  withComment,
  withLink,
} from "./sender.ts";

type Config = ConfigOf<"gitlab">;

const STATES = { success: "success", failure: "failed", error: "failed" };

const projectOf = ({ baseUrl, project }: Config) => `${baseUrl}/api/v4/projects/${encodeURIComponent(project)}`;
const headersOf = ({ token }: Config) => ({ "PRIVATE-TOKEN": token });

/** The number of newest notes that are searched for our own. */
const NOTES_PER_PAGE = 100;

/** The id of a note that an earlier try has made; null: there is none. */
async function findNote(
  http: Outbound,
  config: Config,
  list: string,
  { marker }: CommentJob,
  now: Date,
): Promise<number | null | Outcome> {
  const get = (url: string) =>
    http.request({ method: "GET", url, headers: headersOf(config), maxBytes: 8 * 1_048_576 });
  const found = await get(`${list}?order_by=created_at&sort=desc&per_page=${NOTES_PER_PAGE}`);
  if (found.status !== 200) return judge(found, false, now);
  const notes = parse(found.text);
  if (!Array.isArray(notes)) return { status: "retry", error: "The list of notes is no JSON" };
  const marked = notes.filter((note) => textAt(note, "body")?.startsWith(marker));
  if (marked.length === 0) return null;
  // Anybody can write the marker.
  const me = at(parse((await get(`${config.baseUrl}/api/v4/user`)).text), "id");
  const own = marked.find((note) => me !== undefined && at(note, "author", "id") === me);
  return Number(at(own, "id")) || null;
}

/** Answers nothing for a commit that was never pushed to the project. */
async function listMerged(http: Outbound, config: Config, commit: string, now: Date) {
  const url = `${projectOf(config)}/repository/commits/${commit}/merge_requests?state=merged&per_page=100`;
  const answer = await http.request({ method: "GET", url, headers: headersOf(config), maxBytes: 8 * 1_048_576 });
  if (answer.status === 404 && /commit not found/i.test(answer.text)) return [];
  if (answer.status !== 200) return judge(answer, false, now);
  return (
    listAt(parse(answer.text))
      // Older versions ignore the parameter "state".
      .filter((request) => textAt(request, "state") === "merged")
      .map((request) => ({ number: at(request, "iid"), mergedAt: textAt(request, "merged_at") }))
  );
}

async function comment(http: Outbound, config: Config, job: Job): Promise<Outcome> {
  const { comment, now } = job;
  const target = await findTarget(job, (commit) => listMerged(http, config, commit, now));
  if (!target || !comment) return { status: "refused", error: "There is no merge request to comment on" };
  if ("outcome" in target) return target.outcome;
  const { number, since } = target;
  const list = `${projectOf(config)}/merge_requests/${number}/notes`;
  const known = comment.id ?? (since === null ? null : await findNote(http, config, list, comment, now));
  if (known !== null && typeof known === "object") return known;
  const written = { body: comment.body };
  if (known !== null) {
    const request = postJson(`${list}/${known}`, headersOf(config), written);
    const answer = await http.request({ ...request, method: "PUT" });
    // The note was deleted.
    if (answer.status !== 404) return withComment(judge(answer, answer.status === 200, now), known);
  }
  const answer = await http.request(postJson(list, headersOf(config), written));
  return withComment(judge(answer, answer.status === 201, now), at(parse(answer.text), "id"));
}

/** The request of each action but a comment, or why there is none. */
function toRequest(config: Config, { action, notice, options }: Job): OutboundRequest | string {
  const project = projectOf(config);
  const headers = headersOf(config);
  switch (action) {
    case "set_commit_status":
      if (!isCommitHash(notice.commit) || notice.state === null) return "The execution has no commit";
      return postJson(`${project}/statuses/${notice.commit}`, headers, {
        state: STATES[notice.state],
        name: options.context ?? "assay",
        ...(notice.url === null ? {} : { target_url: notice.url }),
        description: shorten(oneLine(notice.text), 140),
      });
    case "create_issue":
      return postJson(`${project}/issues`, headers, {
        title: shorten(oneLine(notice.subject), 250),
        description: shorten(toMarkdown(notice), 60_000),
        labels: (options.labels ?? config.labels).map((label) => label.replaceAll(",", " ")).join(","),
      });
    case "notify":
    case "digest":
      return "There is no merge request to comment on";
    case "dispatch":
      if (config.triggerToken === null) return `There is no "triggerToken" in the integration`;
      return postJson(
        `${project}/trigger/pipeline`,
        {},
        {
          token: config.triggerToken,
          ref: options.ref ?? config.ref,
          variables: {
            ...options.inputs,
            ...(options.execution ? { ASSAY_EXECUTION_ID: options.execution.id } : {}),
          },
        },
      );
  }
}

const isWithoutVariables = ({ status, text }: OutboundAnswer) =>
  status === 400 && /permissions? to set pipeline variables/i.test(text);

export const gitlab: Sender<"gitlab"> = {
  actions: ["set_commit_status", "create_issue", "notify", "dispatch"],
  sample: "create_issue",

  stateOf({ action, options, notice }) {
    if (action === "set_commit_status") return `${notice.commit} ${options.context ?? ""}`;
    return action === "notify" ? commentKey(notice) : undefined;
  },

  async send(http, config, job) {
    if (job.action === "notify") return await comment(http, config, job);
    const request = toRequest(config, job);
    if (typeof request === "string") return { status: "refused", error: request };
    let answer = await http.request(request);
    const { inputs = {}, execution } = job.options;
    // A project may forbid variables. A pipeline without required ones, for which no execution waits, starts without them.
    if (execution && !execution.waits && Object.keys(inputs).length === 0 && isWithoutVariables(answer))
      answer = await http.request(
        toRequest(config, { ...job, options: { ...job.options, execution: undefined } }) as OutboundRequest,
      );
    // GitLab refuses to set the state that a commit has already.
    const from = /cannot transition status via :\w+ from :(\w+)/i.exec(answer.text)?.[1];
    const { state } = job.notice;
    const isSame =
      job.action === "set_commit_status" && answer.status === 400 && state !== null && from === STATES[state];
    const outcome = judge(answer, answer.status === 201 || isSame, job.now);
    return job.action === "create_issue" ? withLink(outcome, textAt(parse(answer.text), "web_url")) : outcome;
  },
};
