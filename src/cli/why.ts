/** `assay why`: says in a terminal why a branch, a pull request or an execution is red. */

import { findWhy, isRed, type Why, type WhyQuery } from "../mcp/why.ts";
import type { ProjectApi, QueryValues } from "../mcp/tool.ts";
import { askPatiently, messageOf, readServerAddress, type ServerAddress, ServerAwayError, shown } from "./client.ts";
import type { Invocation } from "./invocation.ts";
import { toJsonLine } from "./output.ts";
import { parseOptions, UsageError } from "./usage.ts";
import { whyLines } from "./why_lines.ts";

export const WHY_HELP = `Usage: assay why [--branch NAME|--pull-request NUMBER|--execution ID]

Explains why the last result of a branch, a pull request or an execution is red. Prints at most 40 lines: the failures by
cause, new failures first, each with its verdict and the reason, the time since when it fails, its owner, its bug, and the
commit that broke its test, if one is proven.

  --branch NAME           a branch (default: the default branch of the project)
  --pull-request NUMBER   a pull or merge request, in place of a branch
  --execution ID          one execution of the server, in place of a branch
  --json                  one line of JSON: { red, headline, state, execution, failures, running }

Required: ASSAY_URL, ASSAY_PROJECT and ASSAY_KEY; a named key of scope "read" is enough. Colours are printed only on a
terminal, and not if NO_COLOR is set.

Exit code: 0 if the result is not red, 1 if it is red, 2 for wrong usage, 3 if the server is unavailable, refuses the key or
has no such execution.`;

/** The number of causes that are asked for; fewer may fit. */
const MAX_CAUSES = 12;
const RED_CODE = 1;
const NO_ANSWER_CODE = 3;
const PATIENCE = { waitsMs: [500, 2_000], withinMs: 15_000 };
const DEFAULT_COLUMNS = 160;

/** The server has refused the request. */
class RefusedError extends Error {
  override name = "RefusedError";
}

/** Throws UsageError. */
function readQuery(values: Record<string, string>): WhyQuery {
  const given = (name: string) => values[name]?.trim() || undefined;
  const query = {
    branch: given("branch"),
    pullRequest: given("pull-request"),
    executionId: given("execution"),
  };
  if (Object.values(query).filter((value) => value !== undefined).length > 1)
    throw new UsageError("why takes one of --branch, --pull-request and --execution");
  return query;
}

const createGet =
  (address: ServerAddress): ProjectApi["get"] =>
  async <T>(path: string, query: QueryValues = {}): Promise<T> => {
    const given = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    );
    const search = new URLSearchParams(given).toString();
    const answer = await askPatiently(address, { path: search === "" ? path : `${path}?${search}` }, PATIENCE);
    if (answer.status !== 200) throw new RefusedError(messageOf(answer));
    return JSON.parse(answer.text) as T;
  };

/** Answers the exit code. Throws UsageError. */
export async function why(args: string[], invocation: Invocation): Promise<number> {
  const { environment, print, say } = invocation;
  const { values, json } = parseOptions(args, ["branch", "pull-request", "execution"]);
  const query = readQuery(values);
  const address = readServerAddress(environment);
  try {
    const found = await findWhy({ get: createGet(address) }, withPath(query), MAX_CAUSES);
    print(json ? toJsonLine(toJson(found)) : toText(found, invocation));
    return found.execution === null ? NO_ANSWER_CODE : isRed(found) ? RED_CODE : 0;
  } catch (error) {
    // The answers of other servers, and the pages of proxies, are not a result.
    const isUnreadable = error instanceof TypeError || error instanceof SyntaxError;
    if (!(isUnreadable || error instanceof ServerAwayError || error instanceof RefusedError)) throw error;
    const message = isUnreadable
      ? `Cannot read the answer of ${shown(address)} (${error.message}): check ASSAY_URL`
      : error.message;
    if (json) print(toJsonLine({ error: { message } }));
    else say(message);
    return NO_ANSWER_CODE;
  }
}

/** The id is a part of paths. */
const withPath = ({ executionId, ...query }: WhyQuery): WhyQuery => ({
  ...query,
  executionId: executionId && encodeURIComponent(executionId),
});

const toJson = (found: Why) => ({ red: isRed(found), headline: found.failures?.headline ?? null, ...found });

function toText(found: Why, { environment, stdout: { isTerminal, columns } }: Invocation): string {
  const hasColours = isTerminal && !environment["NO_COLOR"];
  return whyLines(found, { hasColours, columns: columns || DEFAULT_COLUMNS }).join("\n");
}
