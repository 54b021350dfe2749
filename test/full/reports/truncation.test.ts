/** The failing reports of real tools are never read as whole and green ones when they were cut off, wherever the cut is. */

import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { ReportError } from "../../../src/reports/report.ts";
import { GREEN_REPORTS } from "../../reports/green_reports.ts";
import { isSilentTogether, read, silentGreens } from "../../reports/reading.ts";
import { WRITTEN } from "../../reports/written.ts";

/**
 * Positions at which nothing tells of what follows: the file holds the output of several processes, each of which is a whole
 * report, and the cut is between two of them. Only the exit code, or the number of shards, can tell.
 */
const UNDETECTABLE: Record<string, number[]> = {
  // cmocka writes a root element for each group, and the first group passed.
  "cmocka_groups.xml": [295, 296],
};

const MAX_BYTES = 3_000_000;

/** All of them, or some of a large report: evenly, and behind the characters that end something. */
function positionsOf(bytes: Uint8Array, max: number): number[] {
  if (bytes.length <= max) return Array.from({ length: bytes.length }, (_, position) => position);
  const ends: number[] = [];
  for (const [position, byte] of bytes.entries()) if (ENDS.has(byte)) ends.push(position + 1);
  const spread = (count: number) => Array.from({ length: max / 2 }, (_, n) => Math.floor((n * count) / (max / 2)));
  return [...new Set([...spread(bytes.length), ...spread(ends.length).map((n) => ends[n] ?? 0)])];
}

const ENDS = new Set(Buffer.from("\n>}]"));

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => !name.endsWith("expected.json") && statSync(`${folder}/${name}`).isFile())
    .filter((name) => statSync(`${folder}/${name}`).size < MAX_BYTES);

/** `null` for a report that is refused, or of which no test failed. */
function readFailing(bytes: Uint8Array): Uint8Array | null {
  try {
    return read(bytes).cases.some(({ status }) => status === "failed") ? bytes : null;
  } catch (error) {
    if (error instanceof ReportError) return null;
    throw error;
  }
}

const FIXTURES = `${import.meta.dir}/../../fixtures`;
const CORPUS = `${import.meta.dir}/../../../../shared/corpus`;

const failing: [name: string, bytes: Uint8Array, cuts: number][] = [
  ...filesIn(FIXTURES).map((name) => [name, readFileSync(`${FIXTURES}/${name}`), 600] as const),
  ...Object.entries(WRITTEN).map(([name, text]) => [name, Buffer.from(text), 2_000] as const),
  ...(existsSync(CORPUS) ? filesIn(CORPUS).map((name) => [name, readFileSync(`${CORPUS}/${name}`), 60] as const) : []),
].flatMap(([name, bytes, cuts]) => (readFailing(bytes) ? [[name, bytes, cuts]] : []));

test("there are failing reports", () => expect(failing.length).toBeGreaterThan(50));

test.each(failing)("%s", (name, bytes, cuts) => {
  const positions = positionsOf(bytes, cuts);
  const expected = (UNDETECTABLE[name] ?? []).filter((position) => positions.includes(position));
  expect(silentGreens(bytes, positions)).toEqual(expected);
});

test("two reports of any two formats in one text are both read, or refused", () => {
  const reports = Object.entries({ ...GREEN_REPORTS, ...WRITTEN }).map(([name, text]) => ({
    name,
    bytes: Buffer.from(text),
  }));
  const silent = reports.flatMap((first) =>
    reports
      .filter((second) => second !== first && isSilentTogether(first.bytes, second.bytes, "\n$ npm test\n"))
      .map((second) => `${first.name}, then ${second.name}`),
  );
  expect(silent).toEqual([]);
});
