/**
 * Texts that are slow to read where they are gone through again and again, in requests of less than 1 MB:
 * `bun test/lab/faults/hostile_texts.ts`. Each is answered soon, and others are answered meanwhile.
 */

import { judge, startServers } from "./servers.ts";

const SOON_MS = 5_000;
/** Maximum time of another client's GET /healthz meanwhile. */
const OTHERS_MS = 250;
/** Somebody who hangs is waited for no longer. */
const PATIENCE_MS = 30_000;

const native = (texts: readonly string[]) => {
  const failed = texts.map((message, index) => ({ name: `f${index}`, status: "failed", message, stack: message }));
  // Where nearly everything fails, it is an outage, and no single failure is looked at.
  const passed = texts.map((_, index) => ({ name: `p${index}`, status: "passed" }));
  const counts = { passed: passed.length, failed: failed.length, skipped: 0 };
  return JSON.stringify({ ...counts, cases: [...passed, ...failed] });
};
/** Each different, so that none is known already. */
const failures = (count: number, text: string) => native(Array.from({ length: count }, (_, at) => `${at} ${text}`));

function junit(part: (at: number) => string): string {
  let parts = "";
  for (let at = 0; parts.length < 480_000; at++) parts += part(at);
  return `<testsuites><testsuite name="s"><testcase name="one"/>${parts}</testsuite></testsuites>`;
}

const REPORTS: Record<string, string> = {
  "hyphens in words": failures(220, "a-".repeat(1_000)),
  "hyphens after digits": failures(220, "0-".repeat(1_000)),
  "dots in words": failures(220, "a.".repeat(1_000)),
  "line breaks": failures(40, "\n".repeat(5_000)),
  // Just below the size from which every report is read in a thread.
  "failures with long messages": failures(220, 'expected: 1 "q7x9" a@b.c '.repeat(40)),
  "failures with messages of words": failures(480, "a".repeat(9).concat(" ").repeat(45)),
  "small test cases": junit((at) => `<testcase name="${at}"/>`),
  "small failures": junit((at) => `<testcase name="${at}"><failure/></testcase>`),
  "small suites": junit((at) => `<testsuite><testcase name="${at}"/></testsuite>`),
  "brackets that are no tags": junit(() => "<"),
  "ampersands that are no entities": junit(() => "&"),
  "lines of TAP": `TAP version 13\n1..2\nok 1\n${"not ok\n".repeat(69_000)}`,
  "carriage returns": `TAP version 13\n1..1\nok 1\n  ---\n${"\r".repeat(480_000)}\n`,
};
const DOTENV: Record<string, string> = {
  "a quote that is not closed": `A="${"x\n".repeat(450_000)}`,
  "blanks in a value": `A=x${" ".repeat(900_000)}y`,
};

const servers = await startServers();
const { url } = servers.servers[0]!;
const ask = async (path: string, init: RequestInit & { headers: Record<string, string> }) => {
  const started = performance.now();
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const status = await fetch(`${url}/api/v1${path}`, { ...init, signal }).then(
    async (response) => (await response.text(), response.status),
    () => 0,
  );
  return { status, ms: Math.round(performance.now() - started) };
};
const headers = { Authorization: `Bearer ${servers.key}` };
const teamHeaders = { Authorization: `Bearer ${servers.teamKey}` };
const list = `/projects/${servers.project}/test-runs`;

try {
  const claims: Parameters<typeof judge> = [];
  const attack = async (what: string, status: number, path: string, init: Parameters<typeof ask>[1]) => {
    const answer = ask(path, init);
    let others = 0;
    let isOver = false;
    void answer.then(() => (isOver = true));
    while (!isOver) {
      const began = performance.now();
      await (await fetch(`${url}/healthz`)).text();
      others = Math.max(others, Math.round(performance.now() - began));
    }
    const { status: got, ms } = await answer;
    const holds = got === status && ms < SOON_MS && others < OTHERS_MS;
    claims.push([what, holds, `${got} in ${ms} ms, others ${others} ms`]);
    // What follows would wait for a server that hangs.
    return got !== 0;
  };
  const made = await fetch(`${url}/api/v1/teams/${servers.team}/environments`, {
    method: "POST",
    headers: teamHeaders,
    body: `{"slug":"hostile"}`,
  });
  const { id } = (await made.json()) as { id: string };
  const variables = `/teams/${servers.team}/environments/${id}/variables`;
  let goesOn = true;
  for (const [what, body] of Object.entries(REPORTS))
    goesOn &&= await attack(`a report of ${what}`, 201, list, { method: "POST", headers, body });
  for (const [what, body] of Object.entries(DOTENV)) {
    const type = { ...teamHeaders, "Content-Type": "text/plain" };
    goesOn &&= await attack(`a .env file of ${what}`, 400, variables, { method: "PUT", headers: type, body });
  }
  judge(...claims);
} finally {
  await servers.stop();
}
