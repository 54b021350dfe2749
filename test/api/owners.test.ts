import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const put = (content: string, query = "", key = own.key) =>
  ask(`PUT /projects/${own.project}/owners${query}`, {
    ...{ key, body: content, headers: { "content-type": "text/plain" } },
  });
const stored = async () => await own.get("/owners");

type Case = { suite?: string; name: string; file?: string; fails?: boolean };
const report = (...cases: Case[]) =>
  `<testsuite>${cases
    .map(
      ({ suite = "s", name, file, fails }) =>
        `<testcase classname="${suite}" name="${name}"${file ? ` file="${file}"` : ""}>${
          fails ? `<failure message="${name} broke"/>` : ""
        }</testcase>`,
    )
    .join("")}</testsuite>`;
const upload = (body: string, query = "") => own.uploadReport(body, `branch=main${query}`);

const catalogue = async (query = "") => await own.list(`/test-cases?limit=100${query}`);
/** Owners by the name of the case. */
const owners = async (query = ""): Promise<Record<string, string[]>> =>
  Object.fromEntries((await catalogue(query)).map(({ name, owners }: any) => [name, owners]));
const CASES = report(
  { name: "adds", file: "src/cart/add.test.ts" },
  { name: "pays", file: "src/pay/pay.test.ts" },
  { name: "java", suite: "com.acme.cart.CartTest" },
  { name: "lost" },
);
const FILE = "/src/cart/ @cart\n/src/pay/ @pay @finance\nclass:com.acme.cart.** @cart\n";

describe("PUT /projects/{projectId}/owners", () => {
  test("gives all test cases their owners, those that are there and those that come", async () => {
    await upload(CASES);
    expect(await owners()).toEqual({ adds: [], pays: [], java: [], lost: [] });
    const answer = await put(FILE, "?path=.github/CODEOWNERS&branch=main&commit=abc");
    expect(answer.body).toEqual({
      ...{ content: FILE, syntax: "github", path: ".github/CODEOWNERS", branch: "main", commit: "abc" },
      ...{ storedAt: expect.any(String), warnings: [], testCases: 4, unowned: 1, stored: true },
    });
    const expected = { adds: ["@cart"], pays: ["@pay", "@finance"], java: ["@cart"], lost: [] };
    expect(await owners()).toEqual(expected);
    await upload(report({ name: "new", file: "/home/runner/work/shop/shop/src/pay/new.test.ts" }), "&execution_key=2");
    expect(await owners()).toEqual({ ...expected, new: ["@pay", "@finance"] });
    expect((await catalogue())[1]).toMatchObject({ owner: "@pay", owners: ["@pay", "@finance"] });
  });

  test("a test case that moves follows its new file", async () => {
    await put(FILE);
    await upload(report({ name: "adds", file: "src/cart/add.test.ts" }));
    await upload(report({ name: "adds", file: "src/pay/add.test.ts" }), "&execution_key=2");
    expect(await owners()).toEqual({ adds: ["@pay", "@finance"] });
  });

  test("another file changes all of them, an empty one takes their owners away", async () => {
    await upload(CASES);
    await put(FILE);
    await put("* @all\n/src/cart/\n");
    expect(await owners()).toEqual({ adds: [], pays: ["@all"], java: ["@all"], lost: ["@all"] });
    expect((await put(" \n")).body).toMatchObject({ content: null, storedAt: null, unowned: 4, stored: true });
    expect(await owners()).toEqual({ adds: [], pays: [], java: [], lost: [] });
    expect((await put("")).body.stored).toBe(false);
  });

  test("an owner that was set by hand stays, until it is taken away", async () => {
    await upload(CASES);
    const id = (await catalogue())[0].id;
    const set = async (owner: string | null) => (await own.patch(`/test-cases/${id}`, { owner })).owners;
    expect(await set("ada")).toEqual(["ada"]);
    await put(FILE);
    expect((await owners())["adds"]).toEqual(["ada"]);
    expect(await set(null)).toEqual(["@cart"]);
  });

  test("the same file is not stored again, and one of another branch not at all", async () => {
    expect((await put(FILE, "?branch=main")).body.stored).toBe(true);
    const { storedAt } = await stored();
    expect((await put(FILE, "?branch=main&commit=later")).body).toMatchObject({
      stored: false,
      storedAt,
      commit: null,
    });
    expect((await put("* @other", "?branch=feature")).body).toMatchObject({ stored: false, content: FILE });
    expect((await put(FILE, "?syntax=gitlab")).body).toMatchObject({ stored: true, syntax: "gitlab" });
  });

  test("lines that cannot be read are warnings; what cannot be a file is refused", async () => {
    const { body } = await put("/a @a\n/b nobody\n");
    expect(body.warnings).toEqual([
      'Line 2: expected an owner such as "@name", "@group/team" or an e-mail address, got "nobody"',
    ]);
    expect((await stored()).warnings).toEqual(body.warnings);
    const message = async (content: string, query?: string) => {
      const { status, body } = await put(content, query);
      return [status, body.error?.message];
    };
    expect(await message("#".repeat(524_289))).toEqual([
      400,
      "Cannot read the body: expected a file of at most 512 KiB",
    ]);
    expect(await message("a\0b @x")).toEqual([
      400,
      "Cannot read the body: expected a text without NUL and broken characters",
    ]);
    expect(await message("", "?syntax=svn")).toEqual([
      400,
      'Cannot read "syntax": expected "github" or "gitlab", got "svn"',
    ]);
    expect(await message("\n".repeat(20_000))).toEqual([
      400,
      "Cannot read the body: expected a file of at most 20,000 lines",
    ]);
    const json = { "content-type": "application/json" };
    const asJson = await ask(`PUT /projects/${own.project}/owners`, { key: own.key, body: "{}", headers: json });
    expect([asJson.status, asJson.body.error.message]).toEqual([400, expect.stringContaining("got JSON")]);
    expect(await stored()).toMatchObject({ content: "/a @a\n/b nobody\n" });
  });

  test("rules that take too long are refused, and test cases that come later keep their results without an owner", async () => {
    const costly = (owner: string) => `/**/*b ${owner}\n`.repeat(19_000);
    await put(costly("@x"));
    const deep = report({ name: "deep", file: `${"a/".repeat(90)}deep.ts` }, { name: "flat", file: "ab" });
    await upload(deep);
    expect(await owners()).toEqual({ deep: [], flat: ["@x"] });
    const { status, body } = await put(costly("@y"));
    expect([status, body.error.message]).toEqual([400, expect.stringContaining("its patterns take too long")]);
    expect((await put("/ab @z")).status).toBe(200);
    expect(await owners()).toEqual({ deep: [], flat: ["@z"] });
  });

  test("a key that uploads may store it, one that reads may not", async () => {
    const make = async (scope: string) => (await own.post("/keys", { name: scope, scope })).key;
    expect((await put(FILE, "", await make("upload"))).status).toBe(200);
    expect((await put("* @x", "", await make("read"))).status).toBe(401);
    expect((await stored()).content).toBe(FILE);
  });

  test("two that come at once leave the owners of one of them", async () => {
    await upload(CASES);
    await Promise.all([put("* @one"), put("* @two"), upload(report({ name: "new" }), "&execution_key=2")]);
    const found = Object.values(await owners()).flat();
    const { content } = await stored();
    expect(found).toEqual(Array(5).fill(content.slice(2)));
  });
});

