import { describe, expect, test } from "bun:test";
import { createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject, database } = await createHarness();
const fresh = async () => createAsking(ask, await addProject(acme));

const hashOf = (digit: string) => digit.repeat(40);
const line = (digit: string, parent: string, author: string, subject: string) =>
  [hashOf(digit), parent && hashOf(parent), author, "2026-01-31T10:00:00+01:00", subject].join("\t");

describe("the commits that an upload describes", () => {
  test("give their executions an author and a subject, by whatever length of the hash these name them", async () => {
    const place = await fresh();
    const commits = `${line("b", "a", "Ada", "Round prices\tup")}\n${line("a", "", "Bob", "Begin")}\n`;
    const { executionId } = await place.upload("pf", { commit: hashOf("b"), commits });
    const { executionId: earlier } = await place.upload("p", { commit: hashOf("a").slice(0, 8) });
    const { executionId: other } = await place.upload("p", { commit: hashOf("c") });
    const words = { commitAuthor: "Ada", commitSubject: "Round prices up" };
    expect(await place.get(`/executions/${executionId}`)).toMatchObject(words);
    expect(await place.list("/executions")).toMatchObject([
      { id: other, commitAuthor: null, commitSubject: null },
      { id: earlier, commitAuthor: "Bob", commitSubject: "Begin" },
      { id: executionId, ...words },
    ]);
  });

  test("are not overwritten, but get the parent that an earlier clone did not have", async () => {
    const place = await fresh();
    await place.upload("p", { commits: line("b", "", "Ada", "Round prices") });
    await place.upload("p", { commits: `${line("b", "a", "Eve", "Other")}\n${line("b", "", "Eve", "Other")}` });
    const rows =
      await database.pool`select hash, parent, author, subject from commit where project_id = ${place.project}`;
    expect([...rows]).toEqual([{ hash: hashOf("b"), parent: hashOf("a"), author: "Ada", subject: "Round prices" }]);
  });

  test("may have odd characters in subject and author", async () => {
    const place = await fresh();
    const commits = line("b", "a", "A\tda\x1b[2J", "Round\u2028 prices \u202e\u{1f600}");
    const { executionId } = await place.upload("p", { commit: hashOf("b"), commits });
    const words = { commitAuthor: "A da [2J", commitSubject: "Round  prices  \u{1f600}" };
    expect(await place.get(`/executions/${executionId}`)).toMatchObject(words);
  });

  test("of a fork are ignored, and text of another form is refused", async () => {
    const place = await fresh();
    const fork = { untrusted: "true", commit: hashOf("b"), commits: line("b", "a", "Eve", "Merge me") };
    const { executionId } = await place.upload("p", fork);
    expect(await place.get(`/executions/${executionId}`)).toMatchObject({ commitAuthor: null, commitSubject: null });
    const many = Array.from({ length: 51 }, () => line("b", "a", "Ada", "Again")).join("\n");
    const year = (text: string) => line("b", "a", "Ada", "x").replace("2026", text);
    for (const commits of [
      "b Ada",
      year("0000"),
      year("1969"),
      line("b", "a", "Ada", "x").replace("2026", "20260"),
      hashOf("b"),
      many,
    ])
      expect(await place.send("", { commits, allow_empty: "true" })).toMatchObject({
        status: 400,
        body: { error: { code: "VALIDATION_ERROR", message: expect.stringContaining('"commits"') } },
      });
  });
});
