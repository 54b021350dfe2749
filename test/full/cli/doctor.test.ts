/** `assay doctor` beside a server with the built-in PostgreSQL. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { createFolder, run } from "../../commands.ts";
import { followOutput, guardProcess } from "../../places.ts";

const ROOT = join(import.meta.dir, "../../..");

test("a sound installation is checked beside its server, which goes on, and without one", async () => {
  const own = { DATA_DIR: join(createFolder(), "data"), HOST: "127.0.0.1", PUBLIC_URL: "http://localhost:8080" };
  const free = Bun.serve({ port: 0, fetch: () => new Response() });
  const port = String(free.port);
  await free.stop(true);
  const child = Bun.spawn([process.execPath, "src/main.ts"], {
    ...{ cwd: ROOT, env: { PATH: process.env["PATH"]!, LOG_LEVEL: "info", PORT: port, ...own } },
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  guardProcess(child);
  const { url } = followOutput(child, (text) => /"message":"Assay is ready","url":"([^"]+)"/.exec(text)?.[1]);
  await url;
  const { code, output } = await run(["doctor"], { env: { ...own, PORT: port } });
  expect([code, output]).toEqual([0, expect.stringMatching(/^\d+ ok, 0 warnings, 0 failures$/m)]);
  expect(output).toContain(`ok    server         A server of version ${packageJson.version} answers at`);
  expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  child.kill("SIGTERM");
  await child.exited;
  // Without a server PostgreSQL is started for the checks, and stopped afterwards.
  const after = await run(["doctor"], { env: { ...own, PORT: port } });
  expect([after.code, after.output]).toEqual([0, expect.stringContaining("warn  server         No server answers at")]);
});
