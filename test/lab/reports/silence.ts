/**
 * Cuts reports of all formats at random positions, and joins two reports of any two formats in one text, of which the
 * second is whole or cut: nothing may be lost and the rest be green. `bun test/lab/reports/silence.ts [cuts] [concatenations] [seed]`, by default 20,000 and 5,000.
 */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { ReportError } from "../../../src/reports/report.ts";
import { createRandom } from "../../random.ts";
import { GREEN_REPORTS } from "../../reports/green_reports.ts";
import { isSilentBeginning, isSilentTogether, read, silentGreens } from "../../reports/reading.ts";
import { WRITTEN } from "../../reports/written.ts";

const [cuts = 20_000, concatenations = 5_000, seed = Date.now() % 2 ** 31] = process.argv.slice(2).map(Number);
console.log(`seed ${seed}`);
const { integer, pick, chance } = createRandom(seed);

const folders = [`${import.meta.dir}/../../fixtures`, `${import.meta.dir}/../../../../shared/corpus`].filter(
  existsSync,
);
const files = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
);
const texts = new Map([
  ...files
    .filter((path) => statSync(path).isFile() && statSync(path).size < 50_000 && !path.endsWith("expected.json"))
    .map((path) => [path, readFileSync(path)] as const),
  ...[...Object.entries(GREEN_REPORTS), ...Object.entries(WRITTEN)].map(
    ([name, text]) => [name, Buffer.from(text)] as const,
  ),
]);

type Whole = { name: string; bytes: Buffer; format: string };
const wholes: Whole[] = [];
for (const [name, bytes] of texts)
  try {
    const { format, cases, partial } = read(bytes);
    if (cases.length > 0 && !partial) wholes.push({ name, bytes, format });
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
  }
const byFormat = [...Map.groupBy(wholes, ({ format }) => format).values()];
const pickAny = () => pick(pick(byFormat));

const found = new Map<string, number>();
const tell = (finding: string) => void found.set(finding, (found.get(finding) ?? 0) + 1);

for (let n = 0; n < cuts; n++) {
  const { name, bytes } = pickAny();
  for (const position of silentGreens(bytes, [integer(0, bytes.length - 1)]))
    tell(`${name} cut at ${position} of ${bytes.length}`);
}
const toCrlf = (bytes: Buffer) => Buffer.from(bytes.toString("latin1").replace(/\r?\n/g, "\r\n"), "latin1");
for (let n = 0; n < concatenations; n++) {
  const [first, second] = [pickAny(), pickAny()];
  // A repeated report is another attempt of its tests, and one of bytes is no text.
  if (first === second || [first, second].some(({ name }) => /\.(?:bin|zip)$/.test(name))) continue;
  const convert = chance(0.2) ? toCrlf : (bytes: Buffer) => bytes;
  const between = pick(["\n", "\n$ npm test\n", "\r\n\r\n", "\nok\n", "\n[INFO] next\n"]);
  if (isSilentTogether(convert(first.bytes), convert(second.bytes), between))
    tell(`${first.name}, then ${second.name}, with ${JSON.stringify(between)} between`);
  const position = integer(1, second.bytes.length);
  if (isSilentBeginning(convert(first.bytes), convert(second.bytes.subarray(0, position)), between))
    tell(`${first.name}, then ${second.name} cut at ${position}, with ${JSON.stringify(between)} between`);
}
for (const [finding, times] of found) console.error(`${finding}${times > 1 ? ` (${times} times)` : ""}`);
console.log({ wholes: wholes.length, formats: byFormat.length, cuts, concatenations, silentGreens: found.size });
process.exit(found.size === 0 ? 0 : 1);
