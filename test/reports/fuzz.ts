/**
 * Mutates reports for a while: `bun test/reports/fuzz.ts [seconds] [seed]`. Only a ReportError may come out, and soon.
 * `bun test/reports/fuzz.ts --truncations COUNT FORMAT [seed]` cuts reports of one format at random positions instead: none
 * may be read as whole and green although something is lost.
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { gzipSync } from "node:zlib";
import { type Report, ReportError } from "../../src/reports/report.ts";
import { createRandom } from "../random.ts";
import { GREEN_REPORTS } from "./green_reports.ts";
import { read, readWith, silentGreens } from "./reading.ts";
import { WRITTEN } from "./written.ts";

const [mode, ...options] = process.argv.slice(2);
const truncations = mode === "--truncations" ? { count: Number(options[0]), format: options[1] } : null;
const seconds = truncations ? 0 : Number(mode ?? 20);
const seed = Number((truncations ? options[2] : options[0]) ?? Date.now() % 2 ** 31);
console.log(`seed ${seed}`);
// A finding can be repeated with its seed.
const { integer, pick } = createRandom(seed);
const random = (below: number) => integer(0, below - 1);

const SPLICES = [
  ..."<>&\"'=/[]{},:;\0\n\x1b",
  ...["]]>", "<![CDATA[", "<!--", "-->", "<?", "?>", "&#0;", "&#xD800;", "&#27;[31m", "&amp;", "\x1b]8;;", "\x1b["],
  ...["\ufeff"],
  ...["<testcase name='x'>", "</testcase>", "<testcase/>", "</testsuite>", "<testsuite>", "<failure>"],
  ...["<skipped type='todo'/>"],
  ...[' time="1e999"', ' name=""', "<!DOCTYPE a [", "<!ENTITY a 'b'>", "[[ATTACHMENT|", "]]", "[[PROPERTY|a=b]]"],
  ...["null", "1e400", "-1", '"__proto__":', '"constructor"', "\\ud800", "\\u0000", "[[[[[[[[", '{"a":'],
  ...["\nok 1 a # SKIP", "\n    not ok 2 - b {\n", "\n}\n", "\n1..3\n", "\n  ---\n", "\n  ...\n", "\n# Subtest: c\n"],
  ...["Bail out!"],
  ...['\n{"Action":"fail","Package":"p"}\n', '\n{"Action":"run","Test":"T"}\n', "\nFAIL\tp [build failed]\n"],
  ...["--- PASS: T ("],
  ...["\n##teamcity[testStarted name='a' flowId='1']", "##teamcity[testFailed name='a' message='|0xD800|n"],
  ...["\n##teamcity[flowStarted flowId='2' parent='1']\n", "##teamcity[testRetrySupport enabled='true']"],
  ...["##teamcity[", "||||'"],
  ...['\n{"test":{"id":1,"name":"a b","suiteID":0,"groupIDs":[2,1e400]},"type":"testStart","time":1}\n'],
  ...['\n{"testID":1,"error":null,"type":"error","time":-1}\n', '\n{"success":null,"type":"done"}\n'],
  ...["<suite name='s'>", "</suite>", "<test name='t'>", "<status status='FAIL'/>"],
  ...["<kw type='teardown'><status status='FAIL'/></kw>", "<TestCase name='t'>"],
  ...["<OverallResultsAsserts failures='1'/>"],
  ...["<test-method name='t' status='SKIP' retried='true'>", "<Test Status='notrun'>"],
  ...["<Value encoding='base64' compression='gzip'>eJwDAAAAAAE=</Value>", "<Error>e</Error>"],
  ...["<OverallResult success='true' skips='1'/>", "<Section name='s'>", "<file path='p'>", "<testCase name='t'/>"],
  ...['\n{"testCaseStarted":{"id":"1","testCaseId":"1"}}\n', '"testRunFinished":{"success":true'],
  ...['\n{"type":"suite","event":"ok","passed":1}\n', '\n{ "type": "test", "name": "a$b#2", "event": "ok" }\n'],
  ...['\n{"nodeid":"a.py::b","when":"setup","outcome":"rerun","$report_type":"TestReport"}\n'],
  ...['"longrepr":["a",1,"Skipped: b"]', '"kind":"testEnded","messages":[{"symbol":"fail"}]'],
  ...['"nodeType":"Repetition","result":"Failed"', '"requestError":{"code":"ETIMEDOUT"}', '"status":"hook_error"'],
  ...["\n=== RUN   T\n", "\n--- PASS: T (0.00s)\n", "\nok  \tp\t0.1s\n", "\nFAIL\tp\t0.1s\n", "\n=== CONT  T\n"],
].map((text) => Buffer.from(text));

const folders = [`${import.meta.dir}/../fixtures`, `${import.meta.dir}/../../../shared/corpus`].filter(existsSync);
const files = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
);
const seeds = files
  .filter((file) => /\.(?:xml|json|tap|trx|ndjson|txt|bin)$/.test(file) && !file.endsWith("expected.json"))
  .map((file) => readFileSync(file))
  .filter(({ length }) => length < 50_000)
  .concat(Object.values(WRITTEN).map((text) => Buffer.from(text)));

function mutate(bytes: Buffer): Buffer {
  let out = bytes;
  for (let n = 1 + random(4); n > 0; n--) {
    const [at, length] = [random(out.length + 1), random(200)];
    const [before, after] = [out.subarray(0, at), out.subarray(at)];
    const other = pick(seeds);
    const from = random(other.length + 1);
    out = pick([
      () => before,
      () => Buffer.concat([before, after.subarray(length)]),
      () => Buffer.concat([before, pick(SPLICES), after]),
      () => Buffer.concat([before, pick(SPLICES), after.subarray(1)]),
      () => Buffer.concat([before, after.subarray(0, length), after]),
      () => Buffer.concat([before, other.subarray(from, from + length), after]),
      () => Buffer.concat([before, Buffer.from([random(256)]), after.subarray(1)]),
    ])();
  }
  const packed = random(40) === 0 ? gzipSync(out) : out;
  if (packed !== out && random(2) === 0) packed[random(packed.length)]! ^= 1 << random(8);
  return packed;
}

/** What report.ts promises. */
function broken({ cases, warnings, suite }: Report): string | null {
  const texts = [suite, ...warnings];
  for (const one of cases) {
    texts.push(one.suite, one.name, one.file, one.message, one.stack, one.output);
    texts.push(...Object.entries(one.properties ?? {}).flat());
    if (one.name === "" || one.name.length > 1000 || one.suite.length > 1000) return "a name";
    if (!["passed", "failed", "skipped"].includes(one.status) || (one.kind === null) !== (one.status !== "failed"))
      return "a status";
    if (one.durationMs !== null && !(Number.isSafeInteger(one.durationMs) && one.durationMs >= 0)) return "a duration";
    if (one.attempts < 1 || (one.flaky && one.status !== "passed")) return "attempts";
  }
  return texts.some((text) => text !== null && (text.includes("\0") || !text.isWellFormed())) ? "a text" : null;
}

