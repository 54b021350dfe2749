/** Whether requests should come here: reads and writes get through to a database that has our schema. */

import type { Database } from "./connect.ts";
import { selectIsWritable, selectSchemaVersion } from "./instance.ts";

const PATIENCE_MS = 2_000;

/** One look at a time, for all who ask meanwhile: anybody may ask, as often as he likes. */
export function createReadiness({ fast, begin }: Pick<Database, "fast" | "begin">, version: number) {
  let looking: Promise<boolean> | undefined;

  async function look(): Promise<boolean> {
    const [schema, writable] = await Promise.all([selectSchemaVersion(fast), begin(selectIsWritable)]);
    return schema >= version && writable;
  }

  return (): Promise<boolean> =>
    (looking ??= Promise.race([look().catch(() => false), Bun.sleep(PATIENCE_MS).then(() => false)]).finally(
      () => (looking = undefined),
    ));
}
