/** API keys as they may be shown. */

import * as v from "valibot";
import { described, integer, text, time, uuid } from "./fields.ts";
import { listPage, pageQuery } from "./page.ts";

/** The scopes of named keys. `read`: every GET; `upload`: read and report; `run`: upload and run tasks; `triage`: read and triage. */
const SCOPES = ["read", "upload", "run", "triage"] as const;
export type NamedScope = (typeof SCOPES)[number];
/** `runner`: of one runner, for its tasks and their reports. */
export type Scope = NamedScope | "runner";

export const namedScope = v.picklist(SCOPES, `expected ${SCOPES.map((scope) => `"${scope}"`).join(", ")}`);
const MAX_DAYS = 3_650;
export const keyName = text(200);
export const keyDays = integer(1, MAX_DAYS);

/** A key as it may be shown: everything but the key. */
export const apiKey = v.strictObject({
  id: uuid,
  kind: v.picklist(["project", "team"]),
  scope: v.nullable(v.picklist([...SCOPES, "runner"])),
  name: v.nullable(v.string()),
  projectId: v.nullable(uuid),
  leading: v.string(),
  createdAt: time,
  lastUsedAt: v.nullable(time),
  expiresAt: v.nullable(time),
  revokedAt: v.nullable(time),
});

export type ApiKey = v.InferOutput<typeof apiKey>;

const SCOPE_MEANING =
  "The permissions of the key. read: every GET; upload: read, and upload test runs; run: upload, and run tasks as " +
  "a runner; triage: read, and change test cases and bug reports, and rerun executions";

const named = {
  id: described(uuid, "The id of the key"),
  name: described(v.string(), "The name of the key", "nightly e2e"),
  scope: described(v.picklist(SCOPES), SCOPE_MEANING, "upload"),
  leading: described(v.string(), "The first characters of the key, which identify it", "svc_proj_Ab3dE6gH"),
  createdAt: described(time, "When it was created"),
  lastUsedAt: described(v.nullable(time), "When it was last used, to within five minutes"),
  expiresAt: described(v.nullable(time), "When it expires; null: never"),
};

export const namedKey = v.strictObject(named);
export type NamedKey = v.InferOutput<typeof namedKey>;
export const namedKeyPage = listPage(namedKey);
export const namedKeyFilter = v.strictObject(pageQuery);

const secret = described(
  v.nullable(v.string()),
  "The key, which is shown only once; null: the request repeats one that was answered before",
  "svc_proj_Ab3dE6gH…",
);
export const newNamedKey = v.strictObject({
  name: described(keyName, "The name of the key", "nightly e2e"),
  scope: described(namedScope, SCOPE_MEANING, "upload"),
  expiresInDays: described(v.optional(keyDays), "The number of days until it expires. Default: never", 90),
});
export type NewNamedKey = v.InferOutput<typeof newNamedKey>;
export const generatedNamedKey = v.strictObject({ ...named, key: secret });

export const newRunner = v.strictObject({
  runner: described(text(200), "The name of the runner, unique for each process", "build-3/1"),
  version: described(v.optional(text(50)), "The version of the runner", "1.4.0"),
  unique: described(
    v.optional(v.boolean("expected true or false"), false),
    "Whether the runner gets another name, such as build-3/1 (2), if a runner with this name is online: true for a process that starts",
    true,
  ),
});
export const registeredRunner = v.strictObject({
  runner: described(v.string(), "Its name, which the server has made unique if it was asked to", "build-3/1"),
  id: described(uuid, "The id of the runner's key"),
  key: secret,
});
