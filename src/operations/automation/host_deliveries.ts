/** Prepares deliveries to a code host, and stores the id of the resulting comment. */

import type { Annotation } from "../../schema/pull_requests.ts";
import type { EventData } from "../../schema/events.ts";
import type { Notification } from "../../schema/notifications.ts";
import { bugReportUrl, testCaseUrl } from "../../schema/urls.ts";
import { culpritMarkerOf, markerOf, renderComment, renderCulpritComment } from "../../senders/pull_request_comment.ts";
import { type CommentJob, isAboutCulprit, type Outcome, textAt } from "../../senders/sender.ts";
import { beginComment, type CommentKey, storeComment } from "../../store/pull_request_comments.ts";
import type { DueDelivery } from "../../store/deliveries.ts";
import type { Tx } from "../../database/connect.ts";
import { shownCaseTitle } from "../../wording/case_title.ts";
import { findBuild, readPullRequestState, selectAnnotations, type Site } from "./pull_requests.ts";

/** `stored`: where the id of the comment is stored. Undefined: its marker alone finds it again. */
type PreparedComment = { job: CommentJob; stored?: { place: CommentKey; revision: number } };
/** `against`: why there is nothing to send. */
type PreparedDelivery = { comment?: PreparedComment; annotations?: Annotation[] } | { against: string };

type Place = { teamId: string; integrationId: string };

/** The address of the server is in the notification, because it was sent from there. */
function siteOf({ notice }: DueDelivery): Site | undefined {
  const [projectId, url] = [textAt(notice.data, "project", "id"), textAt(notice.data, "project", "url")];
  if (projectId === undefined || !url?.endsWith(`/projects/${projectId}`)) return undefined;
  return { projectId, publicUrl: url.slice(0, -`/projects/${projectId}`.length) };
}

/** Prepares a delivery to a code host. Returns nothing for other kinds of integrations. */
export async function prepareForHost(
  sql: Tx,
  { teamId, integrationId }: Place,
  delivery: DueDelivery,
): Promise<PreparedDelivery> {
  const { kind, action, notice, config } = delivery;
  const site = siteOf(delivery);
  const isComment = action === "notify" && (kind === "github" || kind === "gitlab");
  if (site && isComment && isAboutCulprit(notice)) return { comment: { job: culpritComment(site, notice.data) } };
  const executionId = textAt(notice.data, "execution", "id");
  if (!site || executionId === undefined) return {};
  if (action === "set_commit_status" && kind === "github" && typeof config["appId"] === "string") {
    const taskSlug = textAt(notice.data, "testRun", "taskSlug");
    return { annotations: await selectAnnotations(sql, site.projectId, executionId, taskSlug) };
  }
  if (!isComment || notice.pullRequest === null) return {};
  const execution = await findBuild(sql, site.projectId, executionId);
  if (!execution) return { against: "Nothing to send: the execution was deleted" };
  const place = { teamId, integrationId, projectId: site.projectId, pullRequest: notice.pullRequest };
  const begun = await beginComment(sql, place, execution.id);
  if (!begun) return { against: "Nothing to send: the comment shows a later execution" };
  const body = renderComment(await readPullRequestState(sql, site, execution), site.projectId);
  const job = { id: begun.commentId, since: begun.since, marker: markerOf(site.projectId), body };
  return { comment: { stored: { place, revision: begun.revision }, job } };
}

/** One comment for each pull request and bug, also if the bug is searched for again. */
function culpritComment({ projectId, publicUrl }: Site, data: Notification["data"]): CommentJob {
  const { bugReport, culprit } = data as Required<Pick<EventData, "bugReport" | "culprit">>;
  const { commit, proof, testCase } = culprit;
  const { id, number } = bugReport;
  const test = { title: shownCaseTitle(testCase), url: testCaseUrl(publicUrl, projectId, testCase.testCaseId) };
  const body = renderCulpritComment({
    ...{ projectId, test, commit, proof },
    bugReport: { id, number, url: bugReportUrl(publicUrl, projectId, id) },
  });
  return { id: null, since: null, marker: culpritMarkerOf(projectId, id), body, mergedCommit: commit };
}

/** Stores a comment. If another server has begun to write it meanwhile, it is written again in its newest state. */
export async function keepComment(sql: Tx, { stored }: PreparedComment, outcome: Outcome): Promise<Outcome> {
  if (!stored || outcome.status !== "sent" || outcome.commentId === undefined) return outcome;
  const current = await storeComment(sql, stored.place, outcome.commentId);
  return current === undefined || current === stored.revision
    ? outcome
    : { status: "retry", error: "Another server has changed the comment meanwhile" };
}
