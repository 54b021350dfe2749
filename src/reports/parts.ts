/** Splits a text that contains several reports in sequence: text after one report may be another one. */

import {
  type BrokenDocument,
  brokenAt,
  findCutOff,
  HEAD_LENGTH,
  REPORT_KEY,
  toLostReport,
} from "./broken_documents.ts";
import { isGoText } from "./go_text.ts";
import { type Reader, READERS } from "./readers.ts";
import { type Report, ReportError } from "./report.ts";
import { firstDocument, type Source, toSource } from "./source.ts";
import { hasTap, isPlainTap, isProve, PROVE_HEADER, PROVE_RESULT, startOfTap } from "./tap_source.ts";
import { createCollector, cut, firstLine, lineAt } from "./text.ts";

/** A report within a text. `kind` is the format, or one of the forms of a format that look different. */
type Piece = { from: number; reader: Reader; kind: string; source: Source };
type ReadPiece = { line: number; report: Report };
type Read = (reader: Reader, source: Source) => Report;

/** The lines that only a report begins with, each with its kind. The text is at the beginning of a line. */
const BEGINNINGS: [kind: string, pattern: string][] = [
  ["tap", String.raw`K?TAP version \d|1\.\.\d+[ \t]*(?:$|#)|not ok\b|ok \d+(?=[\s#-]|$)`],
  ["prove", PROVE_HEADER.source.slice(1)],
  ["go_text", String.raw`=== RUN {3}\S`],
  [
    "surefire",
    String.raw`(?:\[INFO\] )?-{40,}\r?\n(?:Test set: \S|(?:\[INFO\] )? T E S T S$)|(?:\[\w+\] )?Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+, Time elapsed: `,
  ],
  ["teamcity", String.raw`##teamcity\[test`],
  [
    "xml",
    String.raw`<\?xml\s|<(?:\w+:)?(?:testsuites?|testrun|TestRun|test-run|test-results|assembl(?:y|ies)|robot|doctest|testng-results|Site|TestLog|TestResult|Catch2TestRun|Catch|testExecutions|unitTest)[\s>/]`,
  ],
  ["json", String.raw`[{[]`],
];
const BEGINNING = new RegExp(`^(?:${BEGINNINGS.map(([kind, pattern]) => `(?<${kind}>${pattern})`).join("|")})`, "gm");

