/** The metrics of a server: its own counters, and the queues in the database. */

import { existsSync, type StatsFs, statfsSync } from "node:fs";
import {
  createCounter,
  type ExpositionFormat,
  createHistogram,
  createLoopLag,
  createRequestMetrics,
  type MetricFamily,
  gauge,
  processFamilies,
  writeExposition,
} from "../http/metrics.ts";
import type { Database, PoolLoad } from "../database/connect.ts";
import type { GaugesHere } from "../store/gauges.ts";
import type { LeaseStatus } from "../schema/run_leases.ts";
import packageJson from "../../package.json" with { type: "json" };

const INGEST_SECONDS = [0.05, 0.25, 1, 5, 30, 120];
const LEASES: Record<LeaseStatus, 0> = {
  queued: 0,
  offered: 0,
  running: 0,
  reported: 0,
  failed: 0,
  cancelled: 0,
  lost: 0,
  returned: 0,
  infrastructure: 0,
  timed_out: 0,
};
const SHARED = "The same on all servers of a database.";

export type CountedUpload = {
  /**
   * warned: accepted, with warnings; repeated: the same bytes were uploaded before, or the stored answer was sent again; unauthorized:
   * refused for its key.
   */
  outcome: "accepted" | "warned" | "repeated" | "refused" | "unauthorized";
  /** The format of the report, if it was read. */
  format: string | undefined;
  /** Number of cases in the report; none if nothing was added. */
  cases: number;
  /** The size as sent. */
  bytes: number;
  /** From the last byte of the body to the answer. */
  seconds: number | undefined;
};

type MetricsOptions = {
  database: Pick<Database, "load">;
  /** Undefined: the database did not answer in time. */
  gauges: () => Promise<GaugesHere | undefined>;
  /** Directories by their name in the metrics. */
  directories?: Record<string, string>;
};

/** No label holds an id, or a name that users have given. */
export function createMetrics({ database, gauges, directories = {} }: MetricsOptions) {
  const requests = createRequestMetrics("assay");
  const lag = createLoopLag();
  const uploads = createCounter({
    name: "assay_uploads_total",
    help: "Uploads that this server has answered, by what came of them and the format of the report.",
  });
  const cases = createCounter({
    name: "assay_upload_cases_total",
    help: "Results of test cases in the uploads that it has stored.",
  });
  const bytes = createCounter({
    name: "assay_upload_bytes_total",
    help: "Bytes of uploads that it has received, as sent.",
  });
  const ingest = createHistogram(
    {
      name: "assay_upload_ingest_seconds",
      help: "From the last byte of an upload that was stored to its answer: reading, judging and storing the report.",
    },
    INGEST_SECONDS,
  );
  const notes = createCounter({
    name: "assay_upload_notes_dropped_total",
    help: "Refused or warned uploads that it could not note for the list of uploads.",
  });
  const attempts = createCounter({
    name: "assay_delivery_attempts_total",
    help: "Delivery attempts to integrations: sent, failed permanently, or to be retried.",
  });
  const attachmentBytes = createCounter({
    name: "assay_attachment_bytes_total",
    help: "Bytes of attachments that it has put into their store.",
  });
  const attachmentFailures = createCounter({
    name: "assay_attachment_store_failures_total",
    help: "How often the store of attachments could not take or give one.",
  });
  const deletedRows = createCounter({
    name: "assay_deleted_rows_total",
    help: "Rows that this server has deleted for their age, by table.",
  });
  const [storedBytes, storeFailures] = [attachmentBytes.at({}), attachmentFailures.at({})];
  const [received, observeIngest, dropped] = [bytes.at({}), ingest.at({}), notes.at({})];
  const delivered = {
    sent: attempts.at({ outcome: "sent" }),
    pending: attempts.at({ outcome: "retry" }),
    failed: attempts.at({ outcome: "failed" }),
    inapplicable: attempts.at({ outcome: "inapplicable" }),
  };

  const perPool = (read: (load: PoolLoad) => number | undefined) => () =>
    Object.entries(database.load()).flatMap(([pool, load]): [{ pool: string }, number][] => {
      const value = read(load);
      return value === undefined ? [] : [[{ pool }, value]];
    });
  // A directory may not exist yet.
  const perDisk = (read: (disk: StatsFs) => number) => () =>
    Object.entries(directories)
      .filter(([, path]) => existsSync(path))
      .map(([directory, path]): [{ directory: string }, number] => [{ directory }, read(statfsSync(path))]);
  const own: MetricFamily[] = [
    gauge({ name: "assay_build_info", help: "The version of Assay and of Bun." }, () => [
      [{ version: packageJson.version, bun: Bun.version }, 1],
    ]),
    ...requests.families,
    uploads.family,
    cases.family,
    bytes.family,
    ingest.family,
    notes.family,
    attachmentBytes.family,
    attachmentFailures.family,
    attempts.family,
    deletedRows.family,
    gauge(
      { name: "assay_disk_bytes", help: "The size of the disk that a directory of this server is on." },
      perDisk(({ blocks, bsize }) => blocks * bsize),
    ),
    gauge(
      { name: "assay_disk_free_bytes", help: "What is free of it for this account." },
      perDisk(({ bavail, bsize }) => bavail * bsize),
    ),
    gauge(
      { name: "assay_database_pool_size", help: "Connections that a pool of this server may have." },
      perPool(({ size }) => size),
    ),
    gauge(
      { name: "assay_database_pool_in_use", help: "Transactions that it has open." },
      perPool(({ inUse }) => inUse),
    ),
    gauge(
      { name: "assay_database_pool_waiting", help: "Transactions that wait for a connection of it." },
      perPool(({ waiting }) => waiting),
    ),
    gauge(
      {
        name: "assay_database_pool_wait_seconds",
        help: "How long a statement that does nothing, sent every second or so, has been waiting for a connection by now.",
      },
      perPool(({ waitMs }) => waitMs / 1_000),
    ),
    gauge(
      { name: "assay_event_loop_lag_seconds", help: "How late a timer came at worst in the last 15 to 30 seconds." },
      () => lag.seconds(),
    ),
    ...processFamilies(),
  ];

  return {
    /** `route` is the pattern of a path, or one word for all that match none. */
    request: requests.record,

    upload({ outcome, format, ...upload }: CountedUpload): void {
      uploads.at({ outcome, format: format ?? "unknown" }).value++;
      received.value += upload.bytes;
      if (outcome !== "accepted" && outcome !== "warned") return;
      cases.at({ format: format ?? "unknown" }).value += upload.cases;
      if (upload.seconds !== undefined) observeIngest(upload.seconds);
    },

    /** Counts the result of a delivery attempt. */
    delivery: (status: keyof typeof delivered) => void delivered[status].value++,

    attachments: {
      stored: (bytes: number) => void (storedBytes.value += bytes),
      failed: () => void storeFailures.value++,
    },

    /** Counts rows that were deleted for their age. */
    deleted: (table: string, rows: number) => void (deletedRows.at({ table }).value += rows),

    notesDropped: (count: number) => void (dropped.value += count),

    /** Returns all metrics as of now, without those of the database if it does not answer. */
    async exposition(format?: ExpositionFormat): Promise<string> {
      return writeExposition([...own, ...databaseFamilies(await gauges())], format);
    },

    stop: lag.stop,
  };
}

