/** Reads a test case of JUnit XML: its names in all dialects, with its outcome. */

import type { toolReaderOf } from "./js_tools.ts";
import { FAILED_TO_LOAD } from "./js_tools.ts";
import type { Namer } from "./junit_names.ts";
import { countFailureElements, type Node, NONE, NOTHING, readInside, toOutcome } from "./junit_outcome.ts";
import type { CaseName, KnownNames, ReportedCase } from "./report.ts";
import { cut, type Cutter, MAX_NAME, msFromSeconds, toLine } from "./text.ts";
import type { SuiteTotals } from "./totals.ts";

/** The fields that a test case inherits from the suites around it. */
type CaseFrame = { suites: string[]; file: string | null; tally: SuiteTotals };

export type ToolReader = ReturnType<typeof toolReaderOf>;

export function toJunitCase(
  node: Node,
  { suites, file: outerFile, tally }: CaseFrame,
  namer: Namer,
  cutter: Cutter,
  readTool: ToolReader,
): ReportedCase {
  const { attributes } = node;
  const name = cutter.cut("name", attributes.name?.trim() || "(no name)");
  const given = cut(attributes.classname?.trim() ?? "", MAX_NAME);
  const position = POSITION.exec(given);
  // CasperJS repeats the path of the script, which its suite calls the package.
  const classname = position || (given.includes("/") && given === tally.attributes.package) ? "" : given;
  const givenFile = attributes.file || attributes.filepath || position?.[1] || outerFile;
  const file = givenFile ? givenFile.replace(/^file:\/\//, "") : namer.toFile(suites, classname);
  // Most cases pass and have nothing inside.
  const inside = node.children.length === 0 ? NOTHING : readInside(node, cutter);
  const { status, kind } = inside.outcome ?? toOutcome(attributes, NONE, null);
  // pytest names a module that it could not load as if it were a test.
  if (status === "failed" && given === "" && inside.message === NOT_COLLECTED && suites.includes("pytest"))
    return { ...unnamed(inside, kind), file: cutter.cut("file", `${name.replaceAll(".", "/")}.py`) };
  const isUnended = attributes.incomplete === "true" && status === "failed";
  const suite = namer.toSuite(suites, classname, name, file);
  const one: ReportedCase = {
    suite: cutter.cut("suite", suite),
    name,
    file: cutter.cutOrNull("file", file),
    line: toLine(attributes.line ?? attributes.lineno ?? position?.[2]),
    status,
    kind,
    flaky: inside.flaky,
    attempts: inside.attempts,
    durationMs: msFromSeconds(attributes.time),
    message: inside.message ?? (isUnended ? "The test did not end" : null),
    stack: inside.stack,
    output: inside.output,
    properties: inside.properties,
    ...(inside.attachments ? { attachments: inside.attachments } : {}),
    // gdUnit4 lists the failures of all attempts of a test that has passed in the end.
    ...(status === "failed" && Number(tally.attributes.flaky) > 0 && countFailureElements(node) > 1
      ? { isFlakyByCount: true }
      : {}),
  };
  return readTool === undefined ? one : { ...one, ...toNames({ suite, name, file }, node, tally, readTool, cutter) };
}

const NOT_COLLECTED = "collection failure";

const unnamed = (
  { outcome: _, ...inside }: ReturnType<typeof readInside>,
  kind: ReportedCase["kind"],
): ReportedCase => ({
  ...inside,
  ...{ suite: "", name: FAILED_TO_LOAD, file: null, line: null, status: "failed", kind, durationMs: null },
});

/** Maximum length of several titles together. */
const MAX_TITLES = 4 * MAX_NAME;

function toNames(
  read: CaseName,
  { attributes }: Node,
  { attributes: { hostname = "" } }: SuiteTotals,
  readTool: NonNullable<ToolReader>,
  cutter: Cutter,
): CaseName & KnownNames {
  const cutName = ({ suite, name, file }: CaseName): CaseName => ({
    suite: cutter.cut("suite", suite),
    name: cutter.cut("name", name),
    file: cutter.cutOrNull("file", file),
  });
  const plain = cutName(read);
  const titles = cut(attributes.name?.trim() ?? "", MAX_TITLES);
  const classname = cut(attributes.classname?.trim() ?? "", MAX_TITLES);
  const own = titles === "" ? undefined : readTool({ ...read, name: titles, classname, hostname });
  if (own === undefined) return plain;
  const { suite, name, file } = cutName(own);
  return {
    suite,
    name: name || "(no name)",
    file,
    ...(own.otherNames ? { otherNames: own.otherNames.map(cutName) } : {}),
    ...(own.keepOtherNames ? { keepOtherNames: true } : {}),
  };
}

/** Busted's class name: a line there would make a test another with each edit above it. */
const POSITION = /^(\S{1,500}\.(?:lua|moon|fnl)):(\d{1,9})$/;
