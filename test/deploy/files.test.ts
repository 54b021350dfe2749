/** The files in deploy/ and the compose file, as far as they can be checked without the systems that read them. */

import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPlace, removePlace } from "../places.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const COMPOSE_FILES = ["compose.yaml", "deploy/compose.postgres.yaml"];

/** The parts of the files that the tests look at. */
type Compose = {
  services: Record<string, { image: string; volumes: string[]; environment: Record<string, string>; ports?: string[] }>;
  volumes: Record<string, unknown>;
};
type Resource = { kind: string; metadata: { name: string }; spec: Record<string, any> };

/** Instructions of the last stage of the Dockerfile, by name. */
const image = Object.fromEntries(
  read("Dockerfile")
    .split("\nFROM ")
    .at(-1)!
    .split("\n")
    .map((line) => [line.split(" ", 1)[0]!, line.slice(line.indexOf(" ") + 1)]),
);

test.each(COMPOSE_FILES)("%s stores all data in named volumes, and publishes no port to the network", (path) => {
  const { services, volumes } = Bun.YAML.parse(read(path)) as Compose;
  const mounts = Object.values(services).flatMap((service) => service.volumes);
  expect(mounts.map((mount) => mount.split(":")[0]!).sort()).toEqual(Object.keys(volumes).sort());
  expect(services["assay"]!.volumes).toEqual([`data:${image["VOLUME"]}`]);
  expect(services["assay"]!.ports).toEqual([`127.0.0.1:8080:${image["EXPOSE"]}`]);
});

test("the volume of PostgreSQL is the folder above its data directory, as the images from version 18 expect", () => {
  const { postgres } = (Bun.YAML.parse(read("deploy/compose.postgres.yaml")) as Compose).services;
  expect(Number(/:(\d+)$/.exec(postgres!.image)![1])).toBeGreaterThanOrEqual(18);
  expect(postgres!.volumes).toEqual(["postgres:/var/lib/postgresql"]);
  expect(postgres!.environment).not.toHaveProperty("PGDATA");
});

const composer = Bun.which("docker-compose");
if (composer === null) console.warn("docker-compose is not installed: it does not check the compose files");
test.skipIf(composer === null).each(COMPOSE_FILES)("docker-compose accepts %s", (path) => {
  const env = { PATH: process.env["PATH"]!, POSTGRES_PASSWORD: "secret" };
  const child = Bun.spawnSync([composer!, "--file", join(ROOT, path), "config", "--quiet"], { env, stderr: "pipe" });
  expect({ code: child.exitCode, errors: child.stderr.toString() }).toEqual({ code: 0, errors: "" });
});

test("the parts of kubernetes.yaml fit each other and the image", () => {
  const resources = Bun.YAML.parse(read("deploy/kubernetes.yaml")) as Resource[];
  const [service, set] = ["Service", "StatefulSet"].map((kind) => resources.find((one) => one.kind === kind)!);
  const { selector, template, serviceName, volumeClaimTemplates } = set!.spec;
  expect(resources).toHaveLength(2);
  expect(serviceName).toBe(service!.metadata.name);
  expect(template.metadata.labels).toMatchObject(service!.spec["selector"]);
  expect(template.metadata.labels).toMatchObject(selector.matchLabels);

  const { containers, volumes, securityContext } = template.spec;
  const [container] = containers;
  const claims = volumeClaimTemplates.map(({ metadata }: Resource) => metadata);
  const available = [...claims, ...volumes].map(({ name }: { name: string }) => name);
  expect(container.volumeMounts.map(({ name }: { name: string }) => name).sort()).toEqual(available.sort());
  expect(container.ports.map(({ containerPort }: { containerPort: number }) => String(containerPort))).toEqual([
    image["EXPOSE"],
  ]);
  const { runAsUser, runAsGroup, fsGroup, runAsNonRoot } = securityContext;
  expect(image["USER"]).toBe(`${runAsUser}:${runAsGroup}`);
  expect([fsGroup, runAsNonRoot]).toEqual([runAsGroup, true]);
  expect(container.readinessProbe.httpGet.path).toBe("/readyz");
  expect(container.livenessProbe.httpGet.path).toBe("/healthz");
});

