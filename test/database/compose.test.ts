import { expect, test } from "bun:test";
import { createDatabase } from "../harness.ts";
import { compose } from "../../src/database/compose.ts";
import { toRows } from "../../src/database/connect.ts";

const { database } = await createDatabase();
const { pool } = database;

test("a statement is put together of fragments once, and given its values each time", async () => {
  let built = 0;
  const LIMIT = 2;
  const statement = compose<"numbers" | "least", { number: number; least: string }>((sql, given) => {
    built++;
    const above = sql`number >= ${given("least")}::int`;
    return sql`
      select number, ${given("least")}::text as least from unnest(${given("numbers")}::int[]) as number
      where ${above} order by number limit ${LIMIT}`;
  });
  expect([...(await statement(pool, { numbers: "{5,1,9,7}", least: "5" }))]).toEqual([
    { number: 5, least: "5" },
    { number: 7, least: "5" },
  ]);
  const odd = `{"1"}`;
  expect(await statement(pool, { numbers: odd, least: "2" })).toHaveLength(0);
  expect(built).toBe(1);
});

test("what is given has a place and no value in the text", async () => {
  const echo = compose<"text", { text: string }>((sql, given) => sql`select ${given("text")}::text as text`);
  const text = `'; drop table project; -- $1 "\\`;
  expect([...(await echo(pool, { text }))]).toEqual([{ text }]);
  const careless = compose<never, never>((sql) => sql`select ${"a value of one request"}::text`);
  await expect(careless(pool, {})).rejects.toThrow("Only numbers and fragments have a place");
});

test("rows come through as they are, whatever their texts hold", async () => {
  const texts = ["plain", `"quoted" \\ and \\u0041`, "line\nbreak", "\ud83d\ude00", "\\ud83d", "€"];
  const read = async (all: readonly string[]) =>
    (
      await pool<{ text: string }[]>`
        select text from json_to_recordset(${toRows(all.map((text) => ({ text })))}::text::json) as row (text text)`
    ).map(({ text }) => text);
  expect(await read(texts)).toEqual(texts);
  // Half of a pair is what UTF-8 makes of it.
  expect(await read(["cut \ud83d", "\ude00 cut", "\\\ud83d"])).toEqual(["cut \ufffd", "\ufffd cut", "\\\ufffd"]);
});
