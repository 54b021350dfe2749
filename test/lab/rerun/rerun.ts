/** Fails tests with awkward names in real test tools, runs again what a preset makes of them, and compares the reports. */

import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { readReport } from "../../../src/reports/read.ts";
import { normalizeFile, type PlacedCase } from "../../../src/rules/identity.ts";
import { LIST_VARIABLE } from "../../../src/rules/rerun_cases.ts";
import { type RerunCommand, toRerunCommand } from "../../../src/rules/rerun_command.ts";
import { createPlace, removePlace } from "../../places.ts";
import { PROJECTS, type Project } from "./projects.ts";

/** Milliseconds, for a command, and for an installation. */
const MAX_COMMAND_MS = 90_000;
const MAX_INSTALLATION_MS = 180_000;

const root = createPlace("rerun");

async function run(command: string, directory: string, ms: number, more: Record<string, string> = {}) {
  const { PATH = "", HOME = "/root" } = process.env;
  const child = Bun.spawn(["sh", "-c", command], {
    cwd: directory,
    env: { PATH, HOME, LANG: "C.UTF-8", CI: "true", npm_config_update_notifier: "false", ...more },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  // With everything that it has started.
  const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), ms);
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  clearTimeout(timer);
  return { code, text: `${stdout}\n${stderr}` };
}

const installed = new Map<string, Promise<string>>();

/** The folder in which the packages of npm are; they are installed once for all that want the same. */
function installPackages(packages: string[]): Promise<string> {
  const key = packages.join(" ");
  const made = installed.get(key);
  if (made) return made;
  const install = async () => {
    const directory = join(root, `packages-${installed.size}`);
    mkdirSync(directory, { recursive: true });
    await Bun.write(join(directory, "package.json"), "{}");
    const environment = { PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: "1", CYPRESS_INSTALL_BINARY: "0" };
    const command = `npm install --silent --no-audit --no-fund ${key}`;
    const { code, text } = await run(command, directory, MAX_INSTALLATION_MS, environment);
    if (code !== 0) throw new Error(`npm install ended with ${code}: ${text.trim().slice(0, 200)}`);
    return directory;
  };
  const promise = install();
  installed.set(key, promise);
  return promise;
}

const keyOf = ({ suite, name, file }: PlacedCase) => JSON.stringify([suite, name, file && normalizeFile(file)]);

async function readCases(project: Project, directory: string) {
  const paths = [...new Bun.Glob(project.report).scanSync({ cwd: directory, dot: true })];
  const files = await Promise.all(
    paths.map(async (name) => ({ name, bytes: await Bun.file(join(directory, name)).bytes() })),
  );
  for (const path of paths) rmSync(join(directory, path));
  return readReport(files, { maxInflatedBytes: 2 ** 24 }).cases;
}

type Row = { tool: string; version: string; ran: string; held: string };

async function tryProject(project: Project): Promise<Row> {
  const folder = join(root, project.tool.replace(/\W+/g, "-"));
  for (const [path, text] of Object.entries(project.files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    await Bun.write(join(folder, path), text);
  }
  const directory = join(folder, project.directory ?? ".");
  if (project.packages) {
    const packages = await installPackages(project.packages);
    await run(`ln -s ${packages}/node_modules node_modules`, directory, MAX_COMMAND_MS);
  }
  const version = await run(project.version, directory, MAX_COMMAND_MS);
  const told = /\d+\.\d+[\w.-]*/.exec(version.text)?.[0] ?? "";
  const row = { tool: project.tool, version: told, ran: "", held: "" };
  if (version.code !== 0) return { ...row, ran: "-", held: "not to be had here" };

  const first = await run(project.command, directory, MAX_COMMAND_MS);
  const before = await readCases(project, directory).catch((error: Error) => {
    throw new Error(`${error.message}\n${first.text.slice(-3_000)}`);
  });
  const only = before.filter(({ status }) => status === "failed");
  if (only.length !== project.failures)
    throw new Error(`${only.length} failed, not ${project.failures}:\n${only.map(keyOf).join("\n")}\n${first.text}`);
  const made: RerunCommand = toRerunCommand({
    rerun: project.rerun,
    command: project.command,
    only: only.map(({ suite, name, file }) => ({ suite, name, file: file && normalizeFile(file) })),
    directory,
    exists: existsSync,
  });
  if (made.whole) throw new Error(`The whole would run: ${made.reason}`);
  if (process.argv.includes("--commands")) console.log(`${project.tool}: ${made.command}\n`);
  const list = join(directory, "list.txt");
  if (made.list !== null) await Bun.write(list, made.list);
  const second = await run(made.command, directory, MAX_COMMAND_MS, { [LIST_VARIABLE]: list });
  const after = await readCases(project, directory).catch((error: Error) => {
    throw new Error(`${error.message}\n${made.command}\n${second.text.slice(-3_000)}`);
  });

  const wanted = new Set(only.map(keyOf));
  const executed = after.filter(({ status }) => status !== "skipped").map(keyOf);
  const missing = [...wanted].filter((key) => !executed.includes(key));
  const more = executed.filter((key) => !wanted.has(key));
  const strangers = after.map(keyOf).filter((key) => !before.some((one) => keyOf(one) === key));
  const isAllowed = (key: string) => {
    const [, name, file] = JSON.parse(key) as [string, string, string | null];
    return (project.more ?? []).some((one) => `${file ?? ""} ${name}`.endsWith(one));
  };
  const unexpected = more.filter((key) => !isAllowed(key));
  const skipped = after.length - executed.length;
  row.ran = `${before.length} tests, ${only.length} failed; again ${executed.length}, ${skipped} told as skipped`;
  const faults = [
    ...missing.map((key) => `did not run: ${key}`),
    ...unexpected.map((key) => `ran though it had not failed: ${key}`),
    ...strangers.map((key) => `has another identity: ${key}`),
    ...(after.some(({ status }) => status === "failed") ? [] : ["nothing failed again"]),
  ];
  if (faults.length > 0) throw new Error(`${faults.join("\n")}\n${made.command}\n${second.text.slice(-2_000)}`);
  return {
    ...row,
    held: more.length === 0 ? "exactly what failed" : `what failed and ${more.length} more: ${project.why}`,
  };
}

const wanted = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const rows: Row[] = [];
let isWrong = false;
for (const project of PROJECTS.filter(
  ({ tool }) => wanted.length === 0 || wanted.some((name) => tool.includes(name)),
)) {
  try {
    rows.push(await tryProject(project));
  } catch (error) {
    isWrong = true;
    rows.push({ tool: project.tool, version: "", ran: "", held: "WRONG, see above" });
    console.error(`${project.tool}: ${(error as Error).message}\n`);
  }
}
console.table(rows);
await removePlace(root);
process.exit(isWrong ? 1 : 0);