test.each([
  ["nginx", "nginx.conf"],
  ["caddyfile", "Caddyfile"],
])("docs/scaling.md shows lines of the example for %s", (language, example) => {
  const linesOf = (text: string) => text.split("\n").map((line) => line.trim());
  const [, block] = new RegExp(`\`\`\`${language}\n([^\`]+)\`\`\``).exec(read("docs/scaling.md"))!;
  const all = new Set(linesOf(read(`deploy/${example}`)));
  expect(linesOf(block!).filter((line) => !all.has(line))).toEqual([]);
});

const analyzer = Bun.which("systemd-analyze");
if (analyzer === null) console.warn("systemd-analyze is not installed: it does not check the units");
test.skipIf(analyzer === null).each(["deploy/assay.service", "deploy/assay-runner.service"])(
  "systemd-analyze accepts %s",
  async (path) => {
    const place = createPlace("unit");
    // The program is not installed on the machine of the tests.
    const unit = read(path).replace("/usr/local/bin/assay", process.execPath);
    const file = join(place, path.split("/").at(-1)!);
    writeFileSync(file, unit);
    const child = Bun.spawnSync([analyzer!, "verify", "--man=no", file], { stderr: "pipe" });
    await removePlace(place);
    expect({ code: child.exitCode, errors: child.stderr.toString() }).toEqual({ code: 0, errors: "" });
  },
);

test("the examples of a database cluster name the same machines, and HAProxy leaves a leader before another is promoted", () => {
  const { etcd, bootstrap, restapi, postgresql } = Bun.YAML.parse(read("deploy/cluster/patroni.yaml")) as {
    etcd: { hosts: string };
    bootstrap: { dcs: { ttl: number; loop_wait: number; retry_timeout: number; synchronous_mode: boolean } };
    restapi: { connect_address: string };
    postgresql: { connect_address: string };
  };
  const haproxy = read("deploy/cluster/haproxy.cfg");
  const servers = Array.from(haproxy.matchAll(/^ +server (\w+) ([\d.]+):5432$/gm), ([, name, address]) => ({
    name: name!,
    address: address!,
  }));
  expect(servers).toHaveLength(3);
  expect(etcd.hosts).toBe(servers.map(({ address }) => `${address}:2379`).join());
  expect(read("deploy/cluster/etcd.env")).toContain(
    `\nETCD_INITIAL_CLUSTER=${servers.map(({ name, address }) => `${name}=http://${address}:2380`).join()}\n`,
  );
  expect(restapi.connect_address).toBe(`${servers[0]!.address}:8008`);
  expect(postgresql.connect_address).toBe(`${servers[0]!.address}:5432`);

  const { ttl, loop_wait, retry_timeout, synchronous_mode } = bootstrap.dcs;
  expect(synchronous_mode).toBe(true);
  expect(ttl).toBeGreaterThanOrEqual(loop_wait + 2 * retry_timeout);
  const [, interval, fall] = /inter (\d+)s fall (\d+)/.exec(haproxy)!.map(Number);
  const [, timeout] = /timeout check (\d+)s/.exec(haproxy)!.map(Number);
  expect(haproxy).toContain("on-marked-down shutdown-sessions");
  // The lock of a leader is up to loop_wait old when the leader dies.
  expect(fall! * (interval! + timeout!)).toBeLessThan(ttl - loop_wait);
});

const balancer = Bun.which("haproxy", { PATH: `${process.env["PATH"]}:/usr/sbin` });
if (balancer === null) console.warn("haproxy is not installed: its example is not tested");
test.skipIf(balancer === null)("HAProxy accepts its example", () => {
  const child = Bun.spawnSync([balancer!, "-c", "-f", join(ROOT, "deploy/cluster/haproxy.cfg")], { stderr: "pipe" });
  expect({ code: child.exitCode, errors: child.stderr.toString() }).toEqual({ code: 0, errors: "" });
});
