/** Seals values of the old SECRET_KEY with the new one. It may be interrupted at any time. */

import { executionVariablesPlace, integrationPlace, variablePlace } from "../secrets/places.ts";
import type { Log } from "../log.ts";
import type { Seal } from "../secrets/seal.ts";
import type { Database, Tx } from "../database/connect.ts";
import { lockSealedOtherwise, updateSealed } from "../store/environments.ts";
import { lockExecutionsSealedOtherwise, updateExecutionSealed } from "../store/sealed_variables.ts";
import { always, type GoOn, type Item, standardLog, takeAll } from "./loop.ts";
import { lockIntegrationsSealedOtherwise, updateIntegrationSealed } from "../store/integrations.ts";

const BATCH_ROWS = 100;

type Take = (item: Item) => void;

/**
 * Returns the number of values encrypted again. Several servers may run this at once. A value that cannot be decrypted does not delay the
 * others.
 */
export async function reseal(
  { pool, begin }: Pick<Database, "pool" | "begin">,
  seal: Seal,
  goOn: GoOn = always,
  log: Log = standardLog,
): Promise<number> {
  let count = 0;
  for (const resealSome of [resealVariables, resealIntegrations, resealExecutions])
    await takeAll(
      pool,
      {
        failing: "Cannot seal a value anew",
        async next(take) {
          const done = await begin((sql) => resealSome(sql, seal, take));
          count += done;
          return done > 0;
        },
      },
      log,
      goOn,
    );
  return count;
}

const again = (seal: Seal, place: string[], sealed: Buffer): Buffer => seal.seal(place, seal.open(place, sealed));

/** All are opened before the first is written: where one cannot be, little was done in vain. */
async function resealVariables(sql: Tx, seal: Seal, take: Take): Promise<number> {
  const rows = (await lockSealedOtherwise(sql, seal.keyName, BATCH_ROWS)).map((row) => {
    const { teamId, environmentId, name } = row;
    const about = { teamId, environmentId, name };
    const item: Item = { loop: "sealing", id: `${teamId} ${environmentId} ${name}`, about };
    take(item);
    return { item, row: { ...row, sealed: again(seal, variablePlace(teamId, environmentId, name), row.sealed) } };
  });
  for (const { item, row } of rows) {
    take(item);
    await updateSealed(sql, row);
  }
  return rows.length;
}

async function resealIntegrations(sql: Tx, seal: Seal, take: Take): Promise<number> {
  const rows = (await lockIntegrationsSealedOtherwise(sql, seal.keyName, BATCH_ROWS)).map((row) => {
    const { teamId, id } = row;
    const item: Item = { loop: "sealing", id: `${teamId} ${id}`, about: { teamId, integrationId: id } };
    take(item);
    return { item, row: { ...row, sealed: again(seal, integrationPlace(teamId, id), row.sealed) } };
  });
  for (const { item, row } of rows) {
    take(item);
    await updateIntegrationSealed(sql, row);
  }
  return rows.length;
}

async function resealExecutions(sql: Tx, seal: Seal, take: Take): Promise<number> {
  const rows = (await lockExecutionsSealedOtherwise(sql, seal.keyName, BATCH_ROWS)).map((row) => {
    const { projectId, id } = row;
    const item: Item = { loop: "sealing", id: `${projectId} ${id}`, about: { projectId, executionId: id } };
    take(item);
    return { item, row: { ...row, sealed: again(seal, executionVariablesPlace(projectId), row.sealed) } };
  });
  for (const { item, row } of rows) {
    take(item);
    await updateExecutionSealed(sql, row);
  }
  return rows.length;
}
