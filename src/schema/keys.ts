/** API keys as they may be shown. */

import * as v from "valibot";
import { time, uuid } from "./fields.ts";

/** A key as it may be shown: everything but the key. */
export const apiKey = v.strictObject({
  id: uuid,
  kind: v.picklist(["project", "team"]),
  name: v.nullable(v.string()),
  projectId: v.nullable(uuid),
  leading: v.string(),
  createdAt: time,
  lastUsedAt: v.nullable(time),
  revokedAt: v.nullable(time),
});

export type ApiKey = v.InferOutput<typeof apiKey>;
