/** The examples of deploy/ for the machines of the cluster: what is replaced is found, and nothing of the first machine remains. */

import { expect, test } from "bun:test";
import { adapt, etcdVariables, nginxConfig, patroniConfig, superuserUrl } from "../lab/cluster/examples.ts";

const second = { name: "db2", address: "10.0.0.22" };

test("a text that the example does not contain is an error", () => {
  expect(adapt("a b a", [["a", "c"]])).toBe("c b c");
  expect(() => adapt("a b a", [["d", "c"]])).toThrow('The example does not contain "d"');
});

test("etcd of the second machine listens and is advertised there, and knows all three", () => {
  const { ETCD_INITIAL_CLUSTER, ...own } = etcdVariables(second, "/data");
  expect(own).toMatchObject({ ETCD_NAME: "db2", ETCD_DATA_DIR: "/data", ETCD_ENABLE_V2: "true" });
  for (const [name, value] of Object.entries(own))
    if (name.endsWith("_URLS")) expect(value).toStartWith(`http://${second.address}:`);
  expect(ETCD_INITIAL_CLUSTER!.split(",")).toHaveLength(3);
});

test("Patroni of the second machine names itself, and all members of etcd", () => {
  const paths = { data: "/disk/data", programs: "/programs", folder: "/folder" };
  const { name, restapi, etcd, postgresql } = Bun.YAML.parse(patroniConfig(second, paths)) as Record<string, any>;
  expect([name, restapi.connect_address, postgresql.listen]).toEqual(["db2", "10.0.0.22:8008", "10.0.0.22:5432"]);
  expect([postgresql.data_dir, postgresql.bin_dir, postgresql.pgpass]).toEqual([
    "/disk/data",
    "/programs",
    "/folder/pgpass",
  ]);
  expect(etcd.hosts).toBe("10.0.0.21:2379,10.0.0.22:2379,10.0.0.23:2379");
  expect(superuserUrl("127.0.0.1:5000")).toBe("postgres://postgres:superuser-password@127.0.0.1:5000/postgres");
});

test("nginx has all servers, each of which it tries again after a second", () => {
  const config = nginxConfig("10.0.0.1:80", ["10.0.0.11:8080", "10.0.0.12:8080", "10.0.0.13:8080"]);
  expect(Array.from(config.matchAll(/^ +server ([\d.]+):8080 fail_timeout=1s;$/gm), ([, address]) => address)).toEqual([
    "10.0.0.11",
    "10.0.0.12",
    "10.0.0.13",
  ]);
  expect(config).not.toContain("ssl");
});