/** Green reports show more of what is lost than those that hold failures from the beginning on. */
const GREEN = Object.values(GREEN_REPORTS).map((text) => Buffer.from(text));

function cutAtRandom(count: number, format: string | undefined): void {
  const wholes = [...seeds, ...GREEN].filter((bytes) => {
    try {
      return read(bytes).format === format;
    } catch {
      return false;
    }
  });
  if (wholes.length === 0) throw new Error(`No seed is of the format ${format}`);
  let found = 0;
  for (let n = 0; n < count; n++) {
    const bytes = pick(wholes);
    const [position] = silentGreens(bytes, [random(bytes.length)]);
    if (position === undefined) continue;
    found++;
    console.error(`Green although cut at ${position} of ${bytes.length}: ${bytes.subarray(0, 60).toString()}`);
  }
  console.log(format, { wholes: wholes.length, silentGreens: found });
  process.exit(found === 0 ? 0 : 1);
}
if (truncations) cutAtRandom(truncations.count, truncations.format);

const counts = { accepted: 0, partial: 0, refused: 0 };
let slowest = 0;
for (const end = Date.now() + seconds * 1000; Date.now() < end;) {
  const bytes = mutate(pick(seeds));
  const start = performance.now();
  try {
    const report = readWith({ maxInflatedBytes: 2 ** 24 }, bytes);
    counts[report.partial ? "partial" : "accepted"]++;
    const promise = broken(report);
    if (promise) throw new Error(`${promise} breaks the promise of report.ts`);
  } catch (error) {
    if (!(error instanceof ReportError)) {
      const finding = `${tmpdir()}/fuzz.bin`;
      await Bun.write(finding, bytes);
      console.error(`The bytes are in ${finding}`);
      throw error;
    }
    counts.refused++;
  }
  const took = performance.now() - start;
  if (took > slowest) slowest = took;
  if (took > 1000) console.error(`${bytes.length} bytes took ${took.toFixed(0)} ms`);
}
console.log({ ...counts, slowestMs: Math.round(slowest) });