export type Metrics = ReturnType<typeof createMetrics>;

function databaseFamilies(read: GaugesHere | undefined): MetricFamily[] {
  const up = gauge(
    { name: "assay_database_up", help: "Whether the database answered this server within 2 seconds." },
    () => (read ? 1 : 0),
  );
  if (!read) return [up];
  const shared = (name: string, help: string, value: number | [Record<string, string>, number][]) =>
    gauge({ name, help: `${help} ${SHARED}` }, () => value);
  return [
    up,
    shared(
      "assay_leases",
      "Tasks and shards by state; those that have ended: in the last 5 minutes.",
      Object.entries({ ...LEASES, ...read.leases }).map(([status, count]) => [{ status }, count]),
    ),
    shared("assay_queue_length", "Tasks and shards that wait for a runner.", read.leases["queued"] ?? 0),
    shared("assay_queue_oldest_seconds", "How long the first of them has been waiting.", read.queueAge ?? 0),
    shared(
      "assay_queue_waiting",
      "Tasks and shards that wait, by the labels that they ask of a runner.",
      read.queue.map(({ labels, waiting }) => [{ labels }, waiting]),
    ),
    shared(
      "assay_queue_waiting_oldest_seconds",
      "How long the first of them has been waiting.",
      read.queue.map(({ labels, age }) => [{ labels }, age]),
    ),
    shared("assay_runners", "Runners seen within 2 minutes.", read.runners),
    shared("assay_runner_slots", "Free and held slots of runners, as last reported.", [
      [{ state: "free" }, read.free],
      [{ state: "held" }, read.held],
    ]),
    shared("assay_runs_uncounted", "Completed runs not yet counted for the health of test cases.", read.uncounted),
    shared("assay_runs_uncounted_oldest_seconds", "How long ago the oldest of them arrived.", read.uncountedAge ?? 0),
    shared("assay_events_waiting", "Events that automations have not looked at yet.", read.events),
    shared("assay_events_oldest_seconds", "How long ago the oldest of them happened.", read.eventAge ?? 0),
    shared("assay_deliveries_pending", "Deliveries that are not sent yet.", read.deliveries),
    shared("assay_deliveries_due", "Of these, what is due now.", read.deliveriesDue),
    shared("assay_deliveries_due_oldest_seconds", "For how long the first one has been due.", read.deliveryAge ?? 0),
    shared("assay_database_bytes", "The size of the database on its disk.", read.databaseBytes),
    ...(read.backupAge === null
      ? []
      : [shared("assay_backup_age_seconds", "How long ago the last assay backup was taken.", read.backupAge)]),
    shared(
      "assay_planned_deletions",
      "Runs with results, attachments and executions that are deleted for their age within a day, unless someone stops it.",
      read.plannedDeletions,
    ),
    gauge(
      { name: "assay_clock_skew_seconds", help: "How far the clock of the database is ahead of this machine." },
      () => read.clockSkew,
    ),
    shared("assay_quiet", "Whether the server is quiet after a restore.", read.quiet ? 1 : 0),
    shared(
      "assay_database_sessions",
      "Connections of all servers to the database, by state.",
      Object.entries(read.sessions).map(([state, count]) => [{ state }, count]),
    ),
  ];
}
