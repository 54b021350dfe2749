import { beforeEach, describe, expect, test } from "bun:test";
import { createRequests } from "../asking.ts";
import { createSeal, SealError } from "../../src/secrets/seal.ts";
import { loadSecretKey } from "../../src/operations/projects/secret_key.ts";
import { reseal } from "../../src/work/reseal.ts";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createHarness, createServer, SECRET_KEY } from "../harness.ts";
import { createPlace, removePlace } from "../places.ts";

const { ask, acme, database } = await createHarness({ ownDatabase: true });
const key = acme.teamKey;
const base = `/teams/${acme.team}/environments`;
const team = createRequests(ask, base, key);
let id: string;
let count = 0;
beforeEach(async () => {
  const body = await team.post("", { slug: `e${count++}` });
  id = body.id;
});

const list = async (query = "") => await team.list(`/${id}/variables${query}`);
const put = (name: string, body: unknown) => team.call("PUT", `/${id}/variables/${name}`, body);
const replace = (body: unknown, type = "") =>
  team.call("PUT", `/${id}/variables`, body, type ? { "content-type": type } : {});

describe("environments", () => {
  test("are created, listed by slug, changed and deleted", async () => {
    const given = { slug: "a-staging", name: "Staging", baseUrl: "https://staging.example.com", description: "x" };
    const { status, body } = await team.call("POST", "", given);
    expect(status).toBe(201);
    const times = { createdAt: expect.any(String), updatedAt: expect.any(String) };
    expect(body).toEqual({ id: expect.any(String), ...given, variableCount: 0, ...times });
    const slugs = (await team.walk("?limit=1")).map(({ slug }) => slug);
    expect([slugs[0], slugs]).toEqual(["a-staging", slugs.toSorted()]);
    const changed = await team.call("PATCH", `/${body.id}`, { baseUrl: null, name: "S" });
    expect(changed.body).toMatchObject({ name: "S", baseUrl: null, description: "x", slug: "a-staging" });
    expect((await team.call("DELETE", `/${body.id}`)).status).toBe(204);
    expect((await team.call("GET", `/${body.id}`)).status).toBe(404);
  });

  test("a slug is taken once, and each bad field is named", async () => {
    const body = await team.get(`/${id}`);
    for (const target of [`POST ${base}`, `PATCH ${base}/${(await team.post("", { slug: "other" })).id}`]) {
      const taken = await ask(target, { key, body: { slug: body.slug } });
      expect([taken.status, taken.body.error.message]).toEqual([400, expect.stringContaining(`"${body.slug}"`)]);
    }
    const bad = { slug: "No Spaces", baseUrl: "ftp://x", name: "", nope: 1 };
    const { body: refused } = await team.call("POST", "", bad);
    for (const name of Object.keys(bad)) expect(refused.error.message).toContain(`"${name}"`);
  });
});

