import { describe, expect, test } from "bun:test";
import { createHarness } from "../harness.ts";

const { ask, acme } = await createHarness();
const { project, key } = acme;
const headers = { accept: "text/csv" };

/** Reads lines without line breaks in their cells. */
const linesOf = (text: string) => text.split("\r\n").slice(0, -1);

describe("a list with Accept: text/csv", () => {
  test("is read page by page with the header X-Next-Cursor", async () => {
    for (const name of ["a", "b", "c", "d", "e"])
      await ask(`POST /projects/${project}/bug-reports`, { key, body: { title: `bug ${name}` } });
    const titles: string[] = [];
    let cursor = "";
    for (let pages = 1; ; pages++) {
      const answer = await ask(`GET /projects/${project}/bug-reports?limit=2${cursor}`, { key, headers });
      const [names, ...rows] = linesOf(answer.text);
      const index = names!.split(",").indexOf("title");
      titles.push(...rows.map((row) => row.split(",")[index]!));
      const next = answer.headers.get("x-next-cursor");
      if (next === null) {
        expect(pages).toBe(3);
        break;
      }
      cursor = `&cursor=${next}`;
    }
    expect(titles.sort()).toEqual(["bug a", "bug b", "bug c", "bug d", "bug e"]);
  });

  test("runs no formula that a test or a person wrote", async () => {
    const title = `=HYPERLINK("https://evil.example","open")`;
    await ask(`POST /projects/${project}/bug-reports`, { key, body: { title } });
    const body = `<testsuite name="@suite"><testcase name="+1+cmd|' /C calc'!A0" file="-x"/></testsuite>`;
    await ask(`POST /projects/${project}/test-runs?task_slug=unit`, { key, body });
    const bugs = await ask(`GET /projects/${project}/bug-reports?limit=1`, { key, headers });
    expect(bugs.text).toContain(`"'=HYPERLINK(""https://evil.example"",""open"")"`);
    const cases = await ask(`GET /projects/${project}/test-cases`, { key, headers });
    expect(cases.text).toContain(`,'@suite,'+1+cmd|' /C calc'!A0,'-x,`);
  });

  test("answers mistakes as JSON, and so does a route that is no list", async () => {
    const refused = await ask(`GET /projects/${project}/bug-reports?limit=0`, { key, headers });
    expect([refused.status, refused.body.error.code]).toEqual([400, "VALIDATION_ERROR"]);
    const one = await ask(`GET /projects/${project}`, { key, headers });
    expect([one.status, one.headers.get("content-type"), one.body.id]).toEqual([200, "application/json", project]);
  });
});
