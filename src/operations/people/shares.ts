/** Links and badges of a project for anyone who has their address: creates, revokes and finds them. */

import type { NewShare, Share, SharedTarget, ShareKind } from "../../schema/shares.ts";
import { refuseAbsent } from "../../schema/refusal.ts";
import { createLinkToken, isLinkToken, tokenDigest } from "../../secrets/tokens.ts";
import { insertAuditEntry } from "../../store/audit.ts";
import type { Database } from "../../database/connect.ts";
import { deleteShare, insertShare, selectShare, selectSharedTarget } from "../../store/shares.ts";
import { type Person, requireRole } from "./audit.ts";

type Begin = Pick<Database, "begin">;
/** The project, as it is called now. */
type Place = { teamId: string; id: string; name: string };

/** The name of a share in the audit log. */
function subjectOf({ name }: Place, { kind, executionId, executionKey, branch, shows }: Share): string {
  if (kind === "execution") return `${name}: link to execution ${executionKey ?? executionId}`;
  return kind === "project"
    ? `${name}: link to the project`
    : `${name}: badge of ${shows} on ${branch ?? "the default branch"}`;
}

/** Creates a share for a member. The token is part of the address, which is shown once. */
export async function createShare(
  { begin }: Begin,
  person: Person,
  place: Place,
  what: NewShare,
): Promise<{ share: Share; token: string }> {
  return await begin(async (sql) => {
    const actor = await requireRole(sql, person, place.teamId, "member");
    const { token, digest } = createLinkToken();
    const id = Bun.randomUUIDv7();
    if (!(await insertShare(sql, place.id, { id, digest, createdBy: person.accountId }, what))) refuseAbsent();
    const share = (await selectShare(sql, place.id, id))!;
    const details = { kind: what.kind, projectId: place.id };
    await insertAuditEntry(sql, place.teamId, actor, {
      action: "share.created",
      subject: subjectOf(place, share),
      details,
    });
    return { share, token };
  });
}

/** Revokes a share for a member. Its address is invalid from the commit on. */
export async function revokeShare({ begin }: Begin, person: Person, place: Place, id: string): Promise<void> {
  await begin(async (sql) => {
    const actor = await requireRole(sql, person, place.teamId, "member");
    const share = (await selectShare(sql, place.id, id)) ?? refuseAbsent();
    if (!(await deleteShare(sql, place.id, id))) refuseAbsent();
    const details = { kind: share.kind, projectId: place.id };
    await insertAuditEntry(sql, place.teamId, actor, {
      action: "share.revoked",
      subject: subjectOf(place, share),
      details,
    });
  });
}

/** Undefined where the token is none of these kinds: it was revoked, or never was one. */
export const findShared = async (
  { fast }: Pick<Database, "fast">,
  token: string,
  kinds: readonly ShareKind[],
): Promise<SharedTarget | undefined> =>
  isLinkToken(token) ? await selectSharedTarget(fast, tokenDigest(token), kinds) : undefined;
