/** Notifies the page of a project, an execution or a bug of changes, so that it reloads itself. */

import { setTimeout } from "node:timers/promises";
import { type StreamControl, toEventText, toKeepAlive, type Writer } from "../../http/events.ts";
import { Reply, StreamReply } from "../../request/reply.ts";
import type { Visitor } from "../../request/visitors.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import { addressBlock } from "../../secrets/attempts.ts";
import { selectBugState } from "../../store/bug_reports.ts";
import { selectSearchState } from "../../store/culprit_searches.ts";
import { selectExecutionStatus } from "../../store/executions.ts";
import { type Page, type PageContext, page } from "../site/page.ts";

const KEEP_ALIVE_MS = 15_000;
/** Maximum time for which a visitor who lost access still receives notifications, in milliseconds. */
const ACCESS_CHECK_MS = 3_000;
const RETRY_MS = 3_000;

type StreamContext = Pick<PageContext<never, never, never, never>, "live" | "mayStay" | "log">;

async function* notifications(
  { live, mayStay, log }: StreamContext,
  projectId: string,
  executionId: string | undefined,
  control: StreamControl,
): AsyncGenerator<string, void> {
  const { signal } = control;
  const watch = live.watch(projectId, executionId, () => {});
  signal.addEventListener("abort", watch.end);
  const versions = new Map<string, number>();
  let [sentAt, checkedAt] = [performance.now(), performance.now()];
  let isFirst = true;
  try {
    yield `retry: ${RETRY_MS}\n${toKeepAlive()}`;
    while (!signal.aborted) {
      const batch = await watch.next();
      if (signal.aborted) return;
      const states = watch.states();
      if (states === "gone") return void (yield toEventText({ event: "news", data: {} }));
      const changed = states.filter(({ execution, version }) => versions.get(execution.id) !== version);
      for (const { execution, version } of changed) versions.set(execution.id, version);
      const concernsPage = (batch?.news ?? []).some((one) => executionId === undefined || one.kind === "log");
      const hasChanged = !isFirst && (concernsPage || changed.length > 0);
      isFirst = false;
      const now = performance.now();
      if (now - checkedAt >= ACCESS_CHECK_MS) {
        checkedAt = now;
        if (!(await mayStay())) return;
      }
      if (hasChanged) yield toEventText({ event: "news", data: {} });
      else if (now - sentAt >= KEEP_ALIVE_MS) yield toKeepAlive();
      else continue;
      sentAt = now;
    }
  } catch (error) {
    log.warn("A page is not told of news any more", { error });
  } finally {
    signal.removeEventListener("abort", watch.end);
    watch.end();
  }
}

/** Interval in which a search is checked while its page is open. */
const SEARCH_CHECK_MS = 2_000;

/** Notifies of each change of the search of a bug, until it has ended. */
async function* searchNotifications(
  { fast, mayStay, log }: Pick<PageContext<never, never, never, never>, "fast" | "mayStay" | "log">,
  { projectId, bugId }: { projectId: string; bugId: string },
  { signal }: StreamControl,
): AsyncGenerator<string, void> {
  const selectState = () => selectSearchState(fast, projectId, bugId);
  try {
    yield `retry: ${RETRY_MS}\n${toKeepAlive()}`;
    // The first state is news as well: the page may be older.
    let [sent, sentAt]: [string | undefined, number] = [undefined, performance.now()];
    while (!signal.aborted && (await mayStay())) {
      const state = await selectState();
      const isNews = state !== sent;
      if (isNews || performance.now() - sentAt >= KEEP_ALIVE_MS) {
        yield isNews ? toEventText({ event: "news", data: {} }) : toKeepAlive();
        [sent, sentAt] = [state, performance.now()];
      }
      // It rejects when the stream ends.
      await setTimeout(SEARCH_CHECK_MS, undefined, { signal }).catch(() => {});
    }
  } catch (error) {
    log.warn("A page is not told of a search any more", { error });
  }
}

type StreamServices = Pick<PageContext<never, never, never, never>, "eventStreams" | "address"> & { visitor: Visitor };

function stream({ eventStreams, visitor, address }: StreamServices, projectId: string, writer: Writer): Reply {
  const owner = { session: visitor.sessionId, address: addressBlock(address()), project: projectId };
  // The page then polls every few seconds, and tries to connect again.
  if (eventStreams.refusal(owner) !== undefined) return new Reply(204, null, null);
  return new StreamReply(200, "text/event-stream", { "X-Accel-Buffering": "no" }, (hurry) =>
    eventStreams.open(owner, writer, hurry),
  );
}

export const lives: Page[] = [
  page("/projects/:projectId/live", { access: "viewer" }, async (context) => {
    const { projectId } = context.params;
    return stream(context, projectId, (control) => notifications(context, projectId, undefined, control));
  }),
  page("/projects/:projectId/executions/:executionId/live", { access: "viewer" }, async (context) => {
    const { projectId, executionId } = context.params;
    if ((await selectExecutionStatus(context.fast, projectId, executionId)) === undefined) refuseAbsent();
    return stream(context, projectId, (control) => notifications(context, projectId, executionId, control));
  }),
  page("/projects/:projectId/bugs/:bugId/live", { access: "viewer" }, async (context) => {
    const { projectId, bugId } = context.params;
    if ((await selectBugState(context.fast, projectId, bugId)) === undefined) refuseAbsent();
    return stream(context, projectId, (control) => searchNotifications(context, { projectId, bugId }, control));
  }),
];
