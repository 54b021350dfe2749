import { describe, expect, test } from "bun:test";
import { emptyReport, erroredCase, type Report, type ReportedCase } from "../../src/reports/report.ts";
import { rootOf, withRelativePaths } from "../../src/rules/repository_root.ts";

const one = (file: string | null, more: Partial<ReportedCase> = {}): ReportedCase => ({
  ...erroredCase({ suite: "Cart", name: "adds", file }, "no"),
  ...more,
});
const report = (...cases: ReportedCase[]): Report => ({ ...emptyReport("junit"), cases });
const relative = (given: string | undefined, ...cases: ReportedCase[]) =>
  withRelativePaths(report(...cases), given).cases;

describe("the root", () => {
  test.each([
    ["/home/runner/work/web/web/src/a.test.ts", "/home/runner/work/web/web/"],
    ["/Users/runner/work/web/web/src/a.test.ts", "/Users/runner/work/web/web/"],
    ["/opt/actions-runner/_work/web/web/src/a.test.ts", "/opt/actions-runner/_work/web/web/"],
    ["C:\\actions-runner\\_work\\web\\web\\src\\a.test.ts", "C:/actions-runner/_work/web/web/"],
    ["C:\\agent\\_work\\1\\s\\src\\a.test.ts", "C:/agent/_work/1/s/"],
    ["/home/vsts/work/12/s/src/a.test.ts", "/home/vsts/work/12/s/"],
    ["D:\\a\\web\\web\\src\\a.test.ts", "D:/a/web/web/"],
    [
      "/home/gitlab-runner/builds/t1-token_x/0/acme/web/src/a.test.ts",
      "/home/gitlab-runner/builds/t1-token_x/0/acme/web/",
    ],
    ["/builds/acme/web/src/a.test.ts", "/builds/acme/web/"],
    ["/home/jenkins/agent/workspace/web@2/src/a.test.ts", "/home/jenkins/agent/workspace/web@2/"],
    ["/opt/teamcity/buildAgent/work/0123456789abcdef/src/a.test.ts", "/opt/teamcity/buildAgent/work/0123456789abcdef/"],
    ["file:///workspaces/web/src/a.test.ts", "/workspaces/web/"],
    ["/tmp/build-7/shop/unit/cart.test.ts", "/tmp/build-7/shop/"],
    ["/home/ada/shop/src/cart.test.ts", "/home/ada/shop/"],
    ["/usr/lib/python3/dist-packages/a.py", undefined],
    ["/home/ada/cart.test.ts", undefined],
    ["src/a.test.ts", undefined],
  ])("of %s is %p", (file, root) => expect(rootOf(undefined, [file])).toBe(root as string));

  test("is what is given, if a path is below it", () => {
    expect(rootOf("/srv/shop", ["/srv/shop/a.ts", "b.ts"])).toBe("/srv/shop/");
    expect(rootOf("C:\\shop\\", ["c:\\shop\\a.cs"])).toBe("C:/shop/");
    expect(rootOf("/srv/shop", ["/builds/acme/web/a.ts"])).toBe("/builds/acme/web/");
    expect(rootOf("/srv/shop", ["a.ts"])).toBe("/srv/shop/");
    for (const given of ["/", "", "shop", "../.."]) expect(rootOf(given, ["/srv/shop/a.ts"])).toBeUndefined();
  });

  test("that no system tells is what all paths have in common before a conventional directory", () => {
    expect(rootOf(undefined, ["/srv/x/shop/test/a/b.ts", "/srv/x/shop/test/c.ts"])).toBe("/srv/x/shop/");
    expect(rootOf(undefined, ["/srv/x/shop/test/b.ts", "/srv/x/shop/src/c.ts"])).toBeUndefined();
  });
});

describe("a report", () => {
  const root = "/home/runner/work/web/web";

  test("has relative paths in files, suites, messages and stacks", () => {
    const [found] = relative(
      undefined,
      one(`${root}/src/a.test.ts`, {
        suite: `${root}/src/a.test.ts > adds`,
        message: `ENOENT: '${root}/data.json', and (${root}/b.json)`,
        stack: `at add (${root}/src/a.ts:1:2)\nat file://${root}/src/b.ts:3:4\nat /other${root}/c.ts:5:6`,
        output: `${root}/kept`,
      }),
    );
    expect(found).toMatchObject({
      file: "src/a.test.ts",
      suite: "src/a.test.ts > adds",
      message: "ENOENT: 'data.json', and (b.json)",
      stack: `at add (src/a.ts:1:2)\nat src/b.ts:3:4\nat /other${root}/c.ts:5:6`,
      output: `${root}/kept`,
      reportedName: { suite: `${root}/src/a.test.ts > adds`, name: "adds", file: `${root}/src/a.test.ts` },
    });
  });

  test("of Windows has them, too, with the separators of the report in its texts", () => {
    const [found] = relative(
      "C:\\agent\\_work\\1\\s",
      one("c:\\agent\\_work\\1\\s\\test\\CartTests.cs", {
        stack: "at Cart.Add() in C:\\agent\\_work\\1\\s\\src\\Cart.cs:line 12",
      }),
    );
    expect(found).toMatchObject({ file: "test/CartTests.cs", stack: "at Cart.Add() in src\\Cart.cs:line 12" });
  });

  test("that has none, or paths elsewhere, stays as it is", () => {
    const cases = [one("src/a.test.ts"), one(null), one("/elsewhere/a.ts")];
    expect(withRelativePaths(report(...cases), "/srv/shop")).toEqual(report(...cases));
  });

  test("that names no file has them in its texts", () => {
    const [found] = relative("/srv/shop", one(null, { stack: "at /srv/shop/cart.ts:3:4" }));
    expect(found!.stack).toBe("at cart.ts:3:4");
  });

  test("a root is no part of a longer name, or of an address", () => {
    const [found] = relative(
      "/app",
      one("/app/src/a.ts", { message: "GET http://localhost/app/cart, /apples, /app/x" }),
    );
    expect(found!.message).toBe("GET http://localhost/app/cart, /apples, x");
  });
});
