/** After a change of SECRET_KEY: seals with the new key what the old one has sealed. It may be interrupted at any time. */

import { integrationPlace } from "../deliveries.ts";
import type { Seal } from "../seal.ts";
import type { Database, Sql } from "../store/connect.ts";
import { lockSealedOtherwise, updateSealed } from "../store/environments.ts";
import { always, type GoOn } from "./loop.ts";
import { lockIntegrationsSealedOtherwise, updateIntegrationSealed } from "../store/integrations.ts";

const BATCH = 100;

/** How many values were sealed anew; several servers may do this at once. */
export async function reseal({ begin }: Pick<Database, "begin">, seal: Seal, goOn: GoOn = always): Promise<number> {
  let count = 0;
  for (const resealSome of [resealVariables, resealIntegrations])
    for (let done = BATCH; done > 0 && goOn(); count += done) done = await begin((sql) => resealSome(sql, seal));
  return count;
}

const again = (seal: Seal, place: string[], sealed: Buffer): Buffer => seal.seal(place, seal.open(place, sealed));

async function resealVariables(sql: Sql, seal: Seal): Promise<number> {
  const rows = await lockSealedOtherwise(sql, seal.keyName, BATCH);
  for (const row of rows) {
    const place = ["variable", row.teamId, row.environmentId, row.name];
    await updateSealed(sql, { ...row, sealed: again(seal, place, row.sealed) });
  }
  return rows.length;
}

async function resealIntegrations(sql: Sql, seal: Seal): Promise<number> {
  const rows = await lockIntegrationsSealedOtherwise(sql, seal.keyName, BATCH);
  for (const row of rows) {
    const sealed = again(seal, integrationPlace(row.teamId, row.id), row.sealed);
    await updateIntegrationSealed(sql, { ...row, sealed });
  }
  return rows.length;
}
