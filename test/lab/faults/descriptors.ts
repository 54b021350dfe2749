/**
 * Hundreds and thousands of idle connections to a server that may have 128 file descriptors:
 * `bun test/lab/faults/descriptors.ts`, about 50 s, exit code 1 unless everything holds. Linux only.
 */

import { connect, type Socket } from "node:net";
import { judge, startServers } from "./servers.ts";

const LIMIT = 128;

const servers = await startServers({
  environment: { OUTBOUND_ALLOW: "127.0.0.0/8" },
  under: ["sh", "-c", `ulimit -n ${LIMIT}; exec "$@"`, "sh"],
});
const server = servers.servers[0]!;
const port = Number(new URL(server.url).port);
const runs = `/api/v1/projects/${servers.project}/test-runs`;
const head = (rest: string) => `Host: h\r\nAuthorization: Bearer ${servers.key}\r\n${rest}\r\n`;

/** Seconds of CPU that the server has used. */
async function cpu(): Promise<number> {
  const fields = (await Bun.file(`/proc/${server.child.pid}/stat`).text()).split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function dial(bytes: string, onClose = () => {}): Socket {
  const socket = connect(port, "127.0.0.1", () => void socket.write(bytes));
  socket.on("error", () => {});
  socket.on("close", onClose);
  return socket;
}

/** Milliseconds that the answer on a new connection takes; `undefined` when there is none within a second. */
function probe(): Promise<number | undefined> {
  const started = performance.now();
  return new Promise((resolve) => {
    const socket = dial("GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", () => resolve(undefined));
    socket.on("data", (chunk) => {
      if (chunk.toString().startsWith("HTTP/1.1 200")) resolve(performance.now() - started);
    });
    setTimeout(() => socket.destroy(), 1_000);
  });
}

const report = `<testsuite name="s"><testcase classname="s" name="c" time="1"/></testsuite>`;
const large = `${report}<!--${"x".repeat(1_100_000)}-->`;

/** An upload that sends its last bytes when `finish` is called; resolves with its status. */
function slowUpload() {
  const { promise: answer, resolve } = Promise.withResolvers<string>();
  const socket = dial(
    `POST ${runs} HTTP/1.1\r\n${head(`Content-Length: ${report.length}\r\n`)}${report.slice(0, 20)}`,
    () => resolve("closed"),
  );
  socket.on("data", (chunk) => resolve(chunk.toString().slice(9, 12)));
  return { finish: () => void socket.write(report.slice(20)), answer };
}

type Attack = {
  name: string;
  count: number;
  bytes: string;
  /** Whoever is cut off comes again at once. */
  again?: boolean;
  /** An upload is under way all the time. */
  upload?: boolean;
  seconds?: number;
  /** What is good enough: the longest time without an answer in seconds, the share of answers and of a core in percent. */
  outage?: number;
  answers?: number;
  core?: number;
};

async function suffer(attack: Attack) {
  const { name, count, bytes, again, upload, seconds = 5, outage = 3, answers = 80, core = 20 } = attack;
  let over = false;
  const sockets = new Set<Socket>();
  const open = () => {
    const socket = dial(bytes, () => {
      sockets.delete(socket);
      if (again) setTimeout(() => over || open(), 100);
    });
    sockets.add(socket);
  };
  const slow = upload ? slowUpload() : undefined;
  if (slow) await Bun.sleep(200);
  const begun = performance.now();
  const cpuBefore = await cpu();
  for (let index = 0; index < count; index++) open();

  const statuses = new Map<string, number>();
  const note = (status: string) => statuses.set(status, (statuses.get(status) ?? 0) + 1);
  // Small uploads and large ones, which start a thread: what the server has taken on must not fail.
  const working = (async () => {
    for (let index = 0; !over; index++) {
      const body = index % 10 === 5 ? large : report;
      const request = { method: "POST", headers: { authorization: `Bearer ${servers.key}` }, body };
      await fetch(server.url + runs, { ...request, signal: AbortSignal.timeout(5_000) }).then(
        ({ status }) => note(String(status)),
        () => note("refused"),
      );
      await Bun.sleep(100);
    }
  })();
  const times: (number | undefined)[] = [];
  let answeredAt = begun;
  let longest = 0;
  const end = begun + seconds * 1000;
  while (performance.now() < end) {
    const ms = await probe();
    times.push(ms);
    longest = Math.max(longest, performance.now() - answeredAt);
    if (ms !== undefined) answeredAt = performance.now();
    await Bun.sleep(100);
  }
  const used = (((await cpu()) - cpuBefore) / ((performance.now() - begun) / 1000)) * 100;
  slow?.finish();
  const uploaded = await slow?.answer;
  over = true;
  for (const socket of sockets) socket.destroy();
  const left = performance.now();
  while ((await probe()) === undefined && performance.now() < left + 10_000);
  const recovered = performance.now() - left;
  await working;
  const answered = times.filter((ms) => ms !== undefined).length / times.length;
  const failed = [...statuses].filter(([status]) => status.startsWith("5"));
  const what = `${count} ${name}`;
  return [
    [`${what}: CPU under ${core} %`, used < core, `${used.toFixed(1)} %`],
    [`${what}: /healthz is back within ${outage} s`, longest < outage * 1000, `${Math.round(longest)} ms at most`],
    [`${what}: /healthz in ${answers} % of all tries`, answered * 100 >= answers, `${Math.round(answered * 100)} %`],
    [`${what}: no upload is a 500`, failed.length === 0, [...statuses].map((entry) => entry.join("×")).join(" ")],
    [`${what}: fine again within 2 s of their end`, recovered < 2_000, `${Math.round(recovered)} ms`],
    ...(slow ? [[`${what}: the upload under way is stored`, uploaded === "201", uploaded] as const] : []),
  ] as Parameters<typeof judge>;
}

/** Uploads that come at once right after the start, each on a connection of its own, more than there are descriptors. */
async function suffer250Uploads(): Promise<Parameters<typeof judge>> {
  const request = {
    method: "POST",
    headers: { authorization: `Bearer ${servers.key}` },
    body: report,
    keepalive: false,
  };
  const statuses = await Promise.all(
    Array.from({ length: 250 }, () =>
      fetch(server.url + runs, request).then(
        ({ status }) => status,
        () => 0,
      ),
    ),
  );
  const counts = Object.entries(Object.groupBy(statuses, String)).map(([status, all]) => `${status}×${all!.length}`);
  return [["250 uploads at once: none is a 500", !statuses.includes(500), counts.join(" ")]];
}

const get = `GET /healthz HTTP/1.1\r\n${head("")}`;
const only = process.argv[2];
const half = get.slice(0, 30);
const attacks: Attack[] = [
  { name: "connections with half a head", count: 2_000, bytes: half },
  { name: "silent connections", count: 200, bytes: "" },
  { name: "silent connections", count: 2_000, bytes: "" },
  { name: "connections idle after an answer", count: 2_000, bytes: get },
  { name: "connections with half a head, coming again", count: 200, bytes: half, again: true, answers: 15, core: 40 },
  // Bun gives the silent ones among them 10 s, and nobody can take these from them while the upload runs.
  {
    name: "connections with half a head, beside an upload",
    count: 200,
    bytes: half,
    upload: true,
    seconds: 17,
    outage: 15,
    answers: 5,
  },
];
try {
  const claims = await suffer250Uploads();
  for (const [index, attack] of attacks.entries())
    if (only === undefined || only === String(index)) claims.push(...(await suffer(attack)));
  if (process.env["SHOW"])
    console.log(
      server
        .output()
        .split("\n")
        .filter((l) => /"warn|"error/.test(l))
        .join("\n"),
    );
  const warnings = server.logged("warn").map(({ message }) => message);
  claims.push([
    "the log says that the limit is low",
    warnings.some((line) => /limit of open files/.test(String(line))),
  ]);
  judge(...claims);
} finally {
  await servers.stop();
}
