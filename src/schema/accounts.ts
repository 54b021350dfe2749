/** Accounts: who signs in to the dashboard, and what he may do in his teams. */

import * as v from "valibot";

/** viewer: reads; member: triage, quarantine, rerun, the keys of projects; owner: members, team keys, integrations. */
export const ROLES = ["viewer", "member", "owner"] as const;
export const role = v.picklist(ROLES, `expected "viewer", "member" or "owner"`);
export type Role = v.InferOutput<typeof role>;