describe("variables", () => {
  test("are set, read unless secret, and deleted", async () => {
    const secret = { name: "TOKEN", secret: true, value: null, updatedAt: expect.any(String) };
    expect((await put("TOKEN", { value: "s3cret" })).body).toEqual(secret);
    const plain = await put("REGION", { value: "eu", secret: false });
    expect([plain.status, plain.body.value]).toEqual([201, "eu"]);
    expect((await put("REGION", { value: "us", secret: false })).status).toBe(200);
    expect(await list()).toMatchObject([
      { name: "REGION", value: "us" },
      { name: "TOKEN", value: null },
    ]);
    expect((await team.get(`/${id}`)).variableCount).toBe(2);
    expect((await team.call("DELETE", `/${id}/variables/TOKEN`)).status).toBe(204);
    expect((await team.call("DELETE", `/${id}/variables/TOKEN`)).status).toBe(404);
    expect((await put("1A", { value: "x" })).body.error.message).toContain("variableName");
  });

  test("are replaced all at once, by JSON or by a .env file", async () => {
    await put("OLD", { value: "x" });
    expect((await replace({ A: "1", B: { value: "2", secret: false } })).body).toEqual({ variableCount: 2 });
    expect(await list()).toMatchObject([
      { name: "A", secret: true, value: null },
      { name: "B", secret: false, value: "2" },
    ]);
    const dotenv = `# comment\nexport A=1 # more\nB="two\\nlines"\nC='$literal'\nD="over\nlines"\nE=\n`;
    expect((await replace(dotenv, "text/plain")).body).toEqual({ variableCount: 5 });
    expect((await list()).every(({ value }: { value: null }) => value === null)).toBe(true);
    const seal = createSeal(SECRET_KEY);
    const rows = await database.pool`select name, sealed from variable where environment_id = ${id} order by name`;
    const values = rows.map(({ name, sealed }) => seal.open(["variable", acme.team, id, name], sealed));
    expect(values).toEqual(["1", "two\nlines", "$literal", "over\nlines", ""]);
  });

  test("a mistake stores nothing, and no error tells a value", async () => {
    await replace({ KEPT: "1" });
    const long = "hunter2".repeat(10_000);
    for (const [body, type] of [
      [{ A: "hunter2", "1B": "hunter2" }, ""],
      [{ A: long }, ""],
      ["A=hunter2\nhunter2 is not a line", "text/plain"],
      ['A="hunter2', "text/plain"],
      ['{"A": hunter2}', "application/json"],
      [{ A: { value: "hunter2", secret: "hunter2" } }, ""],
    ] as const) {
      const { status, text } = await replace(body, type);
      expect([status, text.includes("hunter2")]).toEqual([400, false]);
    }
    for (const [body, fault] of [
      [{ value: long }, `"value": expected a text of at most 64 KiB`],
      [{ value: "hunter2\0" }, `"value": expected a text without NUL and invalid characters`],
      [{ value: ["hunter2"] }, `"value": expected a text`],
      ["{hunter2", "not valid JSON"],
    ] as const) {
      const { status, text, body: answer } = await put("A", body);
      expect([status, text.includes("hunter2")]).toEqual([400, false]);
      expect(answer.error.message).toContain(fault);
    }
    expect((await list()).map(({ name }: { name: string }) => name)).toEqual(["KEPT"]);
  });

  test("a secret is found in no answer, no log line and no table", async () => {
    const secret = `needle${crypto.randomUUID()}`;
    const seen: string[] = [];
    const server = await createServer(database, { log: (line) => seen.push(line) });
    const asked = async (target: string, body?: unknown) => {
      const answer = await server.ask(target, { key, ...(body === undefined ? {} : { body }) });
      seen.push(answer.text, JSON.stringify([...answer.headers]));
      return answer;
    };
    await asked(`PUT ${base}/${id}/variables/TOKEN`, { value: secret });
    await asked(`PUT ${base}/${id}/variables/TOKEN`, { value: secret, secret: true });
    await asked(`PUT ${base}/${id}/variables`, { TOKEN: secret, "BAD NAME": secret });
    await asked(`PUT ${base}/${id}/variables`, { TOKEN: secret });
    await asked(`GET ${base}/${id}/variables`);
    await asked(`GET ${base}/${id}`);
    const tables = await database.pool<{ name: string }[]>`
      select c.relname as name from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`;
    for (const { name } of tables) {
      const rows = await database.pool<{ row: string }[]>`select t::text as row from ${database.pool(name)} t`;
      seen.push(...rows.map(({ row }) => row));
    }
    const all = seen.join("\n");
    expect(all).toContain("TOKEN");
    const [hex, base64] = [Buffer.from(secret).toString("hex"), Buffer.from(secret).toString("base64").slice(0, 40)];
    for (const form of [secret, hex, base64]) expect(all.includes(form)).toBe(false);
  });
});

