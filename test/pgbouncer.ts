/** Poolers between a server and PostgreSQL: PgBouncer, where it is installed, and a small one that shares one session. */

import { afterAll } from "bun:test";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import { give } from "../src/database/postgres/home.ts";
import { until } from "./harness.ts";
import { createPlace, guardProcess, removePlace } from "./places.ts";

type Connection = Record<string, unknown>;

const program = Bun.which("pgbouncer", { PATH: `${process.env.PATH}:/usr/sbin` });
export const hasPgBouncer = program !== null;
if (!hasPgBouncer) console.warn("PgBouncer is not installed: what needs it is skipped");

/** What docs/operations.md says that PgBouncer needs, beside the mode. */
const DOCS = readFileSync(join(import.meta.dir, "../docs/operations.md"), "utf8");
export const IGNORED_PARAMETERS = { ignore_startup_parameters: /^ignore_startup_parameters = (.+)$/m.exec(DOCS)![1]! };

const freePort = async (): Promise<number> => {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};

/** Before the database of `connection`; `settings` are lines of its section [pgbouncer]. Answers a URL. */
export async function startPgBouncer(connection: Connection, settings: Record<string, string>): Promise<string> {
  const { host, port, username, password, database } = connection;
  const place = createPlace("pgbouncer");
  const file = join(place, "pgbouncer.ini");
  const listenPort = await freePort();
  const all = { listen_addr: "127.0.0.1", listen_port: listenPort, unix_socket_dir: "", auth_type: "any", ...settings };
  writeFileSync(
    file,
    `[databases]
assay = host=${host} port=${port} dbname=${database} user=${username} password=${password}
[pgbouncer]
${Object.entries(all)
  .map(([name, value]) => `${name} = ${value}`)
  .join("\n")}
`,
    { mode: 0o600 },
  );
  // It refuses to run as root, and the socket is open to the account of PostgreSQL alone.
  const { uid, gid } = statSync(String(host));
  const account = process.getuid?.() === 0 ? { uid, gid } : undefined;
  if (account) {
    for (const path of [place, file]) give({ ...account, name: "" }, path);
    chmodSync(place, 0o700);
  }
  const child = Bun.spawn([program!, file], { ...account, cwd: "/", stdout: "ignore", stderr: "pipe" });
  guardProcess(child);
  afterAll(async () => {
    child.kill("SIGINT");
    await child.exited;
    await removePlace(place);
  });
  let log = "";
  const reading = (async () => {
    for await (const chunk of child.stderr) log += new TextDecoder().decode(chunk);
  })();
  await until(() => {
    if (child.exitCode !== null) throw new Error(`PgBouncer has ended:\n${log}`);
    return log.includes("listening on 127.0.0.1");
  });
  void reading;
  return `postgres://assay@127.0.0.1:${listenPort}/assay`;
}

const message = (type: string, ...parts: (Buffer | string)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(`${part}\0`) : part)));
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
const int16 = (value: number) => Buffer.of(value >> 8, value & 255);
const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

/** Knows nothing but simple statements, and sends them all through one session. Answers a URL. */
export async function startSharingPooler(connection: Connection, session: Record<string, string>): Promise<string> {
  const shared = postgres({ ...connection, max: 1, max_pipeline: 0, connection: session } as never);
  const ready = message("Z", Buffer.from("I"));
  const answer = async (client: Socket, text: string): Promise<void> => {
    const rows = (await shared.unsafe(text).simple()) as unknown as Record<string, string>[];
    const columns = Object.keys(rows[0] ?? {});
    const fields = columns.map((name) =>
      Buffer.concat([Buffer.from(`${name}\0`), int32(0), int16(0), int32(25), int16(-1), int32(-1), int16(0)]),
    );
    client.write(message("T", int16(columns.length), ...fields));
    for (const row of rows) {
      const values = columns.map((name) => Buffer.from(String(row[name])));
      client.write(message("D", int16(values.length), ...values.flatMap((value) => [int32(value.length), value])));
    }
    client.write(Buffer.concat([message("C", `SELECT ${rows.length}`), ready]));
  };
  const server = createTcpServer((client) => {
    let isOpen = false;
    client.on("error", () => {});
    client.on("data", (bytes: Buffer) => {
      if (!isOpen) {
        isOpen = true;
        client.write(Buffer.concat([message("R", int32(0)), ready]));
      } else if (String.fromCharCode(bytes[0]!) === "Q")
        void answer(client, bytes.toString("utf8", 5, bytes.length - 1));
      else client.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(async () => {
    server.close();
    await shared.end({ timeout: 1 });
  });
  return `postgres://assay@127.0.0.1:${(server.address() as AddressInfo).port}/assay`;
}
