/** Requests below one address with one key, and uploads to a project. */

import { expect } from "bun:test";
import { type Answer, type Ask, junit } from "./harness.ts";

export type Project = { project: string; key: string };
/** `a=1&b=2`, or the same by name. */
export type Query = string | Record<string, string>;

type AskServer = (target: string, ask?: Ask) => Promise<Answer>;
type Headers = Record<string, string>;

function expectSuccess({ status, body }: Answer): void {
  // The error first: its message says more than the status.
  expect(body?.error).toBeUndefined();
  expect(status).toBeLessThan(300);
}

/** `path` is relative to `base`, such as "/projects/…". Except by `call`, answers that are no success fail the test. */
export function createRequests(ask: AskServer, base: string, key: string) {
  const call = (method: string, path: string, body?: unknown, headers?: Headers): Promise<Answer> =>
    ask(`${method} ${base}${path}`, {
      ...{ key, ...(headers && { headers }), ...(body === undefined ? {} : { body }) },
    });

  /** Returns the body of a success. */
  async function succeed(method: string, path: string, body?: unknown): Promise<any> {
    const answer = await call(method, path, body);
    expectSuccess(answer);
    return answer.body;
  }

  return {
    call,
    get: (path: string) => succeed("GET", path),
    post: (path: string, body?: unknown) => succeed("POST", path, body),
    patch: (path: string, body: unknown) => succeed("PATCH", path, body),
    /** The rows of a list. */
    list: async (path: string): Promise<any[]> => (await succeed("GET", path)).data,
    /** The rows of all pages of a list. */
    async walk(path: string): Promise<any[]> {
      const rows: any[] = [];
      for (let cursor = "", more = true; more;) {
        const page = await succeed("GET", `${path}${cursor && (path.includes("?") ? "&" : "?")}${cursor}`);
        rows.push(...page.data);
        more = page.pagination.hasMore;
        cursor = `cursor=${page.pagination.cursor}`;
      }
      return rows;
    },
  };
}

/** `path` is relative to the project: "/test-cases?limit=1". `taskSlug` is the task of uploads whose query names none. */
export function createAsking(ask: AskServer, { project, key }: Project, taskSlug = "t") {
  const requests = createRequests(ask, `/projects/${project}`, key);

  /** Uploads a report as it is. */
  const send = (report: unknown, query: Query = {}, headers?: Headers): Promise<Answer> => {
    const parameters = new URLSearchParams(query);
    if (!parameters.has("task_slug")) parameters.set("task_slug", taskSlug);
    return requests.call("POST", `/test-runs?${parameters}`, report, headers);
  };

  /** Uploads a report, as it is, and returns the run. */
  async function uploadReport(report: unknown, query: Query = {}): Promise<any> {
    const answer = await send(report, query);
    expectSuccess(answer);
    return answer.body;
  }

  return {
    ...{ project, key, ...requests, send, uploadReport },
    /** Uploads a JUnit report, a letter per case as `junit` takes them, and returns the run. */
    upload: (letters: string, query: Query = {}, suite?: string): Promise<any> =>
      uploadReport(junit(letters, suite), query),
  };
}

/** The requests of one project. */
export type Asking = ReturnType<typeof createAsking>;

/** The lists of a run or an execution that are not empty, each with its number of failures. */
export const filledLists = ({ counts }: { counts: Record<string, number> }): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
