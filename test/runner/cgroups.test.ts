/** Which control group a runner may use, and what becomes of the groups that an earlier runner has left. */

import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { findOwnCgroup, findPidNamespace, openCgroups, openGroup } from "../../src/runner/cgroups.ts";
import { endProcesses } from "../../src/runner/processes.ts";
import { createPlace, guardProcess, removePlace } from "../places.ts";
import { readProcess } from "../../src/runner/process_state.ts";

const place = createPlace("cgroups");
afterAll(() => removePlace(place));

const sleep = () => {
  const child = Bun.spawn(["sleep", "1000"], { detached: true, stdio: ["ignore", "ignore", "ignore"] });
  guardProcess(child);
  return child;
};

describe("the runner's own group", () => {
  const v2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  const hybrid = `29 24 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n${v2.replace("cgroup rw", "cgroup/unified rw")}`;
  test.each([
    ["a service", "0::/system.slice/assay-runner.service\n", v2, "/sys/fs/cgroup/system.slice/assay-runner.service"],
    ["the root", "0::/\n", v2, "/sys/fs/cgroup"],
    ["both versions", "4:memory:/a\n0::/b\n", hybrid, "/sys/fs/cgroup/unified/b"],
    ["a part that is mounted", "0::/docker/1/2\n", v2.replace(" / /sys", " /docker/1 /sys"), "/sys/fs/cgroup/2"],
    ["blanks in the path", "0::/a\n", v2.replace("/sys/fs/cgroup", "/sys/my\\040groups"), "/sys/my groups/a"],
    ["a group outside of the namespace", "0::/../other\n", v2, undefined],
    ["a group outside of what is mounted", "0::/other\n", v2.replace(" / /sys", " /docker/1 /sys"), undefined],
    [
      "version 1 alone",
      "4:memory:/a\n",
      "29 24 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
      undefined,
    ],
    ["version 2 that is not mounted", "0::/a\n", "", undefined],
    ["no Linux", "", "", undefined],
  ])("is found for %s", (_, groups, mounts, expected) => {
    expect(findOwnCgroup(groups, mounts)).toBe(expected);
  });

  test("is not used where it is no control group or not ours to write, and nothing is left there", async () => {
    const directory = join(place, "ordinary");
    mkdirSync(directory);
    expect(await openCgroups(directory)).toBeUndefined();
    expect(readdirSync(directory)).toEqual([]);
    expect(await openCgroups(join(place, "missing"))).toBeUndefined();
    expect(await openCgroups("/proc")).toBeUndefined();
  });
});

test("where the kernel cannot kill a group, its processes are killed one by one", async () => {
  const child = sleep();
  const path = join(place, "old-kernel");
  mkdirSync(join(path, "below"), { recursive: true });
  await Bun.write(join(path, "cgroup.procs"), "0\n");
  await Bun.write(join(path, "below", "cgroup.procs"), `${child.pid}\n`);
  const cgroup = openGroup(path);
  expect(cgroup.pids()).toEqual([child.pid]);
  expect(await endProcesses({ mark: "NO_SUCH=mark", groups: new Set(), cgroup }, 0)).toBe(true);
  await child.exited;
  expect(readdirSync(path).sort()).toEqual(["below", "cgroup.procs"]);
});

const own = findOwnCgroup();
const parent = own && join(own, `assay-leftovers-${process.pid}`);
const isWritable = await (async () => {
  try {
    mkdirSync(parent!);
  } catch {
    return false;
  }
  if (await openCgroups(parent)) return true;
  rmdirSync(parent!);
  return false;
})();
afterAll(() => {
  if (isWritable) rmdirSync(parent!);
});

test.skipIf(!isWritable)(
  "the groups of a runner that was killed are ended, and those of another one or of another PID namespace are not (skipped where cgroups v2 cannot be written)",
  async () => {
    const { started } = readProcess(process.pid)!;
    const names = {
      gone: `assay-task-${findPidNamespace()}-${process.pid}-1-0`,
      ours: `assay-task-${findPidNamespace()}-${process.pid}-${started}-77`,
      foreign: `assay-task-1-${process.pid}-1-0`,
      else: "other",
    };
    const children = Object.values(names).map((name) => {
      mkdirSync(join(parent!, name));
      const child = sleep();
      // In one write, as the kernel wants it.
      Bun.spawnSync(["sh", "-c", `echo ${child.pid} > ${join(parent!, name)}/cgroup.procs`]);
      return child;
    });
    expect(readFileSync(join(parent!, names.gone, "cgroup.procs"), "utf8")).toBe(`${children[0]!.pid}\n`);
    expect(await openCgroups(parent)).toBeDefined();
    await children[0]!.exited;
    expect(
      readdirSync(parent!)
        .filter((name) => Object.values(names).includes(name))
        .sort(),
    ).toEqual([names.ours, names.foreign, names.else].sort());
    expect(children.map(({ exitCode, signalCode }) => signalCode ?? exitCode)).toEqual(["SIGKILL", null, null, null]);
    for (const name of [names.ours, names.foreign, names.else]) {
      const group = openGroup(join(parent!, name));
      group.kill();
      await group.remove();
    }
  },
);
