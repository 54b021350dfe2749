/** A real S3 server on this machine, which can be stopped and started again at its address. */

import { afterAll } from "bun:test";
import S3rver from "@20minutes/s3rver";
import type { S3Settings } from "../src/attachments/s3_store.ts";
import { createPlace } from "./places.ts";

export const BUCKET = "assay-test";

/** `settings` lead to it. */
export async function createS3() {
  const directory = createPlace("s3");
  const start = async (port: number) => {
    const server = new S3rver({
      port,
      address: "127.0.0.1",
      silent: true,
      directory,
      configureBuckets: [{ name: BUCKET }],
    });
    return { server, port: (await server.run()).port };
  };
  let { server, port } = await start(0);
  let isRunning = true;

  async function stop(): Promise<void> {
    if (!isRunning) return;
    isRunning = false;
    await server.close();
  }
  afterAll(stop);

  const settings: S3Settings = {
    bucket: BUCKET,
    prefix: "attachments/of/assay",
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    accessKeyId: "S3RVER",
    secretAccessKey: "S3RVER",
    sessionToken: undefined,
    presign: false,
  };
  return {
    settings,
    directory,
    stop,
    async restart(): Promise<void> {
      ({ server, port } = await start(port));
      isRunning = true;
    },
  };
}
