/** `assay doctor` beside a server with the built-in PostgreSQL. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { createFolder, run, startProgram } from "../../commands.ts";
import { until } from "../../harness.ts";

test("a sound installation is checked beside its server, which goes on, and without one", async () => {
  const own = { DATA_DIR: join(createFolder(), "data"), HOST: "127.0.0.1" };
  const cwd = join(import.meta.dir, "../../..");
  const server = startProgram(["start"], { cwd, env: { ...own, PORT: "0", LOG_LEVEL: "info" } });
  const portOf = () => /"message":"Assay is ready","url":"http:\/\/[^"]+:(\d+)"/.exec(server.output())?.[1];
  await until(() => portOf() !== undefined || server.child.exitCode !== null);
  const env = { ...own, PORT: portOf()!, PUBLIC_URL: "http://localhost:8080" };
  const { code, output } = await run(["doctor"], { env });
  expect([code, output]).toEqual([0, expect.stringMatching(/^\d+ ok, 0 warnings, 0 failures$/m)]);
  expect(output).toContain(`ok    server         A server of version ${packageJson.version} answers at`);
  server.signal("SIGTERM");
  expect((await server.ended).code).toBe(0);
  // Without a server PostgreSQL is started for the checks, and stopped afterwards.
  const after = await run(["doctor"], { env });
  expect([after.code, after.output]).toEqual([0, expect.stringContaining("warn  server         No server answers at")]);
});
