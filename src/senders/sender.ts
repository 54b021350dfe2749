/** The interface of every sender: the actions of an integration, and their outcome. */

import type { Outbound, OutboundAnswer, OutboundRequest } from "../http/outbound.ts";
import type { ConfigOf, IntegrationAction, Kind } from "../schema/integration_configs.ts";
import type { Annotation } from "../schema/pull_requests.ts";
import type { LinkedLine, Notification } from "../schema/notifications.ts";

/** Options of an automation's action besides the notification. The action determines which are present. */
export type ActionOptions = {
  /** Only for a commit status. */
  context?: string | undefined;
  /** Only for an issue; null or undefined: the labels of the integration. */
  labels?: readonly string[] | undefined;
  /** Only for a pipeline, as are `ref` and `inputs`. */
  workflow?: string | undefined;
  ref?: string | undefined;
  inputs?: Readonly<Record<string, string>> | undefined;
  /** The execution that the results belong to. `waits`: it was created for them, so a pipeline that cannot receive its id is useless. */
  execution?: { projectId: string; id: string; waits: boolean } | undefined;
};

/** The comment on a pull request that a message becomes. */
export type CommentJob = {
  /** The id of the comment at the code host. Null: it is not known, or there is no comment yet. */
  id: string | null;
  /** When it was first requested, in ISO 8601; null: there can be no comment yet. */
  since: string | null;
  /** The beginning of its body, which no other comment of the author has. */
  marker: string;
  body: string;
  /** The comment belongs to the merged pull request that contains this commit. Undefined: to that of the notification. */
  mergedCommit?: string;
};

export type Job = {
  /** The delivery's; the same at every attempt. */
  id: string;
  /** Whether an earlier attempt may have arrived. */
  isRetry?: boolean;
  comment?: CommentJob | undefined;
  /** The annotations of a check run. */
  annotations?: readonly Annotation[] | undefined;
  action: IntegrationAction;
  options: ActionOptions;
  notice: Notification;
  now: Date;
};

/** `gone`: the receiver wants no more deliveries. `link`: the page of the created object. `commentId`: only for a comment. */
export type Outcome =
  | { status: "sent"; link?: string; commentId?: string }
  | { status: "retry"; error: string; afterMs?: number }
  | { status: "refused" | "gone"; error: string }
  /** The receiver has answered that there is nothing to do, which is no failure. */
  | { status: "inapplicable"; error: string };

/** The answer of a receiver that is not asked by HTTP, for the record of the delivery. */
export type Answered = Outcome & { answer?: { status: number; text: string } };

export type Sender<K extends Kind> = {
  actions: readonly IntegrationAction[];
  /** The action of a test message. */
  sample: IntegrationAction;
  /**
   * Returns the key of the external state that a job sets, if any. Of two jobs with the same key only the newer is worth sending: a retry
   * of the older one would overwrite it.
   */
  stateOf?(job: Pick<Job, "action" | "options" | "notice">): string | undefined;
  /** Returns further forms of the secrets that the receiver gets, and may send back. */
  secretsOf?(config: ConfigOf<K>): string[];
  /** Throws OutboundError when there is no answer. */
  send(http: Outbound, config: ConfigOf<K>, job: Job): Promise<Answered>;
};

/** Adds the page of the created object, if the answer has one. */
export const withLink = (outcome: Outcome, link: string | undefined): Outcome =>
  outcome.status === "sent" && link !== undefined ? { ...outcome, link } : outcome;

/** Whether a message becomes a comment on the pull request that brought a commit, and not on that of an execution. */
export const isAboutCulprit = ({ type }: Pick<Notification, "type">): boolean => type === "bug_report.culprit_found";

/**
 * Returns the key that messages about one comment share, of which the newest supersedes the others: one per execution, because a comment of
 * an older commit must not replace one of a newer commit, or one per bug.
 */
export const commentKey = (notice: Notification): string => {
  const { pullRequest, data } = notice;
  const subject = isAboutCulprit(notice)
    ? `culprit ${textAt(data, "bugReport", "id")}`
    : `${pullRequest} ${textAt(data, "execution", "id")}`;
  return `comment ${subject} ${textAt(data, "project", "id")}`;
};

/** Adds the id of the written comment, to be stored. */
export function withComment(outcome: Outcome, id: unknown): Outcome {
  if (outcome.status !== "sent") return outcome;
  return typeof id === "number" || typeof id === "string" ? { ...outcome, commentId: String(id) } : outcome;
}

export const postJson = (url: string, headers: Record<string, string>, body: unknown): OutboundRequest => ({
  method: "POST",
  url,
  headers: { "Content-Type": "application/json", ...headers },
  body: JSON.stringify(body),
});

const TRY_AGAIN = new Set([408, 425, 429]);

/** Milliseconds from now; the header is in seconds or a date. */
export function retryAfter({ headers }: OutboundAnswer, now: Date): number | undefined {
  const value = headers.get("retry-after")?.trim();
  if (!value) return undefined;
  const ms = /^\d+$/.test(value) ? Math.min(Number(value), 1e9) * 1000 : Date.parse(value) - now.getTime();
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}

