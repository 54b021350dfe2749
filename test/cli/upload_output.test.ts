/** What is said of a run in the languages of CI systems: tests have names that would be commands and markup. */

import { describe, expect, test } from "bun:test";
import { toAnnotations, type AnnotatedFailure } from "../../src/cli/annotations.ts";
import { toSummary } from "../../src/cli/job_summary.ts";
import { toPlainLine } from "../../src/cli/output.ts";
import type { ReportedRun } from "../../src/wording/run_line.ts";

const NONE = {
  ...{ newFailures: 0, unclearFailures: 0, flakyFailures: 0, alsoFailingOnMain: 0 },
  ...{ stillFailing: 0, quarantinedFailures: 0, incidentFailures: 0 },
};
const RUN: ReportedRun = {
  ...{ taskSlug: "unit", passed: 3, failed: 1, skipped: 0, flaky: 0, warnings: [], outage: false, attempt: 1 },
  ...{ url: "https://assay.test/projects/p/executions/e", arrivedShards: [1], missingShards: [], reason: null },
  status: "failed",
  verdict: "failed",
  counts: { ...NONE, newFailures: 1 },
};
const GREEN: ReportedRun = { ...RUN, status: "passed", verdict: "passed", failed: 0, counts: NONE };

const failure = (more: Partial<AnnotatedFailure> = {}): AnnotatedFailure => ({
  suite: "cart",
  name: "adds",
  file: "test/cart.test.ts",
  line: 12,
  message: "expected 2, got 3",
  blame: "new",
  ...more,
});
const HOSTILE = `100%\r\n::error file=x,line=1::pwned\n##[error]pwned ##vso[task.complete result=Failed;]\u001b[31m\u202e`;

const asIs = (file: string) => file;

describe("annotations", () => {
  test("at GitHub are errors at their lines, ten at most", () => {
    const [first, ...rest] = toAnnotations("github", RUN, Array(11).fill(failure()), (file) => `web/${file}`);
    expect(first).toBe("::error file=web/test/cart.test.ts,line=12,title=cart > adds::expected 2, got 3");
    expect(rest).toHaveLength(9);
    const unknown = failure({ file: null, line: null, message: null, suite: "" });
    expect(toAnnotations("github", RUN, [unknown], asIs)).toEqual(["::error title=adds::adds failed"]);
    expect(toAnnotations("github", RUN, [failure({ line: null })], asIs)).toEqual([
      "::error file=test/cart.test.ts,title=cart > adds::expected 2, got 3",
    ]);
  });

  test("at GitHub hold whatever is in a name or a message as text", () => {
    const hostile = failure({ suite: "", name: HOSTILE, file: "a,line=9::b\n%", message: HOSTILE });
    const [line, ...more] = toAnnotations("github", RUN, [hostile], asIs);
    expect(more).toEqual([]);
    const data = "100%25%0A::error file=x,line=1::pwned%0A# #[error]pwned # #vso[task.complete result=Failed;] [31m ";
    const title = data.replaceAll(":", "%3A").replaceAll(",", "%2C");
    expect(line).toBe(`::error file=a%2Cline=9%3A%3Ab%0A%25,line=12,title=${title}::${data}`);
  });

  test("at GitHub are cut, and not in the middle of a character", () => {
    const [line] = toAnnotations("github", RUN, [failure({ message: `${"x".repeat(1_999)}😀` })], asIs);
    expect(line!.isWellFormed()).toBe(true);
    expect(line).toEndWith(`::${"x".repeat(1_999)}\ufffd`);
  });

  test("elsewhere are a line of the system's own, or none", () => {
    const url = "https://assay.test/projects/p/executions/e";
    expect(toAnnotations("gitlab", GREEN, [], asIs)).toEqual([`Test results: ${url}`]);
    expect(toAnnotations("teamcity", RUN, [], asIs)).toEqual([
      "##teamcity[buildStatus text='{build.status.text}; Assay: unit 3 passed, 1 failed (1 new), 0 skipped, attempt 1']",
    ]);
    expect(toAnnotations("azure", RUN, [], asIs)).toEqual([
      "##vso[task.logissue type=error]FAILED Assay: unit 3 passed, 1 failed (1 new), 0 skipped, attempt 1",
    ]);
    expect(toAnnotations("azure", GREEN, [], asIs)).toEqual([]);
    expect(toAnnotations("jenkins", RUN, [failure()], asIs)).toEqual([]);
    expect(toAnnotations(undefined, RUN, [failure()], asIs)).toEqual([]);
  });

  test("elsewhere hold the name of a task as text", () => {
    const named = { ...RUN, taskSlug: `a']|\n##teamcity[buildStop] ü 5%` };
    const [teamcity] = toAnnotations("teamcity", named, [], asIs);
    expect(teamcity).toContain("unit".replace("unit", "Assay: a|'|]|| # #teamcity|[buildStop|] |0x00fc 5% 3 passed"));
    const [azure] = toAnnotations("azure", { ...RUN, taskSlug: "50%\n##vso[task.complete]" }, [], asIs);
    expect(azure).toStartWith("##vso[task.logissue type=error]FAILED Assay: 50%AZP25 # #vso[task.complete] 3 passed");
  });

  test("a line of others is one line, and no command", () => {
    const plain = "100% ::error file=x,line=1::pwned # #[error]pwned # #vso[task.complete result=Failed;] [31m ";
    expect(toPlainLine(HOSTILE)).toBe(plain);
  });
});