describe("owner=", () => {
  test("filters test cases, alone and with a sort", async () => {
    await upload(CASES);
    await put(FILE);
    const [{ id }] = (await catalogue()).slice(-1);
    await own.patch(`/test-cases/${id}`, { owner: "@cart" });
    for (const sort of ["", "&sort=lastRunAt"]) {
      expect(Object.keys(await owners(`&owner=@cart${sort}`)).sort()).toEqual(["adds", "java", "lost"]);
      expect(Object.keys(await owners(`&owner=@finance${sort}`))).toEqual(["pays"]);
      expect(await owners(`&owner=@nobody${sort}`)).toEqual({});
    }
    await own.patch(`/test-cases/${id}`, { owner: null });
    expect(Object.keys(await owners("&owned=false"))).toEqual(["lost"]);
    expect(Object.keys(await owners("&owned=true"))).toEqual(["adds", "pays", "java"]);
  });

  test("filters the failures of an execution, and its bug reports", async () => {
    await put(FILE);
    const { executionId } = await upload(
      report(
        { name: "adds", file: "src/cart/add.test.ts", fails: true },
        { name: "pays", file: "src/pay/pay.test.ts", fails: true },
        { name: "lost", fails: true },
      ),
    );
    const failures = async (query: string) => {
      const body = await own.get(`/executions/${executionId}/failures${query}`);
      const names = body.causes.flatMap(({ failures }: any) => failures.map(({ name, owners }: any) => [name, owners]));
      return [body.causeCount, names];
    };
    expect(await failures("?owner=@cart")).toEqual([1, [["adds", ["@cart"]]]]);
    expect(await failures("?owner=@finance")).toEqual([1, [["pays", ["@pay", "@finance"]]]]);
    expect((await failures(""))[0]).toBe(3);
    const bugs = async (query: string) => (await own.list(`/bug-reports${query}`)).map(({ owners }: any) => owners);
    expect(await bugs("?owner=@pay")).toEqual([["@finance", "@pay"]]);
    expect(await bugs("?owner=@x")).toEqual([]);
    expect(await bugs("")).toHaveLength(3);
  });
});
