/** `assay health`: asks whether a server is ready, for the health checks of containers. */

import { askUrl, messageOf, ServerAwayError, shown, withoutEndSlashes } from "./client.ts";
import type { Invocation } from "./invocation.ts";
import { toJsonLine, toPlainLine } from "./output.ts";
import { parseOptions, UsageError } from "./usage.ts";

export const HEALTH_HELP = `Usage: assay health [--url URL] [--json]

Asks a server whether it can read and write its database.

  --url URL   (default: http://127.0.0.1:PORT, where PORT is 8080 unless the environment sets it)
  --json      print one line of JSON: { "ready", "message" }

Exit code: 0 if the server is ready, 1 if it is not or does not answer within 5 seconds, 2 for wrong usage.`;

const TIMEOUT_MS = 5_000;

/** Returns the exit code. Throws UsageError. */
export async function checkHealth(args: string[], { environment, print }: Invocation): Promise<number> {
  const { values, json } = parseOptions(args, ["url"]);
  const url = withoutEndSlashes(values["url"]?.trim() || `http://127.0.0.1:${environment["PORT"]?.trim() || "8080"}`);
  if (!/^https?:/.test(url) || !URL.canParse(url))
    throw new UsageError(`--url: expected a URL such as http://127.0.0.1:8080, got "${url}"`);
  const report = (isReady: boolean, message: string): number => {
    print(json ? toJsonLine({ ready: isReady, message }) : toPlainLine(message));
    return isReady ? 0 : 1;
  };
  try {
    const answer = await askUrl(`${url}/readyz`, { timeoutMs: TIMEOUT_MS, shown: shown({ url, project: "" }) });
    return answer.status === 200 ? report(true, "ready") : report(false, messageOf(answer));
  } catch (error) {
    if (!(error instanceof ServerAwayError)) throw error;
    return report(false, error.message);
  }
}
