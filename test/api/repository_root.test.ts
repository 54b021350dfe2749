import { describe, expect, test } from "bun:test";
import { type Asking, createAsking } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

const xml = (file: string, more = "") =>
  `<testsuites><testsuite name="cart"><testcase name="adds" classname="Cart" file="${file}">${more}</testcase></testsuite></testsuites>`;

const fresh = async () => createAsking(ask, await addProject(acme));
const upload = (project: Asking, query: string, body: string) => project.uploadReport(body, query);
const casesOf = async (project: Asking) => (await project.list("/test-cases")).map(({ file, runs }) => [file, runs]);

describe("repository_root", () => {
  test("makes one test of what several machines have in different directories", async () => {
    const project = await fresh();
    await upload(project, "repository_root=/srv/one/shop&execution_key=1", xml("/srv/one/shop/cart.js"));
    await upload(project, "repository_root=C:%5Ctwo%5Cshop&execution_key=2", xml("C:\\two\\shop\\cart.js"));
    await upload(project, "repository_root=&execution_key=3", xml("/home/runner/work/shop/shop/cart.js"));
    await upload(project, "execution_key=4", xml("cart.js"));
    expect(await casesOf(project)).toEqual([["cart.js", 4]]);
  });

  test("moves the history of a test that was stored with the whole path", async () => {
    const project = await fresh();
    await upload(project, "execution_key=1", xml("/srv/one/shop/cart.js"));
    expect(await casesOf(project)).toEqual([["/srv/one/shop/cart.js", 1]]);
    await upload(project, "repository_root=/srv/one/shop&execution_key=2", xml("/srv/one/shop/cart.js"));
    expect(await casesOf(project)).toEqual([["cart.js", 2]]);
  });

  test("leaves one bug of failures that differ in it alone", async () => {
    const project = await fresh();
    const failure = (root: string) => `<failure message="boom">Error: boom\n    at ${root}/cart.js:3:4</failure>`;
    for (const root of ["/srv/one/shop", "/srv/two/store"])
      await upload(
        project,
        `branch=main&repository_root=${root}&execution_key=${root}`,
        xml(`${root}/cart.js`, failure(root)),
      );
    const body = await project.get("/bug-reports");
    expect(body.data).toMatchObject([{ occurrences: 2 }]);
    const failures = await project.get(`/executions/${body.data[0].lastExecutionId}/failures`);
    expect(failures.causes[0]).toMatchObject({ stack: "Error: boom\n    at cart.js:3:4" });
  });
});
