/** Fifty log-ins at once, again and again, against a real server: what others feel of them, and whether everybody is answered. */

import { COMMAND_LINE } from "../../../src/schema/audit.ts";
import { createPasswords } from "../../../src/secrets/passwords.ts";
import { insertAccount, insertMembership } from "../../../src/store/accounts.ts";
import { insertAuditEntry } from "../../../src/store/audit.ts";
import { createBrowser } from "../../browser.ts";
import { judge, startServers } from "./servers.ts";

const AT_ONCE = 50;
const WAVES = 4;
const MAX_P99_MS = 250;
const PASSWORD = "correct horse battery";

const start = await startServers({ environment: { TRUST_PROXY: "127.0.0.0/8" } });
const { servers, project, key, team, database } = start;
const { url } = servers[0]!;

const passwordHash = await createPasswords().hash(PASSWORD);
await database.begin(async (sql) => {
  const account = (await insertAccount(sql, { email: "ada@acme.example", name: "Ada", passwordHash }))!;
  await insertMembership(sql, team, account, "owner");
  await insertAuditEntry(sql, team, COMMAND_LINE, { action: "member.added", subject: "ada@acme.example" });
});

let isOver = false;
async function probe(): Promise<number[]> {
  const times: number[] = [];
  while (!isOver) {
    const began = performance.now();
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/api/v1/projects/${project}/test-runs`, { headers });
    await response.text();
    if (response.status !== 200) throw new Error(`The list answered ${response.status}`);
    times.push(performance.now() - began);
    await Bun.sleep(10);
  }
  return times.sort((one, other) => one - other);
}
const at = (times: number[], share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
const told = (times: number[]) =>
  `p50 ${at(times, 0.5).toFixed(1)} ms, p99 ${at(times, 0.99).toFixed(1)} ms, longest ${at(times, 1).toFixed(1)} ms of ${times.length}`;

const quiet = probe();
await Bun.sleep(2_000);
isOver = true;
const before = await quiet;

isOver = false;
const probing = probe();
const statuses = new Map<number, number>();
const began = performance.now();
for (let wave = 0; wave < WAVES; wave++) {
  // Each from an address of its own, so that nobody is told to wait; every tenth knows the password.
  const browsers = Array.from({ length: AT_ONCE }, (_, index) =>
    createBrowser(url, { "x-forwarded-for": `198.51.${wave}.${index}` }),
  );
  const forms = await Promise.all(browsers.map(async (one) => one.hiddenOf(await one.get("/login"), "/login")));
  const answers = await Promise.all(
    browsers.map((one, index) => {
      const password = index % 10 === 0 ? PASSWORD : "a wrong password";
      return one.post("/login", {
        ...forms[index]!,
        email: index % 2 === 0 ? "ada@acme.example" : "nobody@acme.example",
        password,
      });
    }),
  );
  for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1);
}
const seconds = (performance.now() - began) / 1_000;
isOver = true;
const during = await probing;

judge(
  [
    "who knows the password is in, all others are refused",
    statuses.get(303) === WAVES * 5 && statuses.get(400) === WAVES * 45,
  ],
  [`the API's p99 stays under ${MAX_P99_MS} ms`, at(during, 0.99) < MAX_P99_MS, told(during)],
);
console.log(`       before them: ${told(before)}; ${WAVES * AT_ONCE} log-ins in ${seconds.toFixed(1)} s`);
await start.stop();
process.exit();
