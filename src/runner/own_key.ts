/** The runner's own key: a runner gets one for the key that it was started with, so that its rate limit is shared with nobody. */

import * as v from "valibot";
import type { Log } from "../log.ts";
import type { RunnerRequest, Server, ServerAnswer } from "./protocol.ts";

/** Asks the server with this key; undefined: with the one that the runner was started with. */
export type AskWithKey = (asking: RunnerRequest, key: string | undefined) => Promise<ServerAnswer>;

const registered = v.object({ key: v.string(), runner: v.string() });
const REGISTER_TIMEOUT_MS = 30_000;

/**
 * A server that is asked with a key of the runner's own. The key is requested with the first request, and again when the server
 * refuses it, for example after an outage of more than an hour.
 */
export function askWithOwnKey(
  runner: { name: string; version: string },
  { ask, messageOf }: { ask: AskWithKey; messageOf: Server["messageOf"] },
  log: Log,
): Server {
  let ownKey: string | undefined;
  let registering: Promise<ServerAnswer | undefined> | undefined;
  /** The server gives a name that no other runner has; this one keeps it. */
  let name: string | undefined;

  /** Answers what the server said where it gave no key and may give one later. */
  async function register(): Promise<ServerAnswer | undefined> {
    const answer = await ask(
      {
        method: "POST",
        path: "/runners",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ runner: name ?? runner.name, version: runner.version, unique: name === undefined }),
        timeoutMs: REGISTER_TIMEOUT_MS,
      },
      undefined,
    );
    if (answer.status !== 201) return answer;
    ({ key: ownKey, runner: name } = v.parse(registered, JSON.parse(answer.text)));
    log.info("The runner has obtained its own key", { name });
    return;
  }

  const registerOnce = () => (registering ??= register().finally(() => (registering = undefined)));

  return {
    messageOf,
    async ask(asking) {
      for (let count = 0; ; count++) {
        if (ownKey === undefined) {
          const refusal = await registerOnce();
          if (refusal) return refusal;
        }
        const key = ownKey;
        const answer = await ask(asking, key);
        // A key that is new and refused as well is not for this request: another one would not be either.
        if (answer.status !== 401 || key === undefined || count > 0) return answer;
        if (ownKey === key) ownKey = undefined;
      }
    },
  };
}
