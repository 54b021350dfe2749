/** What whoever asks is told of a database that cannot do what it is asked for, and what the log says. */

import { expect, test } from "bun:test";
import { createHarness, junit } from "../harness.ts";

const lines: string[] = [];
const { ask, acme, database } = await createHarness({ ownDatabase: true, log: (line) => void lines.push(line) });

type Size = "small" | "large" | "failing";
const reportOf = (size: Size) => junit((size === "failing" ? "f" : "p").repeat(size === "large" ? 20_000 : 2));

/** Uploads a report while the database refuses what comes of it with this code. */
async function uploadDespite(code: string, size: Size) {
  await database.pool.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'could not extend file "base/1/2": No space left on device' using errcode = '${code}';
    end $$;
    create trigger refuse before insert on attempt for each row execute function refuse();
  `);
  try {
    const body = reportOf(size);
    return await ask(`POST /projects/${acme.project}/test-runs`, { key: acme.key, body });
  } finally {
    await database.pool.unsafe("drop trigger refuse on attempt; drop function refuse");
  }
}

test("a full disk is an outage and no failure of ours: the log has one line without a stack for all requests", async () => {
  lines.length = 0;
  for (const size of ["small", "failing", "large"] as const) {
    const { status, headers, text } = await uploadDespite("53100", size);
    expect([size, status, headers.get("retry-after")]).toEqual([size, 500, "10"]);
    expect(text).not.toContain("extend");
  }
  const told = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === "error");
  expect(told).toEqual([
    {
      ...{ time: expect.any(String), level: "error", requestId: expect.any(String), requests: 1 },
      message: "The disk of the database is full: nothing can be stored until there is room",
      reason: 'could not extend file "base/1/2": No space left on device',
    },
  ]);
});

test("the report that was refused for a full disk has left nothing, and is taken when there is room", async () => {
  const { key, project } = acme;
  const runs = async () => (await ask(`GET /projects/${project}/test-runs?limit=100`, { key })).body.data.length;
  const before = await runs();
  expect((await uploadDespite("53100", "small")).status).toBe(500);
  expect(await runs()).toBe(before);
  const { status, body } = await ask(`POST /projects/${project}/test-runs`, { key, body: reportOf("small") });
  expect([status, body.attempt, await runs()]).toEqual([201, 1, before + 1]);
});

test.each(["53200", "58030"])("so is a database that is out of memory or cannot use its disk (%s)", async (code) => {
  const { status, headers } = await uploadDespite(code, "small");
  expect([status, headers.get("retry-after")]).toEqual([500, "2"]);
});

test.each(["53100", "40P01"])("what cannot be counted keeps nobody from reading, nor an upload (%s)", async (code) => {
  const path = `/projects/${acme.project}`;
  const upload = (letters: string) => ask(`POST ${path}/test-runs`, { key: acme.key, body: junit(letters) });
  await database.pool.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'no' using errcode = '${code}';
    end $$;
    create trigger refuse before insert or update on case_health for each row execute function refuse();
  `);
  try {
    expect((await upload("pppp")).status).toBe(201);
    expect((await ask(`GET ${path}/test-cases`, { key: acme.key })).status).toBe(200);
    expect((await upload("pppf")).status).toBe(201);
  } finally {
    await database.pool.unsafe("drop trigger refuse on case_health; drop function refuse");
  }
});
