/**
 * Builds the image of the Dockerfile without a container engine, starts the server in it, uploads a report, starts it again on the same
 * volume, makes a backup, and restores it into another volume with the commands of docs/backup.md: `bun test/lab/container.ts`, as root
 * on Debian with `buildah` and `mmdebstrap`. Takes about 3 minutes.
 *
 * The base image is made by mmdebstrap from Debian's packages. APT's configuration and the certificates of this machine apply to it,
 * so that the build works behind a proxy or a mirror.
 */

import { chownSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { readFirstStart } from "../first_start.ts";
import { junit } from "../harness.ts";
import { createPlace, followOutput, guardProcess, readOutput, removePlace } from "../places.ts";

const ROOT = join(import.meta.dir, "../..");
const PROGRAM = "assay";
const UID = 10_001;
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";
const TIME_LIMIT_MS = 20 * 60_000;

for (const name of ["buildah", "mmdebstrap"])
  if (Bun.which(name) === null) throw new Error(`${name} is not installed: apt-get install buildah mmdebstrap`);
if (process.getuid?.() !== 0) throw new Error("Only root can build an image with --isolation chroot");

const place = createPlace("container");
const dataDir = join(place, "data");
const containers: Bun.Subprocess[] = [];
const storage = ["--root", join(place, "storage"), "--runroot", join(place, "run")];
setTimeout(() => {
  console.error("The time limit is over");
  process.exit(1);
}, TIME_LIMIT_MS).unref();

async function run(command: string[], environment: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(command, { env: { ...process.env, ...environment }, stdout: "pipe", stderr: "pipe" });
  guardProcess(child);
  const { code, output, errors } = await readOutput(child);
  if (code !== 0) throw new Error(`${command.join(" ")} exited with ${code}:\n${(output + errors).slice(-4_000)}`);
  return output.trim();
}

const buildah = ([command, ...words]: string[]) => run(["buildah", ...storage, command!, ...words]);

function expectEqual(what: string, found: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: expected ${b}, got ${a}`);
  console.log(`${what}: ${a}`);
}

/** Imports a fresh Debian under the name that the Dockerfile uses. */
async function makeBase(): Promise<void> {
  const [name] = /docker\.io\/\S+/.exec(readFileSync(join(ROOT, "Dockerfile"), "utf8"))!;
  const archive = join(place, "base.tar");
  await run(["mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", archive]);
  const container = await buildah(["from", "scratch"]);
  await buildah(["add", container, archive, "/"]);
  if (existsSync(CERTIFICATES)) {
    await buildah(["copy", container, CERTIFICATES, CERTIFICATES]);
    await buildah(["config", "--env", `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`, container]);
  }
  await buildah(["commit", "--rm", container, name]);
  console.log(`Base image ${name}`);
}

/** The image contains none of the mounted files. */
async function build(): Promise<void> {
  const mounts = ["/etc/apt", "/etc/npmrc", join(homedir(), ".npmrc")].filter((path) => existsSync(path));
  await buildah([
    ...["bud", "--isolation", "chroot", "--format", "docker", "--pull-never", "--tag", "assay"],
    ...mounts.flatMap((path) => ["--volume", `${path}:${path.replace(homedir(), "/root")}:ro`]),
    ROOT,
  ]);
}

/** Starts the entry point of the image on the volume, as an engine does. */
async function start(container: string, command: string[], volume = dataDir) {
  const child = Bun.spawn(
    [
      ...["buildah", ...storage, "run", "--isolation", "chroot", "--volume", `${volume}:/data`],
      ...["--env", "HOST=127.0.0.1", "--env", "PORT=0", container, "--", ...command],
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  );
  guardProcess(child);
  containers.push(child);
  const { url, output } = followOutput(child, (text) => /"message":"Assay is ready","url":"([^"]+)"/.exec(text)?.[1]);
  return { child, url: await url, output };
}

try {
  await makeBase();
  await build();
  const image = JSON.parse(await buildah(["inspect", "--type", "image", "assay"])).Docker;
  const { Entrypoint, Cmd, User, Volumes, Healthcheck, StopSignal } = image.config;
  expectEqual("Account", User, `${UID}:${UID}`);
  expectEqual("Volumes", Object.keys(Volumes), ["/data"]);
  expectEqual("Stop signal", StopSignal, "SIGTERM");
  const [kind, ...healthCheck] = Healthcheck.Test;
  expectEqual("Kind of health check", kind, "CMD");

  mkdirSync(dataDir, { mode: 0o700 });
  chownSync(dataDir, UID, UID);
  const container = await buildah(["from", "--pull-never", "assay"]);
  // buildah would mount its own volume at this path, over ours.
  await buildah(["config", "--volume", "/data-", container]);
  const command = [...Entrypoint, ...Cmd];
  expectEqual("Entry point", Entrypoint, [PROGRAM]);
  const first = await start(container, command);
  const welcome = readFirstStart(dataDir);
  const [key] = /svc_proj_\w+/.exec(welcome)!;
  const [project] = /(?<=Project +)[0-9a-f-]{36}/.exec(welcome)!;
  const runs = (url: string) => `${url}/api/v1/projects/${project}/test-runs`;
  const headers = { authorization: `Bearer ${key}` };
  const upload = await fetch(`${runs(first.url)}?task_slug=unit`, { method: "POST", headers, body: junit("ppf") });
  expectEqual("Upload", [upload.status, ((await upload.json()) as { failed: number }).failed], [201, 1]);
  const check = ["run", "--isolation", "chroot", "--env", `PORT=${new URL(first.url).port}`, container, "--"];
  expectEqual("Health check", await buildah([...check, ...healthCheck]), "ready");
  await stop(first.child);

  const second = await start(container, command);
  const list = (await (await fetch(runs(second.url), { headers })).json()) as { data: { taskSlug: string }[] };
  const slugs = list.data.map(({ taskSlug }) => taskSlug);
  expectEqual("Runs after a restart", slugs, ["unit"]);

  const inVolume = (volume: string, words: string[], more: string[] = []) =>
    buildah(["run", "--isolation", "chroot", "--volume", `${volume}:/data`, ...more, container, "--", ...words]);
  await inVolume(dataDir, [PROGRAM, "backup", "/data/monday.assay"]);
  await stop(second.child);
  const backup = join(place, "backup");
  mkdirSync(backup);
  for (const name of ["monday.assay", "secret-key"]) copyFileSync(join(dataDir, name), join(backup, name));
  const restored = join(place, "restored");
  mkdirSync(restored, { mode: 0o700 });
  chownSync(restored, UID, UID);
  const [script] = /(?<=-c ')install [^']+/.exec(readFileSync(join(ROOT, "docs/backup.md"), "utf8"))!;
  await inVolume(restored, ["sh", "-c", script], ["--user", "0", "--volume", `${backup}:/backup:ro`]);
  const said = await inVolume(restored, [PROGRAM, "restore", "/data/monday.assay"]);
  expectEqual("Restore", said.includes('Restored "/data/monday.assay"'), true);
  const third = await start(container, command, restored);
  await inVolume(restored, [PROGRAM, "admin", "resume"]);
  const { key: fresh } = JSON.parse(
    await inVolume(restored, [PROGRAM, "admin", "generate-key", "--project", project, "--json"]),
  );
  const after = await fetch(runs(third.url), { headers: { authorization: `Bearer ${fresh}` } });
  const kept = (await after.json()) as { data: { taskSlug: string }[] };
  expectEqual(
    "Runs after the restore",
    kept.data.map(({ taskSlug }) => taskSlug),
    ["unit"],
  );
  await stop(third.child);
  console.log("The image works");
} finally {
  // The processes of a container outlive buildah.
  for (const child of containers) if (child.exitCode === null) process.kill(findServer(child), "SIGTERM");
  await Promise.all(containers.map((child) => child.exited));
  await run(["buildah", ...storage, "rm", "--all"]).catch(() => {});
  await removePlace(place);
}

/** Returns the process and all that its threads have started. */
function descendants(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(descendants)];
}

/** buildah would kill the container at a signal, so the server gets it directly. */
function findServer(child: Bun.Subprocess): number {
  const isServer = (pid: number) => basename(readlinkSync(`/proc/${pid}/exe`)) === PROGRAM;
  const server = descendants(child.pid).find(isServer);
  if (server === undefined) throw new Error(`No process of ${PROGRAM} runs in the container`);
  return server;
}

async function stop(child: Bun.Subprocess): Promise<void> {
  process.kill(findServer(child), "SIGTERM");
  expectEqual("Exit code after SIGTERM", await child.exited, 0);
}
