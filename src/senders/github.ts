/** Commit statuses or check runs, issues, comments on pull requests and workflow runs on GitHub, github.com or one's own server. */

import type { Outbound, OutboundAnswer } from "../http/outbound.ts";
import { type ConfigOf, MAX_INPUTS } from "../schema/integration_configs.ts";
import { findTarget } from "./comment_target.ts";
import { createCheckRun } from "./github_check_run.ts";
import { forgetToken, requestToken } from "./github_app.ts";
import {
  at,
  type CommentJob,
  commentKey,
  shorten,
  isCommitHash,
  type Job,
  judge as judgeStatus,
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

type Config = ConfigOf<"github">;

const headersOf = (token: string) => ({
  Authorization: `Bearer ${token}`,
  Accept: "application/vnd.github+json",
  "X-GitHub-Api-Version": "2022-11-28",
  "User-Agent": "Assay",
});

/** A request of the integration, with its token or that of its App. */
type Access = Pick<Outbound, "request"> & { headers: Record<string, string> };

const repositoryOf = ({ baseUrl, repository }: Config) => `${baseUrl}/repos/${repository}`;

/** The primary rate limit is a 403 as well, with its end in a header of its own. */
function judge(answer: OutboundAnswer, ok: boolean, now: Date): Outcome {
  const outcome = judgeStatus(answer, ok, now);
  const isLimited = answer.status === 403 && answer.headers.get("x-ratelimit-remaining") === "0";
  if (outcome.status !== "refused" || !isLimited) return outcome;
  const afterMs = Number(answer.headers.get("x-ratelimit-reset")) * 1000 - now.getTime();
  return { status: "retry", error: outcome.error, ...(afterMs > 0 ? { afterMs } : {}) };
}

async function setStatus(http: Access, config: Config, { notice, options, now }: Job): Promise<Outcome> {
  if (!isCommitHash(notice.commit) || notice.state === null)
    return { status: "refused", error: "The execution has no commit" };
  const answer = await http.request(
    postJson(`${repositoryOf(config)}/statuses/${notice.commit}`, http.headers, {
      state: notice.state,
      ...(notice.url === null ? {} : { target_url: notice.url }),
      description: shorten(oneLine(notice.text), 140),
      context: options.context ?? "assay",
    }),
  );
  return judge(answer, answer.status === 201, now);
}

async function openIssue(http: Access, config: Config, { notice, options, now }: Job): Promise<Outcome> {
  const answer = await http.request(
    postJson(`${repositoryOf(config)}/issues`, http.headers, {
      title: shorten(oneLine(notice.subject), 250),
      body: shorten(toMarkdown(notice), 60_000),
      labels: options.labels ?? config.labels,
    }),
  );
  if (answer.status === 410) return { status: "refused", error: "Answered 410: issues are off in this repository" };
  return withLink(judge(answer, answer.status === 201, now), textAt(parse(answer.text), "html_url"));
}

/** Page size of the search for our own comment, among those since it was first requested. */
const COMMENTS_PER_PAGE = 100;

/** The id of a comment that an earlier try has made; null: there is none. */
async function findComment(
  http: Access,
  config: Config,
  list: string,
  { since, marker }: CommentJob,
  now: Date,
): Promise<number | null | Outcome> {
  const get = (url: string) => http.request({ method: "GET", url, headers: http.headers, maxBytes: 8 * 1_048_576 });
  const found = await get(`${list}?since=${since}&per_page=${COMMENTS_PER_PAGE}`);
  if (found.status !== 200) return judge(found, false, now);
  const comments = parse(found.text);
  if (!Array.isArray(comments)) return { status: "retry", error: "The list of comments is no JSON" };
  const marked = comments.filter((comment) => textAt(comment, "body")?.startsWith(marker));
  if (marked.length === 0) return null;
  // Anybody can write the marker.
  let isOwn: (comment: unknown) => boolean;
  if (config.appId !== null) {
    isOwn = (comment) =>
      [at(comment, "performed_via_github_app", "id"), at(comment, "performed_via_github_app", "client_id")].some(
        (id) => id !== undefined && String(id) === config.appId,
      );
  } else {
    const me = at(parse((await get(`${config.baseUrl}/user`)).text), "id");
    isOwn = (comment) => me !== undefined && at(comment, "user", "id") === me;
  }
  return Number(at(marked.find(isOwn), "id")) || null;
}

/** Answers nothing for a commit that was never pushed to the repository. */
async function listMerged(http: Access, config: Config, commit: string, now: Date) {
  const url = `${repositoryOf(config)}/commits/${commit}/pulls?per_page=100`;
  const answer = await http.request({ method: "GET", url, headers: http.headers, maxBytes: 8 * 1_048_576 });
  if (answer.status === 422 && /no commit found/i.test(answer.text)) return [];
  if (answer.status !== 200) return judge(answer, false, now);
  // A fork also lists the pull requests of the repository that it comes from.
  const isOwn = (pull: unknown) =>
    textAt(pull, "base", "repo", "full_name")?.toLowerCase() === config.repository.toLowerCase();
  return listAt(parse(answer.text))
    .filter(isOwn)
    .map((pull) => ({ number: at(pull, "number"), mergedAt: textAt(pull, "merged_at") }));
}

async function comment(http: Access, config: Config, job: Job): Promise<Outcome> {
  const { comment, now } = job;
  const target = await findTarget(job, (commit) => listMerged(http, config, commit, now));
  if (!target || !comment) return { status: "refused", error: "There is no pull request to comment on" };
  if ("outcome" in target) return target.outcome;
  const { number, since } = target;
  const list = `${repositoryOf(config)}/issues/${number}/comments`;
  const known =
    comment.id ?? (since === null ? null : await findComment(http, config, list, { ...comment, since }, now));
  if (known !== null && typeof known === "object") return known;
  if (known !== null) {
    const url = `${repositoryOf(config)}/issues/comments/${known}`;
    const answer = await http.request({ ...postJson(url, http.headers, { body: comment.body }), method: "PATCH" });
    // The comment was deleted.
    if (answer.status !== 404) return withComment(judge(answer, answer.status === 200, now), known);
  }
  const answer = await http.request(postJson(list, http.headers, { body: comment.body }));
  return withComment(judge(answer, answer.status === 201, now), at(parse(answer.text), "id"));
}

/** The input that a workflow declares to receive the id of the execution that its results belong to. */
const EXECUTION_INPUT = "assay_execution_id";

async function dispatch(http: Access, config: Config, { options, now }: Job): Promise<Outcome> {
  const workflow = options.workflow ?? config.workflow;
  if (!workflow) return { status: "refused", error: `There is no "workflow", in the action or the integration` };
  const { ref = config.ref, inputs = {}, execution } = options;
  const url = `${repositoryOf(config)}/actions/workflows/${encodeURIComponent(workflow)}/dispatches`;
  const start = (inputs: object) => http.request(postJson(url, http.headers, { ref, inputs }));
  const hasRoom = Object.keys(inputs).length < MAX_INPUTS;
  if (execution && (execution.waits || hasRoom)) {
    const answer = await start({ ...inputs, [EXECUTION_INPUT]: execution.id });
    // Workflows that are older than this input do not declare it, and GitHub then starts nothing.
    const isUnknown = answer.status === 422 && /unexpected inputs/i.test(answer.text);
    if (execution.waits || !isUnknown || !answer.text.includes(EXECUTION_INPUT))
      return judge(answer, answer.status === 204, now);
  }
  const answer = await start(inputs);
  return judge(answer, answer.status === 204, now);
}

export const github: Sender<"github"> = {
  actions: ["set_commit_status", "create_issue", "notify", "dispatch"],
  sample: "create_issue",

  stateOf({ action, options, notice }) {
    if (action === "set_commit_status") return `${notice.commit} ${options.context ?? ""}`;
    return action === "notify" ? commentKey(notice) : undefined;
  },

  async send(http, config, job) {
    const { baseUrl, repository, token, appId, privateKey } = config;
    const app = appId !== null && privateKey !== null ? { baseUrl, repository, appId, privateKey } : undefined;
    const asked = app ? await requestToken(http, app, job.now) : { token: token ?? "" };
    if (!("token" in asked)) return asked;
    const access: Access = { request: (request) => http.request(request), headers: headersOf(asked.token) };
    let isExpired = false;
    const watched: Access = {
      ...access,
      async request(request) {
        const answer = await access.request(request);
        isExpired ||= answer.status === 401;
        return answer;
      },
    };
    const outcome = await begin(watched, config, job);
    if (!app || !isExpired || outcome.status === "sent") return outcome;
    forgetToken(app);
    return { status: "retry", error: "error" in outcome ? outcome.error : "Answered 401" };
  },
};

async function begin(http: Access, config: Config, job: Job): Promise<Outcome> {
  switch (job.action) {
    case "set_commit_status":
      return config.appId === null
        ? await setStatus(http, config, job)
        : await createCheckRun({ http, headers: http.headers, repository: repositoryOf(config), judge }, job);
    case "create_issue":
      return await openIssue(http, config, job);
    case "notify":
    case "digest":
      return await comment(http, config, job);
    case "dispatch":
      return await dispatch(http, config, job);
  }
}
