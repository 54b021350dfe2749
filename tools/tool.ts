/** What the tools of this folder have in common when they are called. */

/** Runs a tool: `--help` prints its usage, and an error is one line and exit code 1. */
export async function runTool(usage: string, work: () => Promise<void>): Promise<void> {
  if (process.argv.includes("--help")) return console.log(usage);
  try {
    await work();
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}
