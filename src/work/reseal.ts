/** After a change of SECRET_KEY: seals with the new key what the old one has sealed. It may be interrupted at any time. */

import type { Seal } from "../seal.ts";
import type { Database } from "../store/connect.ts";
import { lockSealedOtherwise, updateSealed } from "../store/environments.ts";

const BATCH = 100;

/** How many values were sealed anew; several servers may do this at once. */
export async function reseal({ begin }: Pick<Database, "begin">, seal: Seal): Promise<number> {
  for (let count = 0; ;) {
    const done = await begin(async (sql) => {
      const rows = await lockSealedOtherwise(sql, seal.keyName, BATCH);
      for (const row of rows) {
        const place = ["variable", row.teamId, row.environmentId, row.name];
        await updateSealed(sql, { ...row, sealed: seal.seal(place, seal.open(place, row.sealed)) });
      }
      return rows.length;
    });
    if (done === 0) return count;
    count += done;
  }
}