/** Patterns that recognise an event of JSON lines, by kind. */
const EVENTS: [kind: string, pattern: RegExp][] = [
  ["go_json", /^\{.*"Action":"/],
  ["libtest", /^\{ ?"type": ?"(?:suite|test|bench)", ?"(?:event|name)":/],
  ["dart", /^\{"suite":\{|^\{.*"(?:protocolVersion|testID|suiteID|groupIDs)":/],
  ["pytest_reportlog", /"\$report_type":/],
  ["swift_testing", /^\{(?=.*"kind":).*"payload":/],
  ["playwright_blob", /^\{"method":"on[A-Z]/],
  ["cucumber_messages", /^\{"(?:meta|source|gherkinDocument|pickle|hook|testRun\w+|testCase\w*|testStep\w+)":/],
];
/**
 * Maximum number of characters read on trial: a multiple of the text, and a minimum for a small one. Each trial counts as a part of its
 * length.
 */
const MAX_READINGS = 4;
const MIN_TRIAL_CHARACTERS = 1_000_000;
const TRIALS_PER_READING = 4;
/** A line of Surefire counts any number of tests. */
const CHARACTERS_PER_EXCESS_CASE = 10;
type Trials = { left: number };

/** Reads all reports in a text, of which `reader` recognises the whole or the beginning. Lines of other programs may be between them. */
export function readParts(text: string, reader: Reader, source: Source, read: Read): ReadPiece[] {
  const trials = { left: MIN_TRIAL_CHARACTERS + MAX_READINGS * text.length };
  const whole = toPiece(0, reader, source);
  const first = isExact(source) ? null : firstPiece(text);
  let pieces: ReadPiece[] = [];
  // The lines before a report, which its reader passes over, may be a report of another format.
  if (first && first.kind !== whole.kind) {
    const { brokenBefore: lost } = first;
    pieces = [...(lost ? [toLost(text, lost, first.reader)] : []), ...split(text, first, read, trials)];
  }
  // A document may hold TAP that a test has printed.
  const isInside = first && isExact(first.source) && whole.kind === "tap" && startOfTap(text) > first.from;
  if (pieces.length < (isInside ? 1 : 2)) pieces = split(text, whole, read, trials);
  if (trials.left >= 0) return pieces;
  if (pieces.length > 1) throw new ReportError("it holds too many reports one after the other: send a file for each");
  pieces[0]!.report.warnings.push("It holds many lines that reports of other formats begin with: these are not read");
  return pieces;
}

/** The reader of a text, or of the JSON document that it begins with. */
export function recogniseSource(source: Source): { reader: Reader; source: Source } | null {
  const document = firstDocument(source);
  const [byText, byDocument] = [source, document].map((one) => one && READERS.find(({ recognise }) => recognise(one)));
  if (byDocument && byDocument !== byText) return { reader: byDocument, source: document! };
  return byText ? { reader: byText, source } : null;
}

/** Finds the beginning of a report in a text that no reader recognises: its line (from 1) and the title of its format. */
export function findBeginning(
  text: string,
): { at: number; line: number; title: string; lost: BrokenDocument | null } | null {
  const first = firstPiece(text);
  return (
    first && { at: first.from, line: lineAt(text, first.from), title: first.reader.title, lost: first.brokenBefore }
  );
}

/** Maximum number of lines that look like the beginning of a report and are tried. */
const MAX_TRIED_LINES = 20;

/** Maximum number of broken documents, the last ones, for which the text before them is read. */
const MAX_TRIED_DOCUMENTS = 3;

type FirstPiece = Piece & { brokenBefore: BrokenDocument | null };

function firstPiece(text: string): FirstPiece | null {
  let [tried, brokenBefore] = [0, null as BrokenDocument | null];
  for (const [at, kind] of beginnings(text, 0, "")) {
    const piece = pieceAt(text, at, kind);
    if (piece) return { ...piece, brokenBefore };
    if (isDocument(kind)) brokenBefore ??= brokenAt(text, at);
    if (++tried === MAX_TRIED_LINES) return null;
  }
  return null;
}

function split(text: string, piece: Piece, read: Read, trials: Trials): ReadPiece[] {
  const { from, reader, kind, source } = piece;
  const line = lineAt(text, from);
  const tryRead = (to?: number): Report | null => {
    const report = orNull(() => read(reader, !to || source.json ? source : toSource(text.slice(from, to))), true);
    trials.left -= CHARACTERS_PER_EXCESS_CASE * Math.max(0, (report?.cases.length ?? 0) - ((to ?? text.length) - from));
    return report;
  };
  const broken: BrokenDocument[] = [];
  const own = isExact(source) ? null : brokenAt(text, from);
  if (own) broken.push(own);
  // A broken document inside of a report is the output of a test.
  const lostBefore = (to: number): ReadPiece[] => {
    const lost = broken.slice(-MAX_TRIED_DOCUMENTS).findLast(({ at }) => {
      if (at >= to) return false;
      trials.left -= at - from;
      const before = tryRead(at);
      return before === null || isWhole(before);
    });
    return lost ? [toLost(text, lost, reader)] : [];
  };
  let all: Report | null | undefined;
  const isUnbroken = () => (all ??= tryRead())?.partial === false;
  for (const [at, nextKind] of candidates(text, piece)) {
    trials.left -= (text.length - at) / TRIALS_PER_READING;
    if (trials.left < 0) break;
    const next = pieceAt(text, at, nextKind);
    // Readers of lines continue, and that of JUnit accepts further roots, unless there is text between them.
    const isRead = source.json === undefined && (source.root === null || (kind === "junit" && isUnbroken()));
    const lost = next || !isDocument(nextKind) ? null : brokenAt(text, at);
    if (lost) broken.push(lost);
    if (!next || (next.kind === kind && isRead)) continue;
    trials.left -= at - from;
    const before = tryRead(at);
    if (before === null) continue;
    const isSure = isExact(source) && isWhole(before);
    let rest = isWhole(before) ? orNull(() => split(text, next, read, trials), !isSure) : null;
    if (!isSure && !(rest && isWhole(rest[0]!.report))) {
      // A document ends with its root. Lines continue as long as further lines change the result.
      if (all === undefined) trials.left -= text.length - from;
      if (isExact(source) || !isSame(before, (all ??= tryRead()))) continue;
      rest ??= splitOrLost(text, next, read, trials);
    }
    return [{ line, report: withTrailing(before, piece, text, at) }, ...lostBefore(at), ...rest!];
  }
  const report = all ?? read(reader, source);
  const cutOff = source.json === undefined ? findCutOff(text, from + minLength(piece)) : null;
  if (cutOff) broken.push(cutOff);
  return [{ line, report: withTrailing(report, piece, text, text.length) }, ...lostBefore(text.length)];
}

/** A report that is refused, below lines of another that is read, is lost. */
function splitOrLost(text: string, piece: Piece, read: Read, trials: Trials): ReadPiece[] {
  try {
    return split(text, piece, read, trials);
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
    return [toLost(text, { at: piece.from, reason: error.message }, piece.reader)];
  }
}

function toLost(text: string, { at, reason }: BrokenDocument, { name }: Reader): ReadPiece {
  const line = lineAt(text, at);
  return { line, report: toLostReport(name, line, reason) };
}

/** Whether a report of this kind ends with its document, and not with its lines. */
const isDocument = (kind: string): boolean => kind === "xml" || kind === "json";

/** Throws the fault of a JSON document if the text after it, which is no report, may be a broken one. */
function withTrailing(report: Report, { from, source }: Piece, text: string, to: number): Report {
  if (source.document === null || source.json === undefined) return report;
  const trailing = text.slice(from + source.document.end, to).trim();
  if (trailing === "") return report;
  if (/^[{[<]/m.test(trailing)) throw toSource(text.slice(from)).fault!;
  const warning = `Left out the text after the end of the report: "${cut(firstLine(trailing), 100)}"`;
  return { ...report, warnings: [warning, ...report.warnings] };
}

/** `mayFail`: an unreadable text is no report; otherwise it surely is one, and the error is thrown. */
function orNull<T>(readIt: () => T, mayFail: boolean): T | null {
  try {
    return readIt();
  } catch (error) {
    if (error instanceof ReportError && mayFail) return null;
    throw error;
  }
}

const isExact = ({ root, json }: Source): boolean => root !== null || json !== undefined;

const UNFINISHED = /^\((?:plan mismatch|.* did not finish)\)$/;

const isWhole = ({ partial, cases }: Report): boolean =>
  !partial && !cases.some(({ status, name }) => status === "failed" && UNFINISHED.test(name));

const isSame = (one: Report, other: Report | null): boolean =>
  other !== null &&
  one.partial === other.partial &&
  one.cases.length === other.cases.length &&
  one.cases.every(
    ({ status, name }, index) => status === other.cases[index]!.status && name === other.cases[index]!.name,
  );

function toPiece(from: number, reader: Reader, source: Source): Piece {
  const { name } = reader;
  const { text } = source;
  if (name === "go") return { from, reader, source, kind: isGoText(text) ? "go_text" : "go_json" };
  return { from, reader, source, kind: name === "tap" && !isPlainTap(text) && isProve(text) ? "prove" : name };
}

/** TAP that was cut off below its version or its plan, or above the latter. */
const CUT_TAP = /^K?TAP version \d|^1\.\.[1-9]\d*\s*$|^ok 1\b.*\n(?:.*\n){0,100}?ok 2\b/;

/** Returns the report that begins at a line; a document is recognised by more than the line. */
function pieceAt(text: string, at: number, kind: string): Piece | null {
  return orNull(() => {
    const source = toSource(text.slice(at));
    if (isDocument(kind)) {
      const found = recogniseSource(source);
      return found && isExact(found.source) ? toPiece(at, found.reader, found.source) : null;
    }
    const name = kind === "prove" ? "tap" : kind.replace(/_(?:json|text)$/, "");
    const reader = READERS.find((one) => one.name === name)!;
    const isReport = reader.recognise(source) && (kind !== "tap" || hasTap(source.text) || CUT_TAP.test(source.text));
    return isReport ? { from: at, reader, kind, source } : null;
  }, true);
}

/** Returns the minimum length of the report. */
function minLength({ kind, source: { text, root, json, document } }: Piece): number {
  if (json !== undefined) return document?.end ?? text.length;
  if (kind === "prove") return Math.max(1, text.search(PROVE_RESULT));
  const end = root === null ? null : new RegExp(`</(?:[\\w.-]+:)?${RegExp.escape(root)}\\s*>`).exec(text);
  return end ? end.index + end[0].length : 1;
}

function* candidates(text: string, piece: Piece): Generator<[number, string]> {
  yield* joinedAt(text, piece);
  yield* beginnings(text, piece.from + minLength(piece), piece.kind);
}

/** The document that follows another one on its last line. */
function joinedAt(text: string, { from, source: { text: plain, json, document } }: Piece): [number, string][] {
  if (json === undefined || !document || !text.startsWith(plain.slice(0, document.end), from)) return [];
  const at = from + document.end;
  const kind = /[{[]/.test(text[at]!) && text[at - 1] !== "\n" ? jsonKindAt(text, at) : null;
  return kind === null ? [] : [[at, kind]];
}

/** Output of the build before the first event, which is part of the report. */
const GO_BUILD = /^(?:# \S+(?: \[\S+\])?\n(?!#)|FAIL\t\S+ \[)/m;
const BUILDS: Record<string, RegExp> = {
  go_json: GO_BUILD,
  go_text: GO_BUILD,
  libtest: /^ +(?:Compiling|Finished|Running|Doc-tests) /m,
};
const MAX_GAP = 200_000;

/** Yields the positions of lines that begin a report of another kind. Consecutive lines of one kind count once. */
function* beginnings(text: string, from: number, own: string): Generator<[number, string]> {
  let [last, before] = [own, from];
  const collect = createCollector();
  const pattern = new RegExp(BEGINNING);
  pattern.lastIndex = from;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const { index } = match;
    collect(index);
    const gap = text.slice(Math.max(before, index - MAX_GAP), index);
    before = index + match[0].length;
    const kind = match.groups!.json === undefined ? nameOf(match.groups!) : jsonKindAt(text, index);
    if (kind === null) continue;
    // A file of prove contains TAP, and another report may follow its result.
    if (own === "prove" && kind === "tap") last = PROVE_RESULT.test(gap) ? own : kind;
    if (kind !== own && (kind !== last || kind === "json"))
      yield [index - gap.length + (BUILDS[kind]?.exec(gap)?.index ?? gap.length), kind];
    last = kind;
  }
}

const nameOf = (groups: Record<string, string | undefined>): string =>
  BEGINNINGS.find(([kind]) => groups[kind] !== undefined)![0];

function jsonKindAt(text: string, at: number): string | null {
  const head = text.slice(at, at + HEAD_LENGTH);
  const end = head.indexOf("\n");
  const line = end === -1 ? head : head.slice(0, end);
  return (
    EVENTS.find(([, pattern]) => pattern.test(line))?.[0] ??
    (/^\[\s*\{/.test(head) || REPORT_KEY.test(head) ? "json" : null)
  );
}
