import { expect, test } from "bun:test";
import { isFull } from "../depth.ts";
import { read } from "./reading.ts";

const ctrf = (extra: string) =>
  `{"reportFormat":"CTRF","results":{"tool":{"name":"x"},"summary":{"tests":1},"extra":[${extra}],"tests":[{"name":"a","status":"passed"}]}}`;

test.skipIf(!isFull)("JSON of so many values that they would take gigabytes is refused before they do", () => {
  for (const value of isFull ? ["{},", "[],", "[[[]]],"] : ["{},"]) {
    const text = ctrf(`${value.repeat(36_000_000 / value.length)}0`);
    expect(() => read(text)).toThrow("it holds too many values: reading them would take more than 512 MiB");
  }
});

test.skipIf(!isFull)("JSON of as many characters in texts is read", () => {
  const text = ctrf(`${JSON.stringify('{},[],"\\'.repeat(2_000_000))},${JSON.stringify("\\".repeat(9_000_000))}`);
  expect(read(text).cases).toHaveLength(1);
});

test("XML of so many elements that they would take gigabytes is refused before they do", () => {
  const many = "<a/>".repeat(2_100_000);
  for (const text of [
    `<TestRun>${many}<Results/></TestRun>`,
    `<testsuites><testcase name="a">${many}</testcase></testsuites>`,
  ])
    expect(() => read(text)).toThrow("it has more than 2,000,000 elements");
});

test.skipIf(!isFull)("so many lines that they would take gigabytes are refused before they do", () => {
  const lines = "\n".repeat(5_000_000);
  expect(() => read(`{"Action":"run","Package":"p","Test":"T"}\n${lines}`)).toThrow("it has more than 5,000,000 lines");
  expect(() => read(`1..1\nok 1 - a\n${lines}`)).toThrow("it has more than 5,000,000 lines");
});

test("a line of JSON, or an object, with so many values that they would take gigabytes is refused before it does", () => {
  const run = `{"Action":"run","Package":"p","Test":"T"}\n`;
  expect(() => read(`${run}{"Action":"pass","Package":"p","Test":"T","x":[${"{},".repeat(7_500_000)}{}]}`)).toThrow(
    "it holds too many values",
  );
  const keys = '"k":1,'.repeat(1_000_001);
  expect(() => read(`{"numTotalTests":1,"testResults":[],"x":{${keys}"k":1}}`)).toThrow("more than 1,000,000 keys");
});

test("of millions of tags and attachments of a case those that are kept are read", () => {
  const many = (list: string) =>
    `{"results":{"tool":{"name":"x"},"summary":{},"tests":[{"name":"a","status":"passed","duration":1,${list}}]}}`;
  const { cases } = read(many(`"tags":[${"1.5,".repeat(1_000_000)}1],"attachments":[${"{},".repeat(500_000)}{}]`));
  expect(cases).toMatchObject([{ name: "a", status: "passed" }]);
});

test.skipIf(!isFull)("XML with so much to mend that it would take gigabytes is refused before it does", () => {
  const inFailure = (text: string) => `<testsuite><testcase name="a"><failure>${text}</failure></testcase></testsuite>`;
  for (const text of ["&", "<", "]]>"])
    expect(() => read(inFailure(text.repeat(1_100_000)))).toThrow(
      "more than 1,000,000 of its characters are not escaped",
    );
  expect(() => read(inFailure("&#1;".repeat(1_100_000)))).toThrow("more than 1,000,000 references");
  expect(() => read(inFailure(`&${"<!---->".repeat(2_100_000)}`))).toThrow("more than 2,000,000 comments");
  expect(read(inFailure("a & b < c ".repeat(1_000))).cases).toHaveLength(1);
});
