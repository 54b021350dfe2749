/** Decides whether the id token of a CI job is one that a project trusts. */

import type { TrustKind, TrustRule } from "../schema/trust_rules.ts";

/** Claims of a token whose signature has been verified. */
export type Claims = Readonly<Record<string, unknown>>;

/** The names of the claims in the tokens of each CI system. */
const CLAIM_NAMES = {
  github: { repositoryId: "repository_id", event: "event_name", ref: "ref" },
  gitlab: { repositoryId: "project_id", event: "pipeline_source", ref: "ref_path" },
} as const satisfies Record<TrustKind, object>;

const MAX_SHOWN = 200;

/** Returns the claim as a text; undefined if there is none. GitLab has written ids as numbers, too. */
function claimOf(claims: Claims, name: string): string | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  return typeof value === "string" ? value : undefined;
}

const shown = (value: string | undefined): string =>
  value === undefined ? "missing" : JSON.stringify(value.slice(0, MAX_SHOWN).toWellFormed());
const named = (claims: Claims, name: string): string => `${name} ${shown(claimOf(claims, name))}`;

/**
 * Returns the claims that rules are compared with, for a message to the owner of the token: `repository_id "1", …`. It only depends on the
 * token.
 */
export function describeClaims(claims: Claims): string {
  const names =
    claimOf(claims, "repository_id") === undefined && claimOf(claims, "project_id") !== undefined
      ? ["project_id", "job_project_id", "pipeline_source", "ref_path"]
      : ["repository_id", "repository_owner_id", "event_name", "ref"];
  const [project, jobProject] = [claimOf(claims, "project_id"), claimOf(claims, "job_project_id")];
  const isFork = project !== undefined && jobProject !== undefined && project !== jobProject;
  const list = names.map((name) => named(claims, name)).join(", ");
  return isFork ? `${list} (the merge request of a fork, which is not trusted)` : list;
}

/** Returns whether the token is one of the rule's repository. The claim `sub` is not read: its form is a setting. */
export function isOfRepository({ kind, repositoryId, ownerId }: TrustRule, claims: Claims): boolean {
  if (claimOf(claims, CLAIM_NAMES[kind].repositoryId) !== repositoryId) return false;
  // In the pipeline of a fork's merge request "project_id" names the fork, and "job_project_id" the project that runs it.
  const [other, expected] =
    kind === "github" ? (["repository_owner_id", ownerId] as const) : (["job_project_id", repositoryId] as const);
  return claimOf(claims, other) === expected;
}

/** Why a rule for the token's repository does not accept the token; undefined: it does. */
export function explainRefusal({ kind, events, refs }: TrustRule, claims: Claims): string | undefined {
  const names = CLAIM_NAMES[kind];
  const [event, ref] = [claimOf(claims, names.event), claimOf(claims, names.ref)];
  if (events.length > 0 && !(event !== undefined && events.includes(event)))
    return `its claim ${named(claims, names.event)} is not one of ${events.join(", ")}`;
  if (refs.length > 0 && !(ref !== undefined && refs.some((pattern) => matchesPattern(pattern, ref))))
    return `its claim ${named(claims, names.ref)} matches none of ${refs.join(", ")}`;
  return undefined;
}

/** Returns whether the pattern matches the whole text; "*" stands for any text. Takes linear time. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first, ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return pattern === text;
  if (!text.startsWith(first!) || text.length < first!.length + last.length || !text.endsWith(last)) return false;
  let at = first!.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}
