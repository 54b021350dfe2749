/** Hundreds of forms and JSON bodies that almost arrive and then drip, against a real server: its memory, and who still gets through. */

import { connect, type Socket } from "node:net";
import { COMMAND_LINE } from "../../../src/schema/audit.ts";
import { createPasswords } from "../../../src/secrets/passwords.ts";
import { insertAccount, insertMembership } from "../../../src/store/accounts.ts";
import { insertAuditEntry } from "../../../src/store/audit.ts";
import { createBrowser } from "../../browser.ts";
import { judge, startServers } from "./servers.ts";

const CONNECTIONS = 700;
const DECLARED_BYTES = 1_048_576;
/** All but the end, so that a server that takes it in holds nearly all of it. */
const SENT_BYTES = 1_000_000;
const DRIP_MS = 1_000;
const COME_BACK_MS = 10_000;
const ATTACK_MS = 25_000;
/** Without limits 700 bodies of 1 MiB take 950. Bun holds what arrives while a session is looked up, which no limit of ours sees. */
const MAX_GROWTH_MIB = 300;
/** From its first answer to its last, whoever attacks. */
const MAX_ANSWER_MS = 3_000;
const PASSWORD = "correct horse battery";

const start = await startServers();
const { servers, project, team, key, database } = start;
const { url, memory, forgetPeak } = servers[0]!;
const { hostname, port } = new URL(url);

const passwordHash = await createPasswords().hash(PASSWORD);
for (const email of ["ada@acme.example", "grace@acme.example"])
  await database.begin(async (sql) => {
    const account = (await insertAccount(sql, { email, name: "Ada", passwordHash }))!;
    await insertMembership(sql, team, account, "owner");
    await insertAuditEntry(sql, team, COMMAND_LINE, { action: "member.added", subject: email });
  });

async function signIn(email: string) {
  const browser = createBrowser(url);
  const fields = browser.hiddenOf(await browser.get("/login"), "/login");
  const answer = await browser.post("/login", { ...fields, next: "/", email, password: PASSWORD });
  return { browser, status: answer.status };
}

const { browser: ada, status: adaStatus } = await signIn("ada@acme.example");
if (adaStatus !== 303) throw new Error(`Signing in answered ${adaStatus}`);

type Drip = { path: string; headers: string[]; bytes: number };
const open = new Set<Socket>();

/** A client that sends most of a body at once and the rest a byte a second, and comes back whenever it is cut off. */
function drip({ path, headers, bytes }: Drip, until: number): void {
  const socket = connect(Number(port), hostname);
  open.add(socket);
  let timer: Timer | undefined;
  socket.on("connect", () => {
    const head = [`POST ${path} HTTP/1.1`, `Host: ${hostname}:${port}`, `Content-Length: ${bytes}`, ...headers];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.write(Buffer.alloc(Math.floor(bytes * (SENT_BYTES / DECLARED_BYTES)), "a"));
    timer = setInterval(() => socket.write("a"), DRIP_MS);
  });
  socket.on("data", () => {});
  socket.on("error", () => {});
  socket.on("close", () => {
    clearInterval(timer);
    open.delete(socket);
    if (performance.now() < until) setTimeout(() => drip({ path, headers, bytes }, until), COME_BACK_MS);
  });
}

const form = "Content-Type: application/x-www-form-urlencoded";
const json = "Content-Type: application/json";
const attacks: Record<string, Drip> = {
  "large forms of strangers": { path: "/login", headers: [form], bytes: DECLARED_BYTES },
  "small forms of strangers": { path: "/login", headers: [form], bytes: 32_768 },
  "JSON with a wrong key": {
    path: `/api/v1/projects/${project}/executions`,
    headers: [json, "Authorization: Bearer svc_proj_wrong"],
    bytes: DECLARED_BYTES,
  },
  "JSON with a right key": {
    path: `/api/v1/projects/${project}/executions`,
    headers: [json, `Authorization: Bearer ${key}`],
    bytes: DECLARED_BYTES,
  },
  "forms with a session": {
    path: "/account/name",
    headers: [form, `Cookie: ${[...ada.cookies].map(([name, value]) => `${name}=${value}`).join("; ")}`],
    bytes: DECLARED_BYTES,
  },
};

const checks: [string, boolean, string?][] = [];
for (const [name, attack] of Object.entries(attacks)) {
  await forgetPeak();
  const before = (await memory()).now;
  const until = performance.now() + ATTACK_MS;
  for (let count = 0; count < CONNECTIONS; count++) {
    drip(attack, until);
    // What arrives while a session is looked up is held by the HTTP server itself: this is about what drips.
    await Bun.sleep(5);
  }
  await Bun.sleep(5_000);
  const statuses: number[] = [];
  let longest = 0;
  while (performance.now() < until) {
    const began = performance.now();
    // Somebody else, because an account keeps its last 50 sessions only.
    const { status } = await signIn("grace@acme.example");
    longest = Math.max(longest, performance.now() - began);
    const page = await ada.get("/account");
    if (page.status !== 200) throw new Error(`/account answered ${page.status} ${page.location} during ${name}`);
    const fields = ada.hiddenOf(page, "/account/name");
    const renamed = performance.now();
    const answer = await ada.post("/account/name", { ...fields, name: "Ada" });
    longest = Math.max(longest, performance.now() - renamed);
    statuses.push(status, answer.status);
    await Bun.sleep(500);
  }
  const { peak } = await memory();
  for (const socket of open) socket.destroy();
  await Bun.sleep(1_000);
  const isIn = statuses.every((status) => status === 303);
  checks.push(
    [`${name}: memory grows by less than ${MAX_GROWTH_MIB} MiB`, peak - before < MAX_GROWTH_MIB, `${before} → ${peak}`],
    [
      `${name}: people sign in, and who is in sends forms`,
      isIn && statuses.length > 4,
      `${statuses.length} answers, ${new Set(statuses).size} kind`,
    ],
    [`${name}: within ${MAX_ANSWER_MS} ms`, longest < MAX_ANSWER_MS, `${longest.toFixed(0)} ms`],
  );
}
await start.stop();
judge(...(checks as never[]));
