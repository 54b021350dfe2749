/** What the program `assay` does as a process, whatever the command. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { createFolder, SOURCE, startProgram, variablesOf } from "../../commands.ts";
import { createHarness, junit } from "../../harness.ts";

const { acme, url } = await createHarness();
const ROOT = join(import.meta.dir, "../../..");

test("--version prints the version of package.json, also from a compiled file elsewhere", () => {
  const folder = createFolder();
  const file = join(folder, "assay");
  expect(Bun.spawnSync([process.execPath, "build", "--compile", "--outfile", file, SOURCE]).exitCode).toBe(0);
  for (const command of [[process.execPath, SOURCE], [file]]) {
    const { exitCode, stdout, stderr } = Bun.spawnSync([...command, "--version"], { cwd: folder });
    expect([exitCode, stdout.toString(), stderr.toString()]).toEqual([0, `${packageJson.version}\n`, ""]);
  }
});

test("a wrong command line is told on standard error, and the exit code is 2, also through bun run", async () => {
  const errors = `Unknown option: --port. start takes none: set variables, such as PORT and DATA_DIR\nRun "assay start --help" for usage\n`;
  expect(await startProgram(["start", "--port", "9"]).ended).toEqual({ code: 2, output: "", errors });
  const script = Bun.spawnSync([process.execPath, "run", "start", "extra"], { cwd: ROOT, env: {} });
  expect([script.exitCode, script.stderr.toString()]).toEqual([2, expect.stringContaining("Unknown option: extra.")]);
});

/** Runs the program with an output whose reader has ended before. */
async function runUnread(args: string, folder: string): Promise<number> {
  const closed = "mkfifo pipe; true < pipe & exec 3> pipe; wait";
  const child = Bun.spawn(["sh", "-c", `${closed}; exec "${process.execPath}" "${SOURCE}" ${args} >&3`], {
    ...{ cwd: folder, stdin: "ignore", stdout: "ignore", stderr: "ignore" },
    env: { PATH: process.env["PATH"]!, ...variablesOf(url, acme) },
  });
  return await child.exited;
}

test("output that nobody reads ends the program as SIGPIPE would, and an upload keeps the exit code of the tests", async () => {
  expect(await runUnread("--help", createFolder())).toBe(141);
  expect(await runUnread("split --shard 1/1 --execution-key 1 a.test.ts", createFolder())).toBe(141);
  expect(await runUnread("upload r.xml", createFolder({ "r.xml": junit("p") }))).toBe(0);
});

test("a long list is printed to a reader that ends before it", async () => {
  const day = (at: number) => new Date(Date.UTC(2026, 0, at + 1)).toISOString().slice(0, 10);
  const names = Array.from({ length: 300 }, (_, at) => `${day(at)}/${"long ".repeat(40)}.xml`);
  const folder = createFolder(Object.fromEntries(names.map((name) => [name, junit("p")])));
  const program = [process.execPath, SOURCE];
  const { stdout, stderr } = await Bun.$`${program} import ${folder} --dry-run | head -n 1`.quiet();
  expect([stdout.toString(), stderr.toString()]).toEqual([expect.stringContaining("Found 300 builds"), ""]);
});

test("a file that others write into as well keeps what is in it, also where there is nothing to print", async () => {
  const folder = createFolder({ "log.txt": "earlier\n" });
  // Of one file one of two shards has none.
  const split = (shard: string) => `"${process.execPath}" "${SOURCE}" split --fallback --shard ${shard} x.test.ts`;
  const script = `{ echo before; ${split("1/2")}; ${split("2/2")}; echo after; } >> log.txt 2> /dev/null`;
  expect(Bun.spawnSync(["sh", "-c", script], { cwd: folder, env: { PATH: process.env["PATH"]! } }).exitCode).toBe(0);
  expect(await Bun.file(join(folder, "log.txt")).text()).toBe("earlier\nbefore\nx.test.ts\nafter\n");
});
