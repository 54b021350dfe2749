/** Commit statuses, issues, notes on merge requests and pipelines on GitLab, gitlab.com or one's own server. */

import type { OutboundAnswer, OutboundRequest } from "../http/outbound.ts";
import type { ConfigOf } from "../schema/integrations.ts";
import {
  code,
  shorten,
  isCommitHash,
  type Job,
  judge,
  oneLine,
  parse,
  postJson,
  type Sender,
  textAt,
  toMarkdown,
  withLink,
} from "./sender.ts";

type Config = ConfigOf<"gitlab">;

const STATES = { success: "success", failure: "failed", error: "failed" };

/** The request of each action, or why there is none. */
function toRequest(config: Config, { action, notice, options }: Job): OutboundRequest | string {
  const project = `${config.baseUrl}/api/v4/projects/${encodeURIComponent(config.project)}`;
  const headers = { "PRIVATE-TOKEN": config.token };
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
      if (notice.pullRequest === null || !/^\d+$/.test(notice.pullRequest))
        return "There is no merge request to comment on";
      return postJson(`${project}/merge_requests/${notice.pullRequest}/notes`, headers, {
        body: `**${code(notice.title)}**\n\n${shorten(toMarkdown(notice), 60_000)}`,
      });
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
  stateOf: ({ action, options, notice }) =>
    action === "set_commit_status" ? `${notice.commit} ${options.context ?? ""}` : undefined,

  async send(http, config, job) {
    const request = toRequest(config, job);
    if (typeof request === "string") return { status: "refused", error: request };
    let answer = await http.request(request);
    const { inputs = {}, execution } = job.options;
    // A project may let nobody set variables; a pipeline that asks for none and is not waited for starts without.
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
