/** Counts uploads, and stores those that were refused or had warnings for the list of uploads. */

import type { Problem } from "../http/problem.ts";
import type { Log } from "../log.ts";
import type { Caller } from "../request/callers.ts";
import { createUploadLog, noFacts, type TakenUpload, type UploadFacts } from "../request/upload_log.ts";
import type { Sql } from "../database/connect.ts";
import type { IncomingRequest } from "./incoming_request.ts";
import type { CountedUpload, Metrics } from "./metrics.ts";

type UploadResult = {
  /** Undefined where the key is wrong: the upload belongs to no project. */
  caller: Caller | undefined;
  facts: UploadFacts | undefined;
  clientAddress: string;
  status: number;
  /** Undefined: the upload was accepted. */
  problem: Problem | undefined;
};

export function createUploadRecord({ pool, log, metrics }: { pool: Sql; log: Log; metrics: Metrics }) {
  const notes = createUploadLog({ pool, log, onDropped: metrics.notesDropped });

  return {
    record({ request, target, requestId }: IncomingRequest, result: UploadResult): void {
      const { caller, facts = noFacts(), clientAddress, status, problem } = result;
      const { taken, arrivedAt, bytes } = facts;
      const outcome = outcomeOf(problem, taken);
      metrics.upload({
        outcome,
        format: taken?.format,
        cases: taken?.cases ?? 0,
        bytes,
        seconds: arrivedAt === undefined ? undefined : (performance.now() - arrivedAt) / 1_000,
      });
      if (!caller || (outcome !== "refused" && outcome !== "warned")) return;
      const { search } = target;
      notes.note({ caller, facts, request, search, requestId, clientAddress, status, message: problem?.message });
    },

    /** Call this every minute. */
    sweep: notes.sweep,

    /** Resolves when nothing is left to be stored. */
    settled: notes.settled,
  };
}

function outcomeOf(problem: Problem | undefined, taken: TakenUpload | undefined): CountedUpload["outcome"] {
  if (problem) return problem.code === "UNAUTHORIZED" ? "unauthorized" : "refused";
  if (!taken?.added) return "repeated";
  return taken.warnings.length > 0 ? "warned" : "accepted";
}
