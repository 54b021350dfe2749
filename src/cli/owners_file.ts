/** Sends the ownership file of the repository with an upload from the default branch. */

import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import type { CiSystemName } from "../rules/ci_systems.ts";
import { askGit } from "./ci.ts";
import { ask, messageOf, type ServerAddress } from "./client.ts";
import type { BuildContext } from "./invocation.ts";

/** The paths that GitHub and GitLab look at, in their order. */
const PLACES = [".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"];
const GITLAB_PLACES = ["CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"];

/** Servers refuse larger files. */
const MAX_BYTES = 524_288;
const TIMEOUT_MS = 10_000;

type RepositoryOwners = { path: string; text: string; syntax: "github" | "gitlab" | undefined };

/** Undefined where the repository has none. A link is not followed: it may lead out of the repository. */
export function findOwnersFile(system: CiSystemName | undefined, root: string): RepositoryOwners | undefined {
  for (const path of system === "gitlab" ? GITLAB_PLACES : PLACES) {
    const stat = lstatSync(join(root, path), { throwIfNoEntry: false });
    if (!stat?.isFile() || stat.size > MAX_BYTES) continue;
    const syntax =
      path.startsWith(".gitlab/") || system === "gitlab"
        ? "gitlab"
        : path.startsWith(".github/")
          ? "github"
          : undefined;
    return { path, text: readFileSync(join(root, path), "utf8"), syntax };
  }
  return undefined;
}

/** What decides whether the file is sent: where the upload comes from, as its parameters say. */
type OwnersOrigin = {
  system: CiSystemName | undefined;
  branch: string | undefined;
  commit: string | undefined;
  pullRequest: string | undefined;
  /** `"2/4"`: only the first shard sends the file. */
  shard: string | undefined;
  /** The default branch as the CI system names it; where it does not, the server decides. */
  defaultBranch: string | undefined;
};

const isSent = ({ branch, pullRequest, shard, defaultBranch }: Omit<OwnersOrigin, "system">): boolean =>
  branch !== undefined &&
  pullRequest === undefined &&
  (shard === undefined || shard.startsWith("1/")) &&
  (defaultBranch === undefined || branch === defaultBranch);

const answer = v.object({ stored: v.boolean(), warnings: v.array(v.string()) });

/**
 * Sends at most one request; the server compares the file with the stored one. Returns a line to print, or none if nothing changed. Never
 * throws for an answer of the server, because an ownership file must not fail an upload.
 */
export async function sendOwnersFile(
  address: ServerAddress,
  { system, ...origin }: OwnersOrigin,
  context: BuildContext,
): Promise<string[]> {
  if (!isSent(origin)) return [];
  try {
    const file = findOwnersFile(system, askGit(context, "rev-parse", "--show-toplevel") ?? context.directory);
    if (!file) return [];
    const { path, text, syntax } = file;
    const given = { path, branch: origin.branch, commit: origin.commit, syntax };
    const known = Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const sent = await ask(address, {
      method: "PUT",
      path: `/owners?${new URLSearchParams(known)}`,
      headers: { "Content-Type": "text/plain" },
      body: text,
      timeoutMs: TIMEOUT_MS,
    });
    if (sent.status !== 200) return [`Cannot send ${path}: ${messageOf(sent)}`];
    const { stored, warnings } = v.parse(answer, JSON.parse(sent.text));
    if (!stored) return [];
    return [`Owners of tests are by ${path} now`, ...warnings.map((warning) => `${path}: ${warning}`).slice(0, 10)];
  } catch (error) {
    return [`Cannot send the ownership file: ${(error as Error).message}`];
  }
}
