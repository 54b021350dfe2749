/** Sends the attachments of a task whose end is delivered: the files that its report names, and its artifacts. */

import { readFileSync } from "node:fs";
import { basename, relative } from "node:path";
import { openAttachRoot } from "./attachment_file.ts";
import type { TaskConfig } from "./config.ts";
import { keepAsking, RunnerError, type ServerConnection } from "./line.ts";
import type { Mask } from "../secrets/mask.ts";
import { findNamedAttachments, type NamedAttachment } from "./named_attachments.ts";
import type { RunnerLease, Server } from "./protocol.ts";
import { sendAttachments, toAttachmentLines } from "./send_attachments.ts";
import type { TaskOutcome } from "./task_outcome.ts";

/** The slot of the task is occupied meanwhile. For all attachments of a task together, then once more for each request. */
const PATIENCE_MS = 120_000;

export type TaskAttachments = { lease: RunnerLease; config: TaskConfig; mask: Mask; end: TaskOutcome };

/** Returns what became of them, a line each, with the secrets hidden. */
export async function sendTaskAttachments(
  line: ServerConnection,
  { messageOf }: Server,
  { lease, config, mask, end }: TaskAttachments,
): Promise<string[]> {
  if (end.kind !== "report" && end.kind !== "failure") return [];
  const { artifacts } = end;
  const directory = end.kind === "report" ? end.directory : artifacts?.directory;
  if (directory === undefined) return [];
  const root = openAttachRoot(directory);
  const paths = end.kind === "report" && config.attachments !== "none" ? end.paths : [];
  const scope = config.attachments === "all" ? "all" : "failed";
  const named = [
    ...(artifacts?.paths ?? []).map((path): NamedAttachment => ({
      path: relative(directory, path),
      name: basename(path),
      contentType: null,
      bases: [root],
    })),
    ...findNamedAttachments(
      paths.map((path) => ({ path, bytes: new Uint8Array(readFileSync(path)) })),
      { format: config.format, scope, root },
    ),
  ];
  const until = performance.now() + PATIENCE_MS;
  const sent = await sendAttachments(named, {
    ask: async (request) => {
      try {
        return (await keepAsking(line, request, () => performance.now() > until)) ?? "the server does not answer";
      } catch (error) {
        // If the key is refused for everything, the next sync ends the runner.
        if (error instanceof RunnerError) return error.message;
        throw error;
      }
    },
    messageOf,
    executionId: lease.execution.id,
    taskSlug: lease.taskSlug,
    leaseId: lease.id,
    root,
    mask: mask.isEmpty ? undefined : mask,
  });
  return toAttachmentLines(sent).map((line) => mask.text(line));
}
