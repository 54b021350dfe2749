/** XML that is well formed and yet nothing that a test runner would write. */

import { describe, expect, test } from "bun:test";
import { read, refusalOf } from "./reading.ts";

const MEBIBYTE = 1_048_576;
const attributes = (count: number) => Array.from({ length: count }, (_, index) => `a${index}=""`).join(" ");
const suite = (inner: string) => `<testsuite>\n<testcase name="one"/>\n${inner}</testsuite>`;
const failed = (message: string) => suite(`<testcase name="x"><failure message=${message}/></testcase>`);

describe("an attribute", () => {
  test("of 15 MiB is cut, with a warning", () => {
    const { cases, warnings } = read(failed(`"${"m".repeat(15 * MEBIBYTE)}"`));
    expect(cases[1]!.message).toHaveLength(65_536);
    expect(warnings).toEqual(["Cut 1 message to 64 KiB"]);
  });

  test.each([
    ["in double quotes", `"${"m".repeat(17 * MEBIBYTE)}"`],
    ["in single quotes, with the others", `'${`m"`.repeat(9 * MEBIBYTE)}'`],
    ["that is to be mended", `"${"<m & n".repeat(3 * MEBIBYTE)}"`],
  ])("of more than 16 MiB is refused: %s", (_, message) => {
    expect(refusalOf(failed(message))).toBe(`line 3: the attribute message of the tag <failure> is longer than 16 MiB`);
  });
});

describe("an element", () => {
  test("may have 1,000 attributes, and no more", () => {
    expect(read(suite(`<testcase name="x" ${attributes(999)}/>`)).cases).toHaveLength(2);
    const reason = `line 3: the tag <testcase> has more than 1,000 attributes`;
    for (const inner of [
      `<testcase name="x" ${attributes(1_000)}/>`,
      `<testcase name="x" ${attributes(100_000)}/>`,
      // It is read as if the character were escaped.
      `<testcase name="a < b" ${attributes(1_000)}/>`,
    ])
      expect(refusalOf(suite(inner))).toBe(reason);
  });

  test("may be quoted with more of them where it is no markup", () => {
    const quoted = `<svg ${attributes(2_000)}>`;
    const out = `<system-out><![CDATA[${quoted}${"o".repeat(9_000)}]]></system-out>`;
    expect(read(suite(`<!-- ${quoted} --><testcase name="x">${out}</testcase>`)).cases[1]!.output).toContain(quoted);
    expect(refusalOf(suite(`<testcase name="x">${out}</testcase>${quoted}</svg>`))).toContain(
      "tag <svg> has more than",
    );
  });
});

describe("text after the end of a report", () => {
  const green = `<testsuites><testsuite name="s"><testcase name="a"/></testsuite></testsuites>`;

  test("is left out with a warning", () => {
    for (const end of ["\nerror: Test failed\n", "\n2 > 1 & 1 < 2\n", "\nsee <b>above</b>"]) {
      const { cases, partial, warnings } = read(green + end);
      expect([end, cases.length, partial]).toEqual([end, 1, false]);
      expect(warnings).toEqual([`Left out the text after the end of the report: "${end.trim()}"`]);
    }
  });

  test("does not hide another report behind it, nor that this one breaks off", () => {
    expect(read(`${green}\ntext\n${green}`).cases).toHaveLength(2);
    expect(read(`${green}\ntext\n<testsuite name="t"/>`).warnings.at(-1)).toContain("It holds no test case");
    expect(read(`<testsuites><testsuite name="s"><testcase name="a"/>\nKilled`).partial).toBe(true);
  });
});
