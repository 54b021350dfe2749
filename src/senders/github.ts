/** Commit statuses, issues, comments on pull requests and workflow runs on GitHub, github.com or one's own server. */

import type { Outbound, OutboundAnswer } from "../http/outbound.ts";
import { type ConfigOf, MAX_INPUTS } from "../schema/integrations.ts";
import {
  at,
  code,
  shorten,
  isCommitHash,
  type Job,
  judge as judgeStatus,
  oneLine,
  type Outcome,
  parse,
  postJson,
  type Sender,
  textAt,
  toMarkdown,
  withLink,
} from "./sender.ts";

type Config = ConfigOf<"github">;

const headersOf = ({ token }: Config) => ({
  Authorization: `Bearer ${token}`,
  Accept: "application/vnd.github+json",
  "X-GitHub-Api-Version": "2022-11-28",
  "User-Agent": "Assay",
});

const repositoryOf = ({ baseUrl, repository }: Config) => `${baseUrl}/repos/${repository}`;

/** The primary limit is a 403 as well, and tells when it is over in a header of its own. */
function judge(answer: OutboundAnswer, ok: boolean, now: Date): Outcome {
  const outcome = judgeStatus(answer, ok, now);
  const isLimited = answer.status === 403 && answer.headers.get("x-ratelimit-remaining") === "0";
  if (outcome.status !== "refused" || !isLimited) return outcome;
  const afterMs = Number(answer.headers.get("x-ratelimit-reset")) * 1000 - now.getTime();
  return { status: "retry", error: outcome.error, ...(afterMs > 0 ? { afterMs } : {}) };
}

/** One comment per pull request and project: this line, which nobody sees, tells which. */
const markerOf = (topic: string) => `<!-- assay ${topic.replace(/[^\w.:/-]/g, "_")} -->`;
const COMMENTS_PER_PAGE = 50;
const COMMENT_PAGES = 10;

async function setStatus(http: Outbound, config: Config, { notice, options, now }: Job): Promise<Outcome> {
  if (!isCommitHash(notice.commit) || notice.state === null)
    return { status: "refused", error: "The execution has no commit" };
  const answer = await http.request(
    postJson(`${repositoryOf(config)}/statuses/${notice.commit}`, headersOf(config), {
      state: notice.state,
      ...(notice.url === null ? {} : { target_url: notice.url }),
      description: shorten(oneLine(notice.text), 140),
      context: options.context ?? "assay",
    }),
  );
  return judge(answer, answer.status === 201, now);
}

async function openIssue(http: Outbound, config: Config, { notice, options, now }: Job): Promise<Outcome> {
  const answer = await http.request(
    postJson(`${repositoryOf(config)}/issues`, headersOf(config), {
      title: shorten(oneLine(notice.subject), 250),
      body: shorten(toMarkdown(notice), 60_000),
      labels: options.labels ?? config.labels,
    }),
  );
  if (answer.status === 410) return { status: "refused", error: "Answered 410: issues are off in this repository" };
  return withLink(judge(answer, answer.status === 201, now), textAt(parse(answer.text), "html_url"));
}

async function comment(http: Outbound, config: Config, { notice, now }: Job): Promise<Outcome> {
  if (notice.pullRequest === null || !/^\d+$/.test(notice.pullRequest))
    return { status: "refused", error: "There is no pull request to comment on" };
  const marker = markerOf(notice.topic);
  const list = `${repositoryOf(config)}/issues/${notice.pullRequest}/comments`;
  let own: number | undefined;
  for (let page = 1; page <= COMMENT_PAGES && own === undefined; page++) {
    const answer = await http.request({
      method: "GET",
      url: `${list}?per_page=${COMMENTS_PER_PAGE}&page=${page}`,
      headers: headersOf(config),
      maxBytes: 8 * 1_048_576,
    });
    if (answer.status !== 200) return judge(answer, false, now);
    const comments = parse(answer.text);
    if (!Array.isArray(comments)) return { status: "retry", error: "The list of comments is no JSON" };
    const found = comments.find((comment) => textAt(comment, "body")?.startsWith(marker));
    own = Number(at(found, "id")) || undefined;
    if (comments.length < COMMENTS_PER_PAGE) break;
  }
  const body = { body: `${marker}\n### ${code(notice.title)}\n\n${shorten(toMarkdown(notice), 60_000)}` };
  const url = own === undefined ? list : `${repositoryOf(config)}/issues/comments/${own}`;
  const request = postJson(url, headersOf(config), body);
  const answer = await http.request(own === undefined ? request : { ...request, method: "PATCH" });
  return judge(answer, answer.status === (own === undefined ? 201 : 200), now);
}

/** What a workflow declares to be told the execution that its results are to join. */
const EXECUTION_INPUT = "assay_execution_id";

async function dispatch(http: Outbound, config: Config, { options, now }: Job): Promise<Outcome> {
  const workflow = options.workflow ?? config.workflow;
  if (!workflow) return { status: "refused", error: `There is no "workflow", in the action or the integration` };
  const { ref = config.ref, inputs = {}, execution } = options;
  const url = `${repositoryOf(config)}/actions/workflows/${encodeURIComponent(workflow)}/dispatches`;
  const start = (inputs: object) => http.request(postJson(url, headersOf(config), { ref, inputs }));
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
    return action === "notify" ? `comment ${notice.pullRequest} ${notice.topic}` : undefined;
  },

  async send(http, config, job) {
    switch (job.action) {
      case "set_commit_status":
        return await setStatus(http, config, job);
      case "create_issue":
        return await openIssue(http, config, job);
      case "notify":
        return await comment(http, config, job);
      case "dispatch":
        return await dispatch(http, config, job);
    }
  },
};
