/** The examples of deploy/, with what cannot be the same here replaced. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

const DEPLOY = join(import.meta.dir, "../../../deploy");
/** The database machine that the examples are written for. */
const FIRST = { name: "db1", address: "10.0.0.21" };

export type Change = readonly [example: string, replacement: string];

/** Replaces every occurrence. Throws if the example does not contain a text that is to be replaced. */
export function adapt(text: string, changes: readonly Change[]): string {
  return changes.reduce((changed, [example, replacement]) => {
    if (!changed.includes(example)) throw new Error(`The example does not contain ${JSON.stringify(example)}`);
    return changed.replaceAll(example, replacement);
  }, text);
}

const read = (name: string) => readFileSync(join(DEPLOY, name), "utf8");

type Named = { name: string; address: string };

/** Variables of etcd. `folder` is that of its data. */
export function etcdVariables({ name, address }: Named, folder: string): Record<string, string> {
  const text = adapt(read("cluster/etcd.env"), [
    [`ETCD_NAME=${FIRST.name}`, `ETCD_NAME=${name}`],
    [`URLS=http://${FIRST.address}:`, `URLS=http://${address}:`],
    ["/var/lib/etcd/assay", folder],
  ]);
  return Object.fromEntries(Array.from(text.matchAll(/^(\w+)=(.*)$/gm), ([, variable, value]) => [variable!, value!]));
}

export type PatroniPaths = {
  /** The data directory of PostgreSQL. */
  data: string;
  /** The directory of PostgreSQL's programs. */
  programs: string;
  /** For the socket, and the file of passwords. */
  folder: string;
};

export const patroniConfig = ({ name, address }: Named, { data, programs, folder }: PatroniPaths): string =>
  adapt(read("cluster/patroni.yaml"), [
    [`name: ${FIRST.name}`, `name: ${name}`],
    [`${FIRST.address}:8008`, `${address}:8008`],
    [`${FIRST.address}:5432`, `${address}:5432`],
    ["/usr/lib/postgresql/15/bin", programs],
    ["/var/lib/postgresql/15/assay", data],
    ["/var/lib/postgresql/.pgpass-patroni", join(folder, "pgpass")],
    ["unix_socket_directories: /var/run/postgresql", `unix_socket_directories: ${folder}`],
  ]);

/** The times of Patroni's configuration, in seconds. */
export function patroniTimes(): { ttl: number; loop_wait: number; retry_timeout: number } {
  const { bootstrap } = Bun.YAML.parse(read("cluster/patroni.yaml")) as { bootstrap: { dcs: never } };
  return bootstrap.dcs;
}

/** A superuser of the database at `host:port`. */
export function superuserUrl(address: string): string {
  const { authentication } = (
    Bun.YAML.parse(read("cluster/patroni.yaml")) as {
      postgresql: { authentication: { superuser: Record<"username" | "password", string> } };
    }
  ).postgresql;
  const { username, password } = authentication.superuser;
  return `postgres://${username}:${password}@${address}/postgres`;
}

export const haproxyConfig = (): string => read("cluster/haproxy.cfg");

/** A whole configuration of nginx, in the foreground, for servers of Assay at these addresses. */
export function nginxConfig(listen: string, servers: readonly string[]): string {
  const example = adapt(read("nginx.conf"), [
    ["listen 443 ssl;", `listen ${listen};`],
    ["    ssl_certificate     /etc/ssl/assay.pem;\n", ""],
    ["    ssl_certificate_key /etc/ssl/assay.key;\n", ""],
    [
      "    server 10.0.0.12:8080 fail_timeout=1s;\n",
      servers
        .slice(1)
        .map((address) => `    server ${address} fail_timeout=1s;\n`)
        .join(""),
    ],
  ]);
  const folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${name};`);
  return `daemon off;
user root;
pid nginx.pid;
events { worker_connections 1024; }
http {
access_log off;
${folders.join("\n")}
${example}
}`;
}
