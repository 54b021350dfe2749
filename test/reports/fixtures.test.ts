/**
 * What the fixtures are read as: `fixtures/expected/NAME.txt` has it in lines, of which those that begin with "#" are comments. `expected.ts`
 * prints the others.
 */

import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { inLines, readFixture } from "./reading.ts";

const FOLDER = `${import.meta.dir}/../fixtures`;
const NAMES = readdirSync(`${FOLDER}/expected`, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".txt"))
  .map((name) => name.slice(0, -".txt".length));

test.each(NAMES)("%s", (name) => {
  const expected = readFileSync(`${FOLDER}/expected/${name}.txt`, "utf8").replace(/^#.*\n/gm, "");
  expect(inLines(readFixture(name))).toBe(expected);
});

test("every report among the fixtures has its lines", () => {
  const reports = readdirSync(FOLDER).filter((name) => /\.(?:bin|json|ndjson|tap|txt|xml|zip)$/.test(name));
  expect(reports.filter((name) => !NAMES.includes(name))).toEqual([]);
});
