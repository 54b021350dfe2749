/** The server and the commands of a checkout as programs of their own. */

import { databaseVariables, SECRET_KEY } from "../../harness.ts";
import { followOutput, guardProcess, readOutput } from "../../places.ts";

type Options = { source: string; connection: Record<string, unknown>; dataDir: string };

export const toKeyText = (key: Uint8Array): string => Buffer.from(key).toString("base64");

const toEnvironment = ({ connection, dataDir }: Options, variables: Record<string, string>) => ({
  ...process.env,
  ...databaseVariables(connection),
  ...{ PUBLIC_URL: "", DATA_DIR: dataDir, PORT: "0", LOG_LEVEL: "info", RATE_LIMIT_PER_MINUTE: "0" },
  ...{ SECRET_KEY: toKeyText(SECRET_KEY), SECRET_KEY_OLD: "" },
  ...variables,
});

/** Resolves when the server accepts requests. */
export async function startProgram(options: Options, variables: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, "src/main.ts"], {
    ...{ cwd: options.source, env: toEnvironment(options, variables) },
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  guardProcess(child);
  const { url, output } = followOutput(child, (text) => /"message":"Assay is ready","url":"([^"]+)"/.exec(text)?.[1]);
  return {
    url: await url,
    /** Everything that it has logged. */
    output,
    /** Returns the exit code. */
    async stop(): Promise<number> {
      child.kill("SIGTERM");
      return await child.exited;
    },
  };
}

export async function runCommand(options: Options, args: readonly string[]) {
  const child = Bun.spawn([process.execPath, "src/cli/assay.ts", ...args], {
    ...{ cwd: options.source, env: toEnvironment(options, {}), stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  return await readOutput(child);
}
