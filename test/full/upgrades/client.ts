/** A client of a server: its API with both keys, its forms with a session. */

import { PASSWORD, type Access } from "./dump.ts";

type Reached = Pick<Access, "team" | "project" | "projectKey" | "teamKey">;

export function createClient(url: string, { team, project, projectKey, teamKey }: Reached) {
  const api = `${url}/api/v1`;

  async function call(method: string, path: string, key: string, body?: unknown, headers = {}): Promise<any> {
    const isRaw = typeof body === "string" || body instanceof FormData;
    const response = await fetch(`${api}${path}`, {
      ...{ method, headers: { authorization: `Bearer ${key}`, ...headers } },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  const cookieOf = (response: Response): string =>
    response.headers
      .getSetCookie()
      .map((cookie) => cookie.split(";")[0])
      .join("; ");

  /** Opens a page and sends a form of it; returns the answer. */
  async function send(cookie: string, page: string, action: string, fields: Record<string, string>): Promise<Response> {
    const opened = await fetch(`${url}${page}`, { headers: { cookie }, redirect: "manual" });
    const csrf = /name="csrf" value="([^"]*)"/.exec(await opened.text())?.[1];
    if (csrf === undefined) throw new Error(`${page} answered ${opened.status} without a form`);
    const cookies = [cookie, cookieOf(opened)].filter((text) => text !== "").join("; ");
    return await fetch(`${url}${action}`, {
      method: "POST",
      headers: { cookie: cookies, origin: url },
      body: new URLSearchParams({ csrf, ...fields }),
      redirect: "manual",
    });
  }

  return {
    project: (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      call(method, `/projects/${project}${path}`, projectKey, body, headers),
    team: (method: string, path: string, body?: unknown) => call(method, `/teams/${team}${path}`, teamKey, body),
    upload: (query: Record<string, string>, report: string | FormData) =>
      call("POST", `/projects/${project}/test-runs?${new URLSearchParams(query)}`, projectKey, report),
    /** Returns the cookie of a new session. */
    async signIn(email: string): Promise<string> {
      const response = await send("", "/login", "/login", { email, password: PASSWORD });
      if (response.status !== 303) throw new Error(`POST /login answered ${response.status}`);
      return cookieOf(response);
    },
    /** Returns the page after a form; throws an Error if the server refuses the form. */
    async submit(cookie: string, page: string, action: string, fields: Record<string, string>): Promise<string> {
      const response = await send(cookie, page, action, fields);
      const text = await response.text();
      if (response.status >= 400) throw new Error(`POST ${action} answered ${response.status}: ${text}`);
      return text;
    },
  };
}
