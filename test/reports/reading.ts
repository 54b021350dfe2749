/** What the tests of readers share: a report from a value or a fixture, and its cases in short. */

import { readFileSync } from "node:fs";
import { readReport } from "../../src/reports/read.ts";
import { type Report, type ReportAttachment, ReportError } from "../../src/reports/report.ts";

type ReadOptions = Partial<Parameters<typeof readReport>[1]>;

const toBytes = (content: unknown): Uint8Array => {
  // Readers may change the bytes that they are given.
  if (content instanceof Uint8Array) return content.slice();
  return new TextEncoder().encode(typeof content === "string" ? content : JSON.stringify(content));
};

/** Bytes and texts as they are, values as JSON; several make one upload. */
export const readWith = (options: ReadOptions, ...contents: unknown[]): Report =>
  readReport(
    contents.map((content, index) => ({ name: `${index}`, bytes: toBytes(content) })),
    { maxInflatedBytes: 2 ** 27, ...options },
  );

export const read = (...contents: unknown[]): Report => readWith({}, ...contents);

/** Why a report is refused, without the name of the file; "accepted" if it is not. */
export function refusalOf(content: unknown, options: ReadOptions = {}): string {
  try {
    readWith(options, content);
  } catch (error) {
    if (error instanceof ReportError) return error.message.replace('Cannot read "0": ', "");
    throw error;
  }
  return "accepted";
}

export const fixtureBytes = (name: string): Uint8Array => readFileSync(`${import.meta.dir}/../fixtures/${name}`);

export function readFixture(name: string): Report {
  const bytes = fixtureBytes(name);
  // Each of its values is a file of one folder.
  return name === "allure_results.json" ? read(...Object.values(JSON.parse(`${Buffer.from(bytes)}`))) : read(bytes);
}

/** A line per case: "failed timeout, 2 attempts: suite > name". */
export const inShort = ({ cases }: Report): string[] =>
  cases.map(({ status, kind, flaky, attempts, suite, name }) => {
    const words = [status, kind, flaky && "flaky"].filter(Boolean).join(" ");
    return `${words}${attempts > 1 ? `, ${attempts} attempts` : ""}: ${[suite, name].filter(Boolean).join(" > ")}`;
  });

const MAX_SHOWN_LINES = 8;

/** A text of several lines as a block, of which a long one is cut in the middle. */
function inBlock(name: string, text: string | null): string[] {
  if (text === null) return [];
  const lines = text.split("\n");
  const more = lines.length - MAX_SHOWN_LINES;
  const shown = more > 0 ? [...lines.slice(0, -1 - more), `… ${more} more lines`, lines.at(-1)!] : lines;
  return shown.map((line, index) => `    ${index === 0 ? name : " ".repeat(name.length)} | ${line}`.trimEnd());
}

/** "cart-diff.png (image/png) at /home/…", or with the text that the report holds, or its length. */
export function attachmentInLine({ name, path, contentType, body }: ReportAttachment): string {
  const held =
    body && (contentType === "image/png" ? `${body.length} bytes` : JSON.stringify(Buffer.from(body).toString()));
  return [name, contentType && `(${contentType})`, path && `at ${path}`, held].filter(Boolean).join(" ");
}

/** The report as `fixtures/expected/` has it: a line for the report, its warnings, and a line for each case with what it has below. */
export function inLines({ warnings, ...report }: Report): string {
  const { passed, failed, skipped } = report.countsOnly ?? {};
  const { format, suite, partial, durationMs, completedAt, context } = report;
  const head = [
    ...[format, suite, partial && "partial", durationMs !== null && `${durationMs} ms`, completedAt?.toISOString()],
    report.countsOnly && `${passed} passed, ${failed} failed, ${skipped} skipped without test cases`,
    ...Object.entries(context).map(([name, value]) => `${name}: ${value}`),
  ];
  const cases = inShort({ ...report, warnings }).flatMap((text, index) => {
    const { file, line, durationMs, message, stack, output, properties, attachments = [] } = report.cases[index]!;
    const place = file === null ? "" : ` (${file}${line === null ? "" : `:${line}`})`;
    return [
      `${text.replaceAll("\n", "\\n")}${place}${durationMs === null ? "" : `, ${durationMs} ms`}`,
      ...inBlock("message", message),
      ...inBlock("stack", stack),
      ...inBlock("output", output),
      ...Object.entries(properties ?? {}).map(([name, value]) => `    ${name} = ${JSON.stringify(value)}`),
      ...attachments.map((attachment) => `    attachment ${attachmentInLine(attachment)}`),
    ];
  });
  return `${[head.filter(Boolean).join(", "), ...warnings.map((warning) => `warning: ${warning}`), ...cases].join("\n")}\n`;
}

