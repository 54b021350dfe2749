/** The addresses of pages. */

import type { Path } from "../../http/html.ts";

export const executionPath = (projectId: string, id: string): Path => `/projects/${projectId}/executions/${id}`;

/** Browsers resolve a segment of only dots as a relative path, so a task of such a name has no page. */
export const taskPath = (projectId: string, executionId: string, slug: string): Path =>
  /^\.{1,2}$/.test(slug)
    ? executionPath(projectId, executionId)
    : `${executionPath(projectId, executionId)}/tasks/${encodeURIComponent(slug)}`;

export const testPath = (projectId: string, id: string): Path => `/projects/${projectId}/tests/${id}`;

export const bugPath = (projectId: string, id: string): Path => `/projects/${projectId}/bugs/${id}`;

export const attachmentPath = (projectId: string, id: string): Path => `/projects/${projectId}/attachments/${id}`;

type Query = Record<string, string | undefined>;

/** Appends a query to a path. Undefined and empty values are left out. */
export const toQuery = (query: Query): string =>
  String(new URLSearchParams(Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))));

export function toAddress(path: Path, query: Query): Path {
  const text = toQuery(query);
  return text === "" ? path : `${path}?${text}`;
}
