import { expect, test } from "bun:test";
import { adviceFor } from "../../src/rules/upload_advice.ts";

const refused = (text: string, statusCode = 400) => adviceFor({ outcome: "refused", statusCode, text });
const warned = (text: string) => adviceFor({ outcome: "warned", statusCode: 201, text });

test("each usual refusal leads to what to do about it", () => {
  const cases: [text: string, advice: RegExp][] = [
    ["Rate limit exceeded: at most 600 requests per minute", /one request/],
    ["The report holds no test case: upload it with allow_empty=true if this is expected", /did not run/],
    ['Cannot read "report.xml": it is empty', /did not run/],
    ["Body too large: at most 32 MB", /each shard separately/],
    ['Cannot read "body": it is larger than 128 MiB', /each shard separately/],
    ['Cannot read "body": it is a Cobertura coverage report, not a test report', /coverage report/],
    ['Cannot read "body": it is a zip archive, not a test report', /Unpack a zip/],
    ['Cannot read "body": it is JSON of no known format, with no keys', /not a test report/],
    ['Cannot read "body": malformed XML at line 3', /truncated or damaged/],
    ["Cannot decompress the body: it is not complete, valid gzip", /truncated or damaged/],
    ["The body is truncated", /proxy/],
    ['Cannot read "shard": expected a shard from "1/4" to "4/4", got "9/4"', /such as 2\/4/],
    ['Unknown field "taskslug"', /misspelt/],
    ['Idempotency-Key "7" was used before for a different request', /new Idempotency-Key/],
    ["This run has 100 attempts: use another execution_key for another build", /one execution_key for all jobs/],
    ["Cannot accept the report: this lease has reported already", /too late/],
    ["Cannot read the body: the form contains no file", /--data-binary/],
    ['Cannot read "commit": expected a text of 1 to 200 characters, got ""', /CI variable/],
  ];
  for (const [text, advice] of cases) expect([text, refused(text)]).toEqual([text, expect.stringMatching(advice)]);
});

test("an error of the server is not attributed to the client", () => {
  expect(refused("The database is not available, try again in a moment", 500)).toContain("an error of the server");
});

test("warnings lead to what to do where there is something", () => {
  expect(warned("The report is broken at line 1: it breaks off inside <testsuite>")).toContain("is truncated");
  expect(warned("The report declares 7 tests, but its test cases are 2 tests")).toContain("totals");
  expect(warned("Took 3 characters literally that XML wants escaped")).toBeUndefined();
});