/** Judges answers of services that use the status code; `says` extracts the reason from the answer. */
export function judge(
  answer: OutboundAnswer,
  ok: boolean,
  now: Date,
  says: (body: unknown) => string | undefined = sayMessage,
): Outcome {
  if (ok) return { status: "sent" };
  const reason = says(parse(answer.text));
  const error = `Answered ${answer.status}${reason ? `: ${reason}` : ""}`;
  const afterMs = retryAfter(answer, now);
  // Whatever the server or a proxy before it calls its own fault may be over the next time.
  if (answer.status >= 500 || TRY_AGAIN.has(answer.status) || (answer.status === 403 && afterMs !== undefined))
    return { status: "retry", error, ...(afterMs === undefined ? {} : { afterMs }) };
  if (answer.status >= 300 && answer.status < 400)
    return { status: "refused", error: `Answered ${answer.status}: redirects are not followed` };
  return { status: "refused", error };
}

/** Undefined when it is no JSON. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the value at a path of an untrusted answer, or undefined. */
export function at(body: unknown, ...path: (string | number)[]): unknown {
  let value = body;
  for (const name of path)
    value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  return value;
}

export const textAt = (body: unknown, ...path: (string | number)[]): string | undefined => {
  const value = at(body, ...path);
  return typeof value === "string" ? value : undefined;
};

export const listAt = (body: unknown, ...path: (string | number)[]): unknown[] => {
  const value = at(body, ...path);
  return Array.isArray(value) ? value : [];
};

/** Returns the message and the details of an error. */
function sayMessage(body: unknown): string | undefined {
  const said = [at(body, "message") ?? at(body, "error"), at(body, "errors")].filter((part) => part != null);
  return said.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(": ") || undefined;
}

/** Truncates to `max` UTF-16 units, with an ellipsis. */
export function shorten(text: string, max: number): string {
  return text.length <= max
    ? text
    : `${text
        .slice(0, max - 1)
        .toWellFormed()
        .replace(/\uFFFD$/, "")}…`;
}

/** Text from reports may contain line breaks and terminal colours. */
export const oneLine = (text: string): string =>
  Bun.stripANSI(text)
    .replace(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .trim();

/** Makes an address that stands in a text no link: only ours are. */
export const unlink = (text: string): string =>
  text.replaceAll("://", ":\u200b//").replace(/\b(?:mailto:|www\.)/gi, "$&\u200b");

/** Puts lines in a fence that they cannot close, so that they contain no mention, command or link. */
function fence(lines: readonly string[]): string {
  const text = lines.map(oneLine).join("\n");
  const ticks = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  return `${ticks}\n${text}\n${ticks}`;
}

/** A code span, in which mentions and links have no effect. */
export const code = (text: string): string => `\`${oneLine(text).replaceAll("`", "'")}\``;

/** The maximum length of the line of a known bug. */
export const MAX_BUG_LINE_CHARACTERS = 400;

/** GitHub's and GitLab's Markdown, also Linear's. */
export function toMarkdown({ text, facts, lines, knownBugs = [], url, buildUrl }: Notification): string {
  const parts = [code(text), facts.map(({ name, value }) => `- ${name}: ${code(value)}`).join("\n")];
  if (lines.length > 0) parts.push(fence(lines));
  parts.push(
    knownBugs
      .map(({ text, url }) => `- [${code(shorten(text, MAX_BUG_LINE_CHARACTERS))}](<${escapeLink(url)}>)`)
      .join("\n"),
  );
  const links = [url && `[Assay](<${url}>)`, buildUrl && isHttp(buildUrl) && `[Build](<${escapeLink(buildUrl)}>)`];
  parts.push(links.filter(Boolean).join(" · "));
  return parts.filter((part) => part !== "").join("\n\n");
}

/** A commit comes from CI and becomes part of an address: the whole hash, or a good part of it. */
export const isCommitHash = (commit: string | null): commit is string =>
  commit !== null && /^[0-9a-f]{7,64}$/i.test(commit);

const escapeLink = (url: string) => url.replace(/[<>\s\\]/g, encodeURIComponent);

/** A build's address comes from CI, and may be anything. */
export const isHttp = (url: string): boolean => /^https?:\/\/[^\s]+$/i.test(url) && URL.canParse(url);

/** Lines that are links: known bugs, or those of a digest. */
export const linkedLinesOf = ({ knownBugs = [], links = [] }: Notification): readonly LinkedLine[] => [
  ...knownBugs,
  ...links,
];

/** Links to more details; `open` is the label of a button. */
export const linksOf = ({ url, buildUrl }: Pick<Notification, "url" | "buildUrl">) => [
  ...(url && isHttp(url) ? [{ name: "Assay", open: "Open in Assay", url }] : []),
  ...(buildUrl && isHttp(buildUrl) ? [{ name: "Build", open: "Open the build", url: buildUrl }] : []),
];
