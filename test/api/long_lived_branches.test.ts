import { beforeEach, describe, expect, test } from "bun:test";
import { type Asking, createAsking, filledLists } from "../asking.ts";
import { createHarness } from "../harness.ts";

const { ask, acme, addProject } = await createHarness();

let own: Asking;
beforeEach(async () => {
  own = createAsking(ask, await addProject(acme));
});

const upload = (letters: string, query: string) => own.upload(letters, `complete=true&${query}`);

describe("a long-lived branch", () => {
  test("is compared with its own builds, and with the default branch where it has none", async () => {
    await upload("fpp", "branch=main");
    expect(filledLists(await upload("ffp", "branch=release/1"))).toEqual({ stillFailing: 1, newFailures: 1 });
    // The default branch goes on; what the release fails with is its own.
    await upload("ppp", "branch=main");
    expect(filledLists(await upload("fff", "branch=release/1"))).toEqual({ stillFailing: 2, newFailures: 1 });
    // The same could come from there.
    expect(filledLists(await upload("ppf", "branch=feature"))).toEqual({ alsoFailingOnMain: 1 });
  });

  test("is one by the patterns of the project", async () => {
    const patch = { longLivedBranches: ["v*"] };
    expect(await own.patch("", patch)).toMatchObject(patch);
    await upload("ppp", "branch=main");
    for (let build = 0; build < 2; build++) {
      const [line, other] = [await upload("fpp", "branch=v1"), await upload("pfp", "branch=release/1")];
      expect([filledLists(line), filledLists(other)]).toEqual([
        build === 0 ? { newFailures: 1 } : { stillFailing: 1 },
        { newFailures: 1 },
      ]);
    }
  });

  test("is not meant by a pull request whose branch has such a name", async () => {
    await upload("ppp", "branch=main");
    await upload("fpp", "branch=release/1&pull_request=7");
    expect(filledLists(await upload("fpp", "branch=release/1&pull_request=7"))).toEqual({ newFailures: 1 });
    expect(filledLists(await upload("fpp", "branch=release/1"))).toEqual({ newFailures: 1 });
  });

  test.each([["a*"], ["release/**"], ["a_c", "a%"]])("takes %s literally, but for the star", async (...patterns) => {
    const answer = await own.call("PATCH", "", { longLivedBranches: patterns });
    expect(answer.status).toBe(200);
    await upload("ppp", "branch=main");
    await upload("fpp", "branch=abc");
    expect(filledLists(await upload("fpp", "branch=abc"))).toEqual(
      patterns[0] === "a*" ? { stillFailing: 1 } : { newFailures: 1 },
    );
  });

  test("is never every branch", async () => {
    for (const pattern of ["*", "**"]) {
      const { status, body } = await own.call("PATCH", "", { longLivedBranches: [pattern] });
      expect([status, body.error.message]).toEqual([
        400,
        `Cannot read "longLivedBranches.0": expected a pattern that does not match every branch, got "${pattern}"`,
      ]);
    }
  });

  describe("that fails now", () => {
    const GONE = "the session of the buyer is gone";
    const send = async (branch: string, message?: string) => {
      const failure = message === undefined ? "" : `<failure message="${message}">at f (src/pay.ts:3:1)</failure>`;
      const body = `<testsuite name="s"><testcase classname="c" name="a" file="a.ts">${failure}</testcase></testsuite>`;
      return await own.uploadReport(body, `complete=true&gate=new&exit_code=1&branch=${branch}`);
    };
    beforeEach(async () => {
      await send("main");
      for (let build = 0; build < 2; build++) await send("release/1", GONE);
    });

    test("explains what a branch that comes from it fails with, in the same words", async () => {
      expect(filledLists(await send("backport", GONE))).toEqual({ alsoFailingOnMain: 1 });
      expect(filledLists(await send("other", "the export has no header at all"))).toEqual({ newFailures: 1 });
    });

    test("explains nothing once it is mended", async () => {
      await send("release/1");
      expect((await send("late", GONE)).gate).toMatchObject({ pass: false });
    });
  });
});