describe("sealing", () => {
  const place = ["variable", "team", "environment", "NAME"];

  test("opens only where it belongs, with the key that sealed it, unchanged", () => {
    const seal = createSeal(SECRET_KEY);
    const sealed = seal.seal(place, "value");
    expect(seal.open(place, sealed)).toBe("value");
    expect(seal.seal(place, "value").equals(sealed)).toBe(false);
    for (const [index, part] of place.entries())
      expect(() => seal.open(place.with(index, `${part}x`), sealed)).toThrow(SealError);
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at]! ^= 1;
      expect(() => seal.open(place, changed)).toThrow(SealError);
    }
    expect(() => createSeal(new Uint8Array(32)).open(place, sealed)).toThrow(SealError);
    expect(createSeal(new Uint8Array(32), SECRET_KEY).open(place, sealed)).toBe("value");
  });

  test("values swapped between names do not open as each other's", async () => {
    await put("A", { value: "a", secret: false });
    await put("B", { value: "b", secret: false });
    await database.pool`
      update variable v set sealed = o.sealed from variable o
      where v.environment_id = ${id} and o.environment_id = ${id} and v.name <> o.name`;
    expect((await team.call("GET", `/${id}/variables`)).status).toBe(500);
    await database.pool`delete from variable where environment_id = ${id}`;
  });

  test("a changed key seals anew what the old one sealed; a wrong or missing one is refused", async () => {
    await database.pool`delete from variable`;
    const dataDir = createPlace("secret");
    try {
      const options = { secretKey: undefined, secretKeyOld: undefined, dataDir };
      const load = (more: object) => loadSecretKey(database.pool, { ...options, ...more });
      const made = await load({});
      expect(statSync(join(dataDir, "secret-key")).mode & 0o777).toBe(0o600);
      const stored = Buffer.from(readFileSync(join(dataDir, "secret-key"), "utf8"), "base64");
      expect(stored.equals(Buffer.from(made))).toBe(true);
      expect(await load({})).toEqual(made);
      // The server of this file seals with its own key, and never claimed it.
      await database.pool`update instance set secret_key_digest = null`;

      for (let index = 0; index < 120; index++) await put(`V${index}`, { value: `value ${index}`, secret: false });
      const fresh = new Uint8Array(32).fill(9);
      expect(load({ secretKey: fresh })).rejects.toThrow(/120 values .* SECRET_KEY_OLD/);
      expect(load({ dataDir: join(dataDir, "empty") })).rejects.toThrow(/SECRET_KEY is missing: .* 120 values sealed/);
      expect(await load({ secretKey: fresh, secretKeyOld: SECRET_KEY })).toEqual(fresh);
      const seal = createSeal(fresh, SECRET_KEY);
      expect((await Promise.all([reseal(database, seal), reseal(database, seal)])).reduce((a, b) => a + b)).toBe(120);
      expect(await load({ secretKey: fresh })).toEqual(fresh);
      const back = createSeal(SECRET_KEY, fresh);
      await reseal(database, back);
      expect((await list("?limit=1"))[0]).toMatchObject({ name: "V0", value: "value 0" });
    } finally {
      await removePlace(dataDir);
    }
  });
});

describe("replacing all variables", () => {
  test("takes nothing for an order to delete them: no body, an empty one, a list", async () => {
    await put("KEEP", { value: "x" });
    for (const [body, type] of [
      [undefined, ""],
      ["", "text/plain"],
      [" \n", "text/plain"],
      ["[]", "application/json"],
      [`["A"]`, "application/json"],
      ["null", "application/json"],
    ] as const) {
      const { status } = await replace(body, type);
      expect([body, status, (await list()).length]).toEqual([body, 400, 1]);
    }
    expect((await replace("{}", "application/json")).body).toEqual({ variableCount: 0 });
    expect(await list()).toEqual([]);
  });

  test("leaves no name out, whatever it means elsewhere", async () => {
    for (const body of [
      `{"constructor":"1","__proto__":"2","prototype":"3","toString":{"value":"4","secret":false}}`,
      "constructor=1\n__proto__=2\nprototype=3\ntoString=4",
    ]) {
      expect((await replace(body)).body).toEqual({ variableCount: 4 });
      const names = ["__proto__", "constructor", "prototype", "toString"];
      expect((await list()).map(({ name }: { name: string }) => name)).toEqual(names);
    }
    const { status, body } = await replace(`{"__proto__":{"value":5},"OK":"1","9":"x"}`);
    expect(status).toBe(400);
    for (const name of ["__proto__", "9"]) expect(body.error.message).toContain(`"${name}"`);
  });
});