describe("the job summary", () => {
  const ROOM = 2 ** 20;

  test("tells the verdict, where to look, and the failures, new ones first", () => {
    const old = failure({ name: "removes", blame: "still_failing", file: null, line: null, message: null });
    expect(toSummary(RUN, [old, failure()], ROOM)).toBe(
      [
        "### FAILED unit",
        "",
        "3 passed&#44; 1 failed &#40;1 new&#41;&#44; 0 skipped&#44; attempt 1 · " +
          '<a href="https://assay.test/projects/p/executions/e">Open in Assay</a>',
        "",
        "<details><summary><code>cart &#62; adds</code> (new) test&#47;cart&#46;test&#46;ts&#58;12</summary>",
        "",
        "<pre>expected 2, got 3</pre>",
        "",
        "</details>",
        "",
        "<p><code>cart &#62; removes</code> (still failing)</p>",
        "",
        "",
      ].join("\n"),
    );
    expect(toSummary(GREEN, [], ROOM)).toStartWith("### PASSED unit\n\n3 passed&#44; 0 failed");
  });

  test("holds names and messages as text, whatever markup they would be", () => {
    const name = "</code><script>alert(1)</script> [x](javascript:1) | `a` @team https://evil.test $x^2$ <!--";
    const message = "</pre></details><img src=x onerror=alert(1)>\n\n# heading\u001b[31m";
    const summary = toSummary({ ...RUN, taskSlug: "**t**\n# x" }, [failure({ name, message, file: "<b>" })], ROOM);
    const [, shown] = /<code>(.*)<\/code>/.exec(summary)!;
    expect(shown).toMatch(/^(?:[\p{L}\p{N} ]|&#\d+;)+$/u);
    expect(summary).toContain(
      "<pre>&lt;/pre&gt;&lt;/details&gt;&lt;img src=x onerror=alert(1)&gt;\n\n# heading [31m</pre>",
    );
    expect(summary).toStartWith("### FAILED &#42;&#42;t&#42;&#42; &#35; x\n");
    const tags = ["a", "/a", "details", "summary", "code", "/code", "/summary", "pre", "/pre", "/details"];
    expect([...summary.matchAll(/<(\/?\w+)/g)].map(([, tag]) => tag)).toEqual(tags);
  });

  test("has room for so many bytes, in whole entries, and says how many it leaves out", () => {
    const message = "ü".repeat(9_000);
    const failures = Array.from({ length: 60 }, (_, index) => failure({ name: `é ${index}`, message }));
    const all = toSummary(RUN, failures, ROOM);
    expect(all.match(/<details>/g)).toHaveLength(50);
    expect(all).toEndWith("</details>\n\n10 more\n\n");
    for (const room of [0, 100, 300, 9_000, 100_000]) {
      const some = toSummary(RUN, failures, room);
      expect(Buffer.byteLength(some)).toBeLessThanOrEqual(room);
      expect(some.match(/<details>/g)?.length).toBe(some.match(/<\/details>/g)?.length);
      if (room >= 300) expect(some).toMatch(/\d+ more\n\n$/);
    }
    expect(toSummary(RUN, failures, 100)).toBe("");
  });
});