/** How many failures reports of the corpus tell of outside of the test cases that its `expected.json` counts. */
export const FAULTS: Record<string, number> = {
  // Its root declares a failure, and its only case that did not pass says success="Turue".
  "EnricoMi__publish-unit-test-result-action/nunit__nunit3__jenkins__NUnit-multinamespace.xml": 1,
  // Its root declares 9 failures, and the file was cut down to passed ones.
  "inorton__junit2html/junit-testrun.xml": 1,
  // Suites with an error of their own.
  "jenkinsci__junit-plugin/junit-report-6700.xml": 1,
  "jenkinsci__junit-plugin/junit-report-nested-testsuites.xml": 1,
};

/**
 * Returns those positions, by default all, at which the beginning of a report is read as whole and green although something
 * of it is lost: there must be none.
 */
export function silentGreens(
  whole: Uint8Array,
  positions = Array.from({ length: whole.length }, (_, position) => position),
): number[] {
  const all = read(whole);
  return positions.filter((position) => {
    try {
      const found = read(whole.subarray(0, position));
      const isLess = found.cases.length < all.cases.length || isRed(all);
      return isLess && !found.partial && !isRed(found);
    } catch (error) {
      if (error instanceof ReportError) return false;
      throw error;
    }
  });
}

const isRed = ({ cases, countsOnly }: Report): boolean =>
  cases.some(({ status }) => status === "failed") || (countsOnly?.failed ?? 0) > 0;

/** Whether two whole reports in one text are read as a whole and green one although something of them is lost. */
export function isSilentTogether(first: Uint8Array, second: Uint8Array, between = "\n"): boolean {
  const apart = [first, second].map((bytes) => read(bytes));
  try {
    const both = read(Buffer.concat([first, Buffer.from(between), second]));
    const isLess = both.cases.length < apart[0]!.cases.length + apart[1]!.cases.length;
    return (isLess || apart.some(isRed)) && !both.partial && !isRed(both);
  } catch (error) {
    if (error instanceof ReportError) return false;
    throw error;
  }
}

/** Whether a whole report and the beginning of another in one text are read as a whole and green one: the other is lost. */
export function isSilentBeginning(first: Uint8Array, beginning: Uint8Array, between = "\n"): boolean {
  const [all, alone, both] = [first, beginning, Buffer.concat([first, Buffer.from(between), beginning])].map(
    (bytes) => {
      try {
        return read(bytes);
      } catch (error) {
        if (error instanceof ReportError) return null;
        throw error;
      }
    },
  );
  if (!both || both.partial || isRed(both)) return false;
  // Any program may print the first words of a text; a document begins with its first character.
  if (!alone) return /^\s*(?:[{<]|\[(?!\w))/.test(Buffer.from(beginning).toString());
  return alone.partial || isRed(alone) || both.cases.length < all!.cases.length + alone.cases.length;
}

const ODD_TEXTS = ["", "-1", "NaN", "1e999", "__proto__", "constructor", "true", "9".repeat(400), "\u{1f680}"];

/**
 * Returns the XML once with each of its attributes, and each of its texts, replaced by odd values: by each of them in a small
 * document, else by one after the other.
 */
export function* oddXml(xml: string): Generator<string> {
  const count = xml.length < 2_000 ? ODD_TEXTS.length : 1;
  let turn = 0;
  for (const { 0: text, index } of xml.matchAll(/(?<!<\?[^>]*)="([^"]*)"|(?<![?[\]])>([^<\]]*)</g)) {
    const [before, after] = [xml.slice(0, index), xml.slice(index + text.length)];
    for (const end = turn + count; turn < end; turn++) {
      const value = ODD_TEXTS[turn % ODD_TEXTS.length];
      yield before + (text.startsWith("=") ? `="${value}"` : `>${value}<`) + after;
    }
  }
}

const ODD_VALUES = [null, 1, -1, 1e400, "x", "", "__proto__", true, [], {}, [null], [[1]], { length: 9 }];

/** Returns the JSON document, or the JSON lines, once with each of its values, or one in `stride`, replaced by an odd one. */
export function* oddJson(text: string, stride = 1): Generator<string> {
  const lines =
    text.startsWith("[") || text.split("\n")[1]?.startsWith("{") !== true ? [text] : text.trimEnd().split("\n");
  let turn = 0;
  for (const [index, line] of lines.entries()) {
    const root = { value: JSON.parse(line) };
    const open: Record<string, unknown>[] = [root];
    for (let node = open.pop(); node; node = open.pop())
      for (const key of Object.keys(node)) {
        const value = node[key];
        if (turn++ % stride === 0) {
          node[key] = ODD_VALUES[turn % ODD_VALUES.length];
          yield lines.with(index, JSON.stringify(root.value)).join("\n");
          node[key] = value;
        }
        if (typeof value === "object" && value !== null) open.push(value as Record<string, unknown>);
      }
  }
}
