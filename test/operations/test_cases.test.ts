/** Many test cases are named at once: by two ways at a time, and from what was read before the report was. */

import { beforeEach, expect, test } from "bun:test";
import { createHarness } from "../harness.ts";
import { resolveTestCases } from "../../src/operations/ingest/resolve.ts";
import { identify, identityOf, type PlacedCase } from "../../src/rules/identity.ts";
import type { Tx } from "../../src/database/connect.ts";
import { insertTestCases } from "../../src/store/test_case_names.ts";

const { ask, acme, addProject, database } = await createHarness();
const { pool, begin } = database;

let projectId: string;
let key: string;
beforeEach(async () => void ({ project: projectId, key } = await addProject(acme)));

const COUNT = 6_000;
const MANY: PlacedCase[] = Array.from({ length: COUNT }, (_, index) => ({
  suite: `suite\t${index % 100}`,
  name: `name\\ ${index}`,
  file: index % 3 === 0 ? null : `src/${index % 100}.ts`,
}));
const NUMBERS = Array.from({ length: COUNT }, (_, index) => index + 1);

const execution = { id: null, key: null, branch: null, commit: null };
const name = (cases: readonly PlacedCase[], transact = begin) =>
  resolveTestCases(
    pool,
    transact,
    { projectId, taskSlug: "t", execution, isWhole: true },
    identify(projectId, "t", cases),
  );

const stored = () => pool<(PlacedCase & { number: number })[]>`
  select number, suite, name, file from test_case where project_id = ${projectId} order by number`;

test("each gets a number in the order of the report, and keeps it", async () => {
  expect(await name(MANY)).toEqual(NUMBERS);
  expect([...(await stored())]).toEqual(MANY.map((place, index) => ({ number: index + 1, ...place })));
  expect(await name(MANY.toReversed())).toEqual(NUMBERS.toReversed());
});

test("nobody sees the highest number before all of them are there", async () => {
  let last: number | null = null;
  await name(MANY, (work) =>
    begin(async (sql) => {
      const result = await work(sql);
      [{ last }] = await pool<[{ last: number | null }]>`
        select max(number) as last from test_case where project_id = ${projectId}`;
      return result;
    }),
  );
  expect(last).toBeLessThan(COUNT);
});

test("where the transaction fails, the next one adds what is missing", async () => {
  const failing = <T>(work: (sql: Tx) => Promise<T>) =>
    begin(async (sql): Promise<T> => {
      await work(sql);
      throw new Error("The end");
    });
  expect(name(MANY, failing)).rejects.toThrow("The end");
  expect(await name(MANY)).toEqual(NUMBERS);
});

test("four that bring the same ones at once name them alike", async () => {
  const named = await Promise.all([0, 1, 2, 3].map(() => name(MANY)));
  for (const numbers of named) expect(numbers).toEqual(NUMBERS);
});

test.each([1, COUNT])(
  "what an upload of the same build moves after the cases were looked up is not added again (%i)",
  async (count) => {
    const path = `POST /projects/${projectId}/test-runs?task_slug=t&execution_key=`;
    const named = Array.from({ length: count }, (_, index) => `moved ${index}`);
    const upload = async (build: string, file: string) =>
      await ask(path + build, {
        key,
        body: `<testsuite>${named.map((name) => `<testcase classname="s" name="${name}" file="${file}"/>`).join("")}</testsuite>`,
      });
    await upload("before", "a/x.ts");
    const afterAnother = async <T>(work: (sql: Tx) => Promise<T>) => {
      expect((await upload("build", "b/x.ts")).status).toBe(201);
      return await begin(work);
    };
    const scope = { projectId, taskSlug: "t", execution: { ...execution, key: "build" }, isWhole: true };
    const cases = identify(
      projectId,
      "t",
      named.map((name) => ({ suite: "s", name, file: "b/x.ts" })),
    );
    expect(await resolveTestCases(pool, afterAnother, scope, cases)).toEqual(NUMBERS.slice(0, count));
  },
);

test("what the database refuses at the end of a copy fails at once", async () => {
  const place = { suite: "s", name: "there already", file: null };
  expect(await name([place])).toEqual([1]);
  const again = { ...place, identity: identityOf(projectId, "t", place), ownerList: null };
  const twice = begin((sql) => insertTestCases(sql, pool, projectId, "t", [again], { last: 1 }));
  expect(await twice.catch((error) => error.code)).toBe("23505");
});

test("two places of a report are two cases, also where another report moves one to the other meanwhile", async () => {
  const [before, after] = [
    { suite: "s", name: "moved", file: "a/x.ts" },
    { suite: "s", name: "moved", file: "b/x.ts" },
  ];
  expect(await name([before])).toEqual([1]);
  let tries = 0;
  const both = await name([before, after], async (work) => {
    if (tries++ === 0) expect(await name([after])).toEqual([1]);
    return await begin(work);
  });
  expect([both, tries]).toEqual([[2, 1], 2]);
  expect((await stored()).map(({ number, file }) => [number, file])).toEqual([
    [1, "b/x.ts"],
    [2, "a/x.ts"],
  ]);
  expect(await name([before, after])).toEqual([2, 1]);
});
