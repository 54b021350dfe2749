/**
 * Uploads thousands of attachments of 1 MB to a server with S3, whose memory must stay flat; in the middle the S3 server goes
 * away, which must cost no result and no attachment that was acknowledged. `bun test/lab/faults/attachments.ts [COUNT]`
 */

import S3rver from "@20minutes/s3rver";
import { createPlace, removePlace } from "../../places.ts";
import { judge, startServers } from "./servers.ts";

const COUNT = Number(process.argv[2] ?? 10_000);
const BYTES = 1_000_000;
const PER_RUN = 100;
const PARALLEL = 4;
/** Every tenth run comes with its attachments in one form, another tenth sends them in one request after it, and the others one by one. */
const FORM_EVERY = 10;
const BUCKET = "assay";

const place = createPlace("s3");
const openS3 = async (port: number) => {
  const server = new S3rver({
    ...{ port, address: "127.0.0.1", silent: true, directory: place, configureBuckets: [{ name: BUCKET }] },
  });
  return { server, port: (await server.run()).port };
};
let { server: s3, port } = await openS3(0);

const world = await startServers({
  environment: {
    LOG_LEVEL: "info",
    ATTACHMENTS_S3: `s3://${BUCKET}/attachments`,
    S3_ENDPOINT: `http://127.0.0.1:${port}`,
    S3_REGION: "us-east-1",
    S3_ACCESS_KEY_ID: "S3RVER",
    S3_SECRET_ACCESS_KEY: "S3RVER",
  },
});
const server = world.servers[0]!;
const base = `${server.url}/api/v1/projects/${world.project}`;
const headers = { authorization: `Bearer ${world.key}` };

const content = (index: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(BYTES).fill(index % 251);
  new DataView(bytes.buffer).setUint32(0, index);
  return bytes;
};

type Acknowledged = { id: string; index: number };
const acknowledged: Acknowledged[] = [];
let [results, refusedResults, refusedFiles, warned] = [0, 0, 0, 0];
const memory: number[] = [];

async function upload(run: number, indexes: readonly number[]): Promise<void> {
  const isForm = run % FORM_EVERY === 0;
  const isBatch = run % FORM_EVERY === 1;
  const form = new FormData();
  form.append(
    "file",
    new Blob([`<testsuite name="e2e"><testcase name="a"><failure message="x"/></testcase></testsuite>`]),
  );
  if (isForm) for (const index of indexes) form.append("attachment", new Blob([content(index)]), `${index}.bin`);
  const response = await fetch(`${base}/test-runs?task_slug=e2e&execution_key=${run}`, {
    method: "POST",
    headers,
    body: form,
  });
  const body = (await response.json()) as { executionId: string; warnings: string[] };
  if (response.status !== 201) return void refusedResults++;
  results++;
  warned += body.warnings.length;
  const target = `${base}/executions/${body.executionId}/test-runs/e2e/attachments`;
  if (isForm) {
    const { data } = (await (await fetch(`${target}?limit=100`, { headers })).json()) as {
      data: { id: string; name: string }[];
    };
    acknowledged.push(...data.map(({ id, name }) => ({ id, index: Number(name.split(".")[0]) })));
    return;
  }
  if (isBatch) {
    const files = new FormData();
    for (const index of indexes) files.append("attachment", new Blob([content(index)]), `${index}.bin`);
    const answer = await fetch(target, { method: "POST", headers, body: files });
    if (!answer.ok) return void (refusedFiles += indexes.length);
    const { attachments, warnings } = (await answer.json()) as {
      attachments: { id: string; name: string }[];
      warnings: string[];
    };
    warned += warnings.length;
    acknowledged.push(...attachments.map(({ id, name }) => ({ id, index: Number(name.split(".")[0]) })));
    return;
  }
  for (const index of indexes) {
    const answer = await fetch(`${target}?path=${index}.bin`, { method: "PUT", headers, body: content(index) });
    const { attachment } = (await answer.json()) as { attachment: { id: string } | undefined };
    if (answer.ok) acknowledged.push({ id: attachment!.id, index });
    else refusedFiles++;
  }
}

const runs = Array.from({ length: Math.ceil(COUNT / PER_RUN) }, (_, run) =>
  Array.from({ length: Math.min(PER_RUN, COUNT - run * PER_RUN) }, (_, index) => run * PER_RUN + index),
);
/** How long the store is away, from the moment that half of the runs have begun. */
const AWAY_MS = 3_000;
const began = performance.now();
let next = 0;

async function takeStoreAway(): Promise<void> {
  // What is open is cut off: otherwise it would go on being served.
  s3.httpServer.closeAllConnections();
  const closed = s3.close();
  console.log("The S3 server is away");
  await Promise.all([closed, Bun.sleep(AWAY_MS)]);
  ({ server: s3 } = await openS3(port));
  console.log("The S3 server is back");
}
let away: Promise<void> | undefined;

async function work(): Promise<void> {
  for (let run = next++; run < runs.length; run = next++) {
    if (run >= runs.length / 2) away ??= takeStoreAway();
    await upload(run, runs[run]!);
    if (run % Math.ceil(runs.length / 20) !== 0) continue;
    const { now } = await server.memory();
    memory.push(now);
    console.log(`${acknowledged.length} attachments, ${Math.round((performance.now() - began) / 1_000)} s, ${now} MiB`);
  }
}
await Promise.all(Array.from({ length: PARALLEL }, work));
await away;
const seconds = (performance.now() - began) / 1_000;

let wrong = 0;
for (let at = 0; at < acknowledged.length; at += Math.ceil(acknowledged.length / 500)) {
  const { id, index } = acknowledged[at]!;
  const response = await fetch(`${base}/attachments/${id}`, { headers });
  const bytes = await response.bytes();
  if (response.status !== 200 || Bun.SHA256.hash(bytes, "hex") !== Bun.SHA256.hash(content(index), "hex")) wrong++;
}
const [{ count, bytes }] = (await world.database.pool`
  select count(*)::int as count, coalesce(sum(bytes), 0)::float8 as bytes from attachment`) as unknown as [
  { count: number; bytes: number },
];
const { peak } = await server.memory();
const half = Math.floor(memory.length / 2);
const [early, late] = [Math.max(...memory.slice(1, half)), Math.max(...memory.slice(half))];

judge(
  ["every result is stored", refusedResults === 0 && results === runs.length, `${results} runs`],
  [
    "every attachment that was acknowledged is in the database",
    count === acknowledged.length,
    `${count}, ${bytes} bytes`,
  ],
  ["and in the store, whole (500 of them were read)", wrong === 0],
  [
    "some were refused while the store was away, and are named",
    refusedFiles + warned > 0,
    `${refusedFiles} refused, ${warned} warnings, ${Math.round(acknowledged.length / seconds)} attachments a second`,
  ],
  [
    "memory stays flat: less than 1.5 times as much in the second half",
    late < 1.5 * early,
    `${memory.join(", ")} MiB, peak ${peak}`,
  ],
);
await world.stop();
await s3.close();
await removePlace(place);
process.exit();
