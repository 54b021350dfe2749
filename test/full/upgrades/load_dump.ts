/** Loads the dump of a release into a database of its own, whose user is its owner and nothing more. */

import { connect, type ConnectionOptions } from "../../../src/database/connect.ts";
import { createBareDatabase } from "../../harness.ts";
import type { Dump } from "./dump.ts";

export async function loadDump({ sql }: Pick<Dump, "sql">): ReturnType<typeof createBareDatabase> {
  const bare = await createBareDatabase();
  // A dump changes settings of its session.
  const session = connect(bare.connection as ConnectionOptions, 1);
  await session.pool.unsafe(sql).simple();
  await session.close();
  return bare;
}
