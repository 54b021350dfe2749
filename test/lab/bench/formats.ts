/**
 * How long reading 100,000 test cases of a format takes beside its parser alone: `bun test/lab/bench/formats.ts [format]`.
 * Formats that are neither XML nor JSON have no parser of their own, and their time is given alone.
 */

import { crc32 } from "node:zlib";
import { readReport } from "../../../src/reports/read.ts";
import { CASES, JSON_DOCUMENTS, JSON_LINES } from "./json_formats.ts";

const ROUNDS = 5;

const repeat = (toText: (n: number) => string, count = CASES): string =>
  Array.from({ length: count }, (_, n) => toText(n)).join("");
const failsAt = (n: number): boolean => n % 20 === 0;
const trace = "com.acme.SoldOut: no more\n\tat com.acme.Cart.add(Cart.java:12)\n\tat com.acme.Shop.run(Shop.java:99)";

const XML: Record<string, () => string> = {
  testng: () =>
    `<testng-results failed="${CASES / 20}"><suite name="s"><test name="t"><class name="com.acme.CartTest">${repeat(
      (n) =>
        `<test-method status="${failsAt(n) ? "FAIL" : "PASS"}" signature="adds${n}()" name="adds${n}" duration-ms="3">` +
        `${failsAt(n) ? `<exception class="com.acme.SoldOut"><message><![CDATA[no more]]></message><full-stacktrace><![CDATA[${trace}]]></full-stacktrace></exception>` : ""}` +
        `<reporter-output></reporter-output></test-method>`,
    )}</class></test></suite></testng-results>`,
  ctest: () =>
    `<Site Name="h"><Testing><TestList>${repeat((n) => `<Test>./t${n}</Test>`)}</TestList>${repeat(
      (n) =>
        `<Test Status="${failsAt(n) ? "failed" : "passed"}"><Name>t${n}</Name><Path>.</Path><FullName>./t${n}</FullName><Results>` +
        `<NamedMeasurement type="numeric/double" name="Execution Time"><Value>0.01</Value></NamedMeasurement>` +
        `<Measurement><Value>${failsAt(n) ? "is 6, expected 7" : ""}</Value></Measurement></Results></Test>`,
    )}</Testing></Site>`,
  boost: () =>
    `<TestLog><TestSuite name="m">${repeat(
      (n) =>
        `<TestCase name="t${n}" file="a.cpp" line="3">${failsAt(n) ? `<Error file="a.cpp" line="3"><![CDATA[check a == b has failed]]></Error>` : ""}<TestingTime>85</TestingTime></TestCase>`,
    )}</TestSuite></TestLog>`,
  catch2: () =>
    `<Catch2TestRun name="m">${repeat(
      (n) =>
        `<TestCase name="t${n}" tags="[a]" filename="a.cpp" line="3">${failsAt(n) ? `<Expression success="false" type="CHECK" filename="a.cpp" line="4"><Original>a == b</Original><Expanded>1 == 2</Expanded></Expression>` : ""}` +
        `<OverallResult success="${!failsAt(n)}" durationInSeconds="0.1"/></TestCase>`,
    )}<OverallResultsCases successes="${CASES * 0.95}" failures="${CASES / 20}" expectedFailures="0"/></Catch2TestRun>`,
  sonar: () =>
    `<testExecutions version="1"><file path="a.js">${repeat(
      (n) =>
        `<testCase name="t${n}" duration="3">${failsAt(n) ? `<failure message="no">${trace}</failure>` : ""}</testCase>`,
    )}</file></testExecutions>`,
};

const goText = () =>
  `${repeat((n) => `=== RUN   TestA${n}\n${failsAt(n) ? "    a_test.go:3: no more\n" : ""}--- ${failsAt(n) ? "FAIL" : "PASS"}: TestA${n} (0.00s)\n`)}FAIL\nFAIL\texample.com/a\t1.000s\n`;

function subunitStream(): Buffer {
  const packet = (status: number, name: string): Buffer => {
    const head = Buffer.from([0xb3, 0x29, status, 9 + name.length, name.length, ...Buffer.from(name), 0, 0, 0, 0]);
    head.writeUInt32BE(crc32(head.subarray(0, -4)), head.length - 4);
    return head;
  };
  const ends = (n: number) => [packet(2, `m.C.t${n}`), packet(failsAt(n) ? 6 : 3, `m.C.t${n}`)];
  return Buffer.concat(Array.from({ length: CASES }, (_, n) => ends(n)).flat());
}

const SOURCES: Record<string, () => { bytes: Buffer; parse?: () => unknown }> = {
  ...Object.fromEntries(
    Object.entries(XML).map(([format, toText]) => [
      format,
      () => {
        const text = toText();
        return { bytes: Buffer.from(text), parse: () => Bun.XML.parse(text, { compact: false }) };
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(JSON_DOCUMENTS).map(([format, [begin, test, end]]) => [
      format,
      () => {
        const text = begin + Array.from({ length: CASES }, (_, n) => JSON.stringify(test(n))).join(",") + end;
        return { bytes: Buffer.from(text), parse: () => JSON.parse(text) };
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(JSON_LINES).map(([format, [begin, test, end]]) => [
      format,
      () => {
        const all = [begin, ...Array.from({ length: CASES }, (_, n) => test(n)).flat(), end];
        const text = all.map((one) => JSON.stringify(one)).join("\n");
        return { bytes: Buffer.from(text), parse: () => text.split("\n").map((line) => JSON.parse(line)) };
      },
    ]),
  ),
  go: () => ({ bytes: Buffer.from(goText()) }),
  subunit: () => ({ bytes: subunitStream() }),
};

/** The fastest of several rounds, in milliseconds. */
function measure(run: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    Bun.gc(true);
    const start = performance.now();
    run();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

for (const format of process.argv[2] ? [process.argv[2]] : Object.keys(SOURCES)) {
  const { bytes, parse } = SOURCES[format]!();
  const parser = parse && measure(parse);
  const reader = measure(() => {
    const { cases } = readReport([{ name: format, bytes }], { maxInflatedBytes: 2 ** 28 });
    if (cases.length !== CASES) throw new Error(`${format}: ${cases.length} cases`);
  });
  const beside = parser ? `, parser ${parser.toFixed(0)} ms, ${(reader / parser).toFixed(1)} times` : "";
  console.log(`${format}: ${(bytes.length / 2 ** 20).toFixed(1)} MiB, reader ${reader.toFixed(0)} ms${beside}`);
}
