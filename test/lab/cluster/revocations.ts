/** Keys that are generated, used and revoked through one server, and must be refused by all servers from its acknowledgement on. */

import type { Application } from "./application.ts";

const PAUSE_MS = 300;
const RETRY_MS = 200;
/** Older keys that are tried again in each round. */
const OLDER = 3;
const TIMEOUT_MS = 60_000;

export function startRevocations({ urls, projects }: Pick<Application, "urls" | "projects">) {
  const { project, key: owner } = projects[0]!;
  const revoked: string[] = [];
  const accepted: string[] = [];
  let isOver = false;
  let [refusals, number] = [0, 0];

  /** The status, or 0 if there is no answer. */
  async function ask(url: string, key: string, path = "", init: RequestInit = {}): Promise<[number, any]> {
    try {
      const response = await fetch(`${url}/api/v1/projects/${project}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${key}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const text = await response.text();
      return [response.status, text === "" ? undefined : JSON.parse(text)];
    } catch {
      return [0, undefined];
    }
  }

  /** A key that was revoked before: an answer that is not a failure must be 401. */
  async function check(url: string, key: string): Promise<boolean> {
    const [status] = await ask(url, key);
    if (status === 401) refusals++;
    if (status === 200) accepted.push(`${key.slice(0, 17)} by ${url}`);
    return status === 401 || status === 200;
  }

  async function checkUntilAnswered(url: string, key: string): Promise<void> {
    while (!(await check(url, key))) await Bun.sleep(RETRY_MS);
  }

  async function round(): Promise<void> {
    const through = urls[number++ % urls.length]!;
    const body = JSON.stringify({ name: `key ${number}`, scope: "read" });
    const [status, generated] = await ask(through, owner, "/keys", { method: "POST", body });
    for (let at = 0; at < OLDER && revoked.length > 0; at++) {
      const older = revoked[Math.floor(Math.random() * revoked.length)]!;
      await check(urls[(number + at) % urls.length]!, older);
    }
    if (status !== 201) return;
    const { id, key } = generated as { id: string; key: string };
    // All servers have seen the key before it is revoked.
    await Promise.all(urls.map((url) => ask(url, key)));
    for (;;) {
      const [answer] = await ask(through, owner, `/keys/${id}`, { method: "DELETE" });
      if (answer === 204) break;
      // An attempt before may have revoked it without an answer.
      if (answer === 404) return;
      await Bun.sleep(RETRY_MS);
    }
    revoked.push(key);
    await Promise.all(urls.map((url) => checkUntilAnswered(url, key)));
  }

  const working = (async () => {
    for (; !isOver; await Bun.sleep(PAUSE_MS)) await round();
  })();

  return {
    /** All revoked keys are tried once more at all servers. */
    async finish(): Promise<{ revoked: number; refusals: number; accepted: string[] }> {
      isOver = true;
      await working;
      for (const key of revoked) await Promise.all(urls.map((url) => checkUntilAnswered(url, key)));
      return { revoked: revoked.length, refusals, accepted };
    },
  };
}
