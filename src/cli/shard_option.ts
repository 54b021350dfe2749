/** The option --shard, apart from other options: it needs the schemas, which take longer to load than a help text to print. */

import * as v from "valibot";
import { type Shard, shard } from "../schema/fields.ts";
import { UsageError } from "./usage.ts";

/** Throws UsageError. */
export function readShard(given: string): Shard {
  const parsed = v.safeParse(shard, given);
  if (!parsed.success) throw new UsageError(`--shard: ${parsed.issues[0].message}, got "${given}"`);
  return parsed.output;
}
