/** The files that a task's runner writes: JUnit XML in the dialects of four of them, and the JSON of Jest. */

import type { Failure } from "./failures.ts";
import type { Task } from "./team.ts";

export type Reported = { name: string; area: string; file: string; durationMs: number; failure: Failure | null };

const escape = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const seconds = (ms: number) => (ms / 1000).toFixed(3);
const total = (cases: readonly Reported[]) => cases.reduce((sum, { durationMs }) => sum + durationMs, 0);
const failed = (cases: readonly Reported[]) => cases.filter(({ failure }) => failure !== null).length;
const counts = (cases: readonly Reported[]) =>
  `tests="${cases.length}" failures="${failed(cases)}" errors="0" skipped="0" time="${seconds(total(cases))}"`;

const element = (attributes: string, { durationMs, failure }: Reported, toFailure: (failure: Failure) => string) => {
  const open = `<testcase ${attributes} time="${seconds(durationMs)}"`;
  return failure ? `${open}>${toFailure(failure)}</testcase>` : `${open}/>`;
};

const failureElement = ({ type, message, stack }: Failure) =>
  `<failure message="${escape(message)}" type="${escape(type)}">${escape(stack)}</failure>`;

const byFile = (cases: readonly Reported[]) => [...Map.groupBy(cases, ({ file }) => file)];

const vitest = (cases: readonly Reported[]) => {
  const suites = byFile(cases).map(([file, own]) => {
    const inner = own.map((one) => element(`classname="${file}" name="${escape(one.name)}"`, one, failureElement));
    return `<testsuite name="${file}" ${counts(own)}>${inner.join("")}</testsuite>`;
  });
  return `<?xml version="1.0" encoding="UTF-8" ?><testsuites name="vitest tests" ${counts(cases)}>${suites.join("")}</testsuites>`;
};

/** mocha-junit-reporter: the message of the attribute, the stack below it. */
const cypress = (cases: readonly Reported[]) => {
  const suites = byFile(cases).map(([file, own]) => {
    const inner = own.map((one) => {
      const title = one.name.slice(one.name.indexOf(" ") + 1);
      return element(`name="${escape(one.name)}" classname="${escape(title)}"`, one, failureElement);
    });
    const area = own[0]!.name.slice(0, own[0]!.name.indexOf(" "));
    return `<testsuite name="Root Suite" file="${file}" tests="0" failures="0" time="0"></testsuite><testsuite name="${area}" file="${file}" ${counts(own)}>${inner.join("")}</testsuite>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?><testsuites name="Mocha Tests" ${counts(cases)}>${suites.join("")}</testsuites>`;
};

/** The message begins with the exception's name, and there is no type. */
const pytest = (cases: readonly Reported[]) => {
  const inner = cases.map((one) =>
    element(
      `classname="${one.file.replace(/\.py$/, "").replaceAll("/", ".")}" name="${escape(one.name)}"`,
      one,
      ({ type, message, stack }) => `<failure message="${escape(`${type}: ${message}`)}">${escape(stack)}</failure>`,
    ),
  );
  return `<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" ${counts(cases)} hostname="ci">${inner.join("")}</testsuite></testsuites>`;
};

const java = (cases: readonly Reported[]) => {
  const suites = byFile(cases).map(([file, own]) => {
    const name = file
      .replace(/^src\/test\/java\//, "")
      .replace(/\.java$/, "")
      .replaceAll("/", ".");
    const inner = own.map((one) => element(`name="${escape(one.name)}" classname="${name}"`, one, failureElement));
    return `<testsuite name="${name}" ${counts(own)}>${inner.join("")}</testsuite>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?><testsuites>${suites.join("")}</testsuites>`;
};

const jest = (cases: readonly Reported[]) => {
  const failures = failed(cases);
  const testResults = byFile(cases).map(([file, own]) => ({
    name: `/home/runner/work/shop/shop/${file}`,
    status: failed(own) > 0 ? "failed" : "passed",
    message: "",
    assertionResults: own.map(({ name, area, durationMs, failure }) => ({
      ancestorTitles: [area],
      title: name,
      fullName: `${area} ${name}`,
      status: failure ? "failed" : "passed",
      duration: durationMs,
      failureMessages: failure ? [failure.stack] : [],
    })),
  }));
  return JSON.stringify({
    numTotalTests: cases.length,
    numFailedTests: failures,
    numPassedTests: cases.length - failures,
    numPendingTests: 0,
    success: failures === 0,
    testResults,
  });
};

const WRITERS = { vitest, cypress, pytest, java, jest };

export const writeReport = ({ language }: Task, cases: readonly Reported[]): string => WRITERS[language](cases);
