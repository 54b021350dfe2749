/** Commit statuses, issues, comments on pull requests and workflow runs on GitHub, github.com or one's own server. */

import type { Outbound } from "../http/outbound.ts";
import type { ConfigOf } from "../schema/integrations.ts";
import { cut, type Job, judge, oneLine, type Outcome, parse, postJson, type Sender, toMarkdown } from "./sender.ts";

type Config = ConfigOf<"github">;

const headersOf = ({ token }: Config) => ({
  Authorization: `Bearer ${token}`,
  Accept: "application/vnd.github+json",
  "X-GitHub-Api-Version": "2022-11-28",
  "User-Agent": "Assay",
});

const repositoryOf = ({ baseUrl, repository }: Config) => `${baseUrl}/repos/${repository}`;

/** One comment per pull request and project: this line, which nobody sees, tells which. */
const markerOf = (topic: string) => `<!-- assay ${topic.replace(/[^\w.:/-]/g, "_")} -->`;
const COMMENTS_PER_PAGE = 50;
const COMMENT_PAGES = 10;

async function setStatus(http: Outbound, config: Config, { notice, options, now }: Job): Promise<Outcome> {
  if (notice.commit === null || notice.state === null) return { status: "refused", error: "There is no commit" };
  const answer = await http.request(
    postJson(`${repositoryOf(config)}/statuses/${encodeURIComponent(notice.commit)}`, headersOf(config), {
      state: notice.state,
      ...(notice.url === null ? {} : { target_url: notice.url }),
      description: cut(oneLine(notice.text), 140),
      context: options.context ?? "assay",
    }),
  );
  return judge(answer, answer.status === 201, now);
}

async function openIssue(http: Outbound, config: Config, { notice, options, now }: Job): Promise<Outcome> {
  const answer = await http.request(
    postJson(`${repositoryOf(config)}/issues`, headersOf(config), {
      title: cut(oneLine(notice.subject), 250),
      body: cut(toMarkdown(notice), 60_000),
      labels: options.labels ?? config.labels,
    }),
  );
  if (answer.status === 410) return { status: "refused", error: "Answered 410: issues are off in this repository" };
  const link = (parse(answer.text) as { html_url?: unknown } | undefined)?.html_url;
  const outcome = judge(answer, answer.status === 201, now);
  return outcome.status === "sent" && typeof link === "string" ? { ...outcome, link } : outcome;
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
    own = (comments as { id: number; body?: string }[]).find(({ body }) => body?.startsWith(marker))?.id;
    if (comments.length < COMMENTS_PER_PAGE) break;
  }
  const body = { body: `${marker}\n### ${markdownTitle(notice.title)}\n\n${cut(toMarkdown(notice), 60_000)}` };
  const url = own === undefined ? list : `${repositoryOf(config)}/issues/comments/${own}`;
  const request = postJson(url, headersOf(config), body);
  const answer = await http.request(own === undefined ? request : { ...request, method: "PATCH" });
  return judge(answer, answer.status === (own === undefined ? 201 : 200), now);
}

/** A heading in which nobody is mentioned and nothing is linked. */
const markdownTitle = (title: string) => `\`${oneLine(title).replaceAll("`", "'")}\``;

async function dispatch(http: Outbound, config: Config, { options, now }: Job): Promise<Outcome> {
  const workflow = options.workflow ?? config.workflow;
  if (!workflow) return { status: "refused", error: `There is no "workflow", in the action or the integration` };
  const answer = await http.request(
    postJson(
      `${repositoryOf(config)}/actions/workflows/${encodeURIComponent(workflow)}/dispatches`,
      headersOf(config),
      { ref: options.ref ?? config.ref, inputs: options.inputs ?? {} },
    ),
  );
  return judge(answer, answer.status === 204, now);
}

export const github: Sender<"github"> = {
  actions: ["set_commit_status", "create_issue", "notify", "dispatch"],
  sample: "create_issue",

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
