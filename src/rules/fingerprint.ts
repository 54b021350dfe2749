/** Fingerprints of failures. Failures with equal ones are one bug: same exception, message except its varying parts, and location. */

import { plainWord } from "./randomness.ts";
import { type Frame, isTestFrame, ownFrames } from "./stack.ts";

/** Raised whenever the same failure gets another fingerprint: old ones then no longer match. */
export const FINGERPRINT_VERSION = 2;

export type Failure = {
  kind: string | null;
  message: string | null;
  stack: string | null;
  suite: string;
  name: string;
  file: string | null;
};

/** The property that failures with the fingerprint share, such as their message or their test case. */
type FingerprintKind = "message" | "case" | "flaky" | "outage" | "automation" | "infrastructure";

/** `digest` has 32 hexadecimal digits; the other fields are what it was made of. */
export type Fingerprint = {
  kind: FingerprintKind;
  digest: string;
  exceptionType: string | null;
  /** Normalised. */
  message: string;
  /** Frames as "file function". */
  frames: string[];
  /** The test, if nothing else distinguishes the failure. */
  test: string | null;
};

const TYPE_NAME =
  "(?:[A-Za-z_$][\\w$]*(?:\\.|::|\\\\))*(?:[A-Z][\\w$]*)?(?:Error|Exception|Failure|Failed|Fault|Panic|Timeout|Interrupt|Exit|Mismatch)\\b";
const TYPED = new RegExp(
  `^\\s*(?:E\\s+|Caused by: |Uncaught |Unhandled )?(${TYPE_NAME})(?:\\s*\\[[\\w-]+\\])?\\s*(?::\\s*|$)`,
);

/** Maximum length of the beginning of a message that names its exception. */
const MAX_TYPE = 500;

/** The exception's own name, without package; Go and Rust have panics instead. */
function splitType(line: string): { type: string | null; rest: string } {
  const match = TYPED.exec(line.slice(0, MAX_TYPE));
  if (match) return { type: match[1]!.split(/\.|::|\\/).at(-1)!, rest: line.slice(match[0].length) };
  const panic = /^\s*(panic|fatal error): /.exec(line) ?? /^thread '.{0,200}' (panicked) at /.exec(line);
  return panic ? { type: "panic", rest: line.slice(panic[0].length) } : { type: null, rest: line };
}

/** How much of a message is replaced. The less there is besides the message to distinguish failures, the more of it is kept. */
export type Reading = {
  /** Replaces small counts too, and not only numbers too large or odd to be one. */
  numbers: boolean;
  /** Replaces all quoted text, and not only what looks random in it, and whole paths. */
  values: boolean;
};
const BARE: Reading = { numbers: true, values: true };

/** Default ports of services: an unavailable database is not the same bug as an unavailable queue. */
const SERVICE_PORT =
  /^(?:22|25|53|389|465|587|636|1433|1521|2181|3306|3389|4222|5432|5672|6379|8086|9042|9092|9200|11211|15672|27017)$/;
const portOf = (port: string | undefined): string => (port && SERVICE_PORT.test(port) ? `:${port}` : "");

type Replacement = string | ((...match: string[]) => string);

/** Replacements in the order in which they are tried: patterns that contain others come first. A text without the third has no match. */
const VARYING: [RegExp, Replacement, RegExp][] = [
  [/\x1b\[[0-9;]*m/g, "", /\x1b/],
  [/\beyJ[\w-]{5,2000}\.[\w-]{5,2000}\.[\w-]{0,2000}/g, "<id>", /eyJ/],
  [/\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,5}\.[a-z]{2,24}\b/gi, "<email>", /@/],
  [
    /\b([a-z][a-z0-9+]{1,10}):\/\/[^\s/"'`<>)\]?]+([^\s"'`<>)\]]*)/gi,
    (_, scheme, route) => `${scheme}://<host>${plainRoute(route!)}`,
    /:\/\//,
  ],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>", /-/],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|\s?[+-]\d\d:?\d\d)?)?\b/g, "<time>", /\d-/],
  [/\b(?:19|20)\d\d[./]\d\d[./]\d\d\b/g, "<time>", /\d[./]/],
  [
    /\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? (?:\w{3} )?\d{1,2} (?:\w{3} )?\d{4}(?: \d\d:\d\d:\d\d)?(?: (?:GMT|UTC)[+\d]*)?/gi,
    "<time>",
    /\d{4}/,
  ],
  [/(?<![\d.])\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b(?!:)/g, "<time>", /\d:/],
];
const QUOTED = /"(?:[^"\\\n]|\\.){0,1000}"|'(?:[^'\\\n]|\\.){0,1000}'(?![A-Za-z])|`[^`\n]{0,1000}`|“[^”\n]{0,1000}”/g;
/** A longer quoted text is data. */
const MAX_QUOTED = 120;
const HOST =
  // A match can only begin at the start of the first label: starting later finds nothing more, and takes long for long names.
  /(?:\[[0-9a-f:]{2,40}\]|\blocalhost|\b(?:\d{1,3}\.){3}\d{1,3}|::1|\b(?<!\w-*\.?)[\w-]+(?:\.[\w-]+)*\.(?:local|internal|lan|com|net|org|io|dev|test|example|cluster))(?::(\d{1,5}))?\b/gi;
const FILE =
  /(?<![\w<@.+~-])(?:[A-Za-z]:)?(?:\.{0,2}[\\/])?(?:[\w@.+~-]+[\\/]){1,30}([\w@.+~-]*\.\w{1,8})(?::\d+){0,2}/g;
const FOLDER = /(?<![\w<>/.])(?:[A-Za-z]:\\|\/)(?:[\w@.+~-]+[\\/])+[\w@.+~-]*/g;
/** Folders of machines; everything else that begins with a slash is a route of the project's own. */
const MACHINE =
  /^(?:[A-Za-z]:\\|\/(?:app|builds?|data|dev|etc|github|home|mnt|nix|opt|private|proc|root|run|srv|src|sys|tmp|Users|usr|var|Volumes|w|work|workspaces?)\/)/;
const REST: [RegExp, string][] = [
  // 0x8… and 0xC… of eight digits are what Windows calls its errors.
  [/\b0x(?!8[0-9a-f]{7}\b|c0[0-9a-f]{6}\b)[0-9a-f]+\b/gi, "<hex>"],
  [/(?<=\w)@[0-9a-f]{4,16}\b/g, "@<id>"],
  // Padded Base64, as in integrity hashes, is always an id.
  [/(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{10,1000}={1,2}(?![\w=])/g, "<id>"],
  [
    /(?<![\w-])\d+(?:,\d{3})*(?:[.,]\d+)?\s?(?:ns|µs|us|ms|milliseconds?|s|sec|secs|seconds?|m|min|minutes?|h|hours?)\b(?!-\w)/g,
    "<duration>",
  ],
  [/\b\d+(?:[.,]\d+)?\s?(?:[kKMGT]i?B|bytes?)\b/g, "<size>"],
  [/\bport([ =:]{1,3})\d{1,5}\b/gi, "port$1<n>"],
];

/** The segments of a path: names stay; counts, drawn parts and the values of parameters are replaced. */
const plainRoute = (route: string): string =>
  route
    .replace(/[?#].*$/, (query) => query.replace(/=[^&#]*/g, "=<value>"))
    .replace(/[\w-]+/g, (word, at: number) =>
      route[at - 1] === "<" ? word : /^\d+$/.test(word) ? "<n>" : /\d/.test(word) ? plainWord(word) : word,
    );

/** HTTP statuses are kept where the text is about requests, or holds nothing else: 404 and 503 are different bugs. */
const ABOUT_HTTP =
  /\b(?:https?|status(?: ?code)?|response|request(?:ed)?|fetch|axios|api|endpoint|unauthorized|forbidden|gateway|unavailable|not found)\b/i;
const STATUS = /^(?:20[0-6]|30[0-478]|40[0-9]|41[0-8]|42[1-689]|431|451|50[0-8]|51[01]|52[0-6])$/;
const NUMBER = /(?<![\w<.])[-+]?\d(?:[\d_]|,(?=\d{3}))*(?:\.\d+)?(?:e[+-]?\d+)?%?(?![\w>])/gi;
/** Tokens that are read one by one: placeholders, versions, numbers, words. */
const TOKEN =
  /<[a-z]+>|\bv?\d+(?:\.\d+){2,}(?:[-+][\w.]+)?|(?:(?<![\w<>])[-+])?\d(?:[\d_]|,(?=\d{3}))*(?:\.\d+)?(?:e[+-]?\d+)?%?(?!-?\w)|[A-Za-z0-9_][\w-]*/g;

const VERSION = /^v?\d+(?:\.\d+){2,}/;

/** Text before a number that names an error. */
const BEFORE_CODE =
  /(?:\b(?:exit(?:ed)?(?: with)?|code|errno|error|err|status|signal|sqlstate|winerror|curl:)["']?[ :=([#-]{0,3}|\berror \d{1,5} \(|sqlstate\[\w{5}\] \[)$/i;
/** Compilers and databases call their errors so. */
const CODE =
  /^(?:(?:AADSTS|BC|CA|CS|ERR|FS|HY|IDE|KB|LNK|MSB|NETSDK|NU|ORA|PGRST|PLS|RUF|SA|SP|TNS|TS|VB|CVE|RFC|SQL)-?\d{2,7}|[CEFPW]\d{3,5})$/;
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** Text before a number that identifies one of many objects. */
const BEFORE_INSTANCE =
  /(?:\b(?:order|user|item|customer|account|product|invoice|article|tenant|row|line|column|record|page|index|offset|job|task|build|run|pid|process|thread|worker|shard|node|replica|partition|attempt|try|retry|request|session|message|ticket|entity|id|ids|key|no|number|seed|chunk|transaction|connection|fd|goroutine)s?["')]{0,2}[ :=([#]{0,3}|[#])$/i;
/** Text before a number with a point that is a version. */
const BEFORE_VERSION =
  /\b(?:version|node|python|java|jdk|go|ruby|php|rust|glibc|tls|ssl|postgres\w*|mysql|v)[ :=v]{0,3}$/i;

const plainPath = (path: string, name: string): string =>
  /^\.{1,2}[\\/]/.test(path) ? path.replace(/:\d+(?::\d+)?$/, "") : `<path>/${name}`;

/** Maximum length of a message that is read. Varying parts are rarely longer than the remaining line, and a single long word takes long. */
const MAX_READ_LENGTH = 1_000;

/** Returns one line. `reading` says how much of it is replaced, everything by default. */
export function normalizeMessage(message: string, reading: Reading = BARE): string {
  const line = message.slice(0, MAX_READ_LENGTH).replace(/\s+/g, " ").trim();
  let text = line.replace(/\bHTTP\/[\d.]+/g, "HTTP");
  for (const [pattern, replacement, needed] of VARYING)
    if (needed.test(text)) text = text.replace(pattern, replacement as string);
  text = text.replace(QUOTED, (quoted) => (reading.values || quoted.length > MAX_QUOTED ? "<value>" : quoted));
  text = text.replace(HOST, (_, port: string | undefined) => `<host>${portOf(port)}`);
  text = text.replace(FILE, (path, name: string) => (reading.values ? "<path>" : plainPath(path, name)));
  text = text.replace(FOLDER, (path) => (reading.values || MACHINE.test(path) ? "<path>" : plainRoute(path)));
  for (const [pattern, replacement] of REST) text = text.replace(pattern, replacement);
  const numbers = text.match(NUMBER) ?? [];
  const keepsStatus = ABOUT_HTTP.test(line) || (numbers.length > 1 && numbers.every((number) => STATUS.test(number)));
  text = text.replace(TOKEN, (token, at: number) => {
    if (token[0] === "<") return token;
    if (!/\d/.test(token)) return plainWord(token);
    const before = text.slice(Math.max(0, at - 40), at);
    if (VERSION.test(token) || token.startsWith("0x")) return token;
    if (/^[-+]?\d[\d_,.]*(?:e[+-]?\d+)?%?$/i.test(token))
      return plainNumber(token, before, { ...reading, keepsStatus });
    if (CODE.test(token) || (SQLSTATE.test(token) && /\d/.test(token) && BEFORE_CODE.test(before))) return token;
    return plainWord(token);
  });
  return text.slice(0, 300);
}

function plainNumber(
  number: string,
  before: string,
  { numbers, keepsStatus }: Reading & { keepsStatus: boolean },
): string {
  const isInstance = BEFORE_INSTANCE.test(before);
  if (keepsStatus && STATUS.test(number) && !(isInstance && /[\w#] ?$/.test(before))) return number;
  if (/^\d{1,5}$/.test(number) && BEFORE_CODE.test(before)) return number;
  // Keeps the port of a known service after a name.
  if (/[\w>]:$/.test(before) && SERVICE_PORT.test(number)) return number;
  if (/^\d+\.\d+$/.test(number) && BEFORE_VERSION.test(before)) return number;
  if (numbers || !/^\d{1,2}$/.test(number) || isInstance) return "<n>";
  return number;
}

/** Words that assertions use whatever they assert. */
const BOILERPLATE = new Set(
  (
    "a an the to be is are was were been not no of and or in on at with than that this it its has have had should must " +
    "expect expected expects received receive actual got but value values object objects strict strictly deep deeply " +
    "equal equals equality equivalent match matches same identical tobe toequal tostrictequal true false null nil none " +
    "undefined nan assert asserting assertion asserted failed failure fail error errors test tests case input inputs " +
    "left right diff difference string strings number numbers array arrays two both instead truthy falsy loosely " +
    "id hex time path host duration email suite run ran load loads loaded exited code pending"
  ).split(" "),
);

/** Whether a message says nothing about what went wrong. `wordsOfType` is the number of specific words in the name of its exception. */
const isGeneric = (message: string, wordsOfType: number): boolean =>
  !/\b[1-5]\d\d\b/.test(message) &&
  wordsOfType + (message.toLowerCase().match(/[a-z]{2,}/g) ?? []).filter((word) => !BOILERPLATE.has(word)).length < 2;

/** Types that only say that something failed. */
const VAGUE_TYPE = /^(?:Error|Exception|Failure|Failed|Timeout|TestingLibraryElementError|RuntimeError|panic)$/;
const ASSERTION_TYPE = /Assert|Expect/;
const isVague = (type: string): boolean => VAGUE_TYPE.test(type) || ASSERTION_TYPE.test(type);
const isAssertion = (type: string | null, message: string): boolean =>
  /assert|expect/i.test(type ?? "") || /^\W*(?:assert|expect|check_|failed asserting|xct)/i.test(message);

/** Errors of the language: the location says more about them than the missing name. */
const OF_THE_LANGUAGE =
  /^(?:TypeError|NullPointerException|NullReferenceException|NoMethodError|AttributeError|ReferenceError|panic)$/;

/** Failures of the environment of a test, which are one bug wherever they occur. */
const OUTSIDE =
  /\b(?:ECONNREFUSED|ECONNRESET|ECONNABORTED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOSPC|EMFILE|ENOMEM|connection refused|connection reset|no route to host|no such host|name or service not known|temporary failure in name resolution|no space left on device|too many open files)\b/i;

/** PHPUnit and bats write the test or the location before the message. */
const PLACE = /^(?:[\w\\]+::\w+(?: with data set .*)?|\((?:in|from) .{1,300} line \d+[,)].*)$/;
// Matches blanks of one line only, otherwise a text of line breaks would take quadratic time.
const VALUES =
  /^[^\S\n\r\u2028\u2029]*(?:E\s+)?(?:expected|received|actual|but was|got|left|right|locator|selector)\b[^:]{0,40}: .*/gim;

/** Returns the first line of the message, or else of the stack, and the expected and actual values. */
function headline({ message, stack }: Failure): string {
  const text = `${(message ?? "").slice(0, 5_000)}\n${(stack ?? "").slice(0, 5_000)}`;
  const lines = text.match(/\S.*/g) ?? [];
  const first = lines.find((line) => !PLACE.test(line)) ?? lines[0] ?? "";
  const values = (text.match(VALUES) ?? []).map((line) => line.trim()).filter((line) => line !== first.trim());
  return [first, ...new Set(values)].slice(0, 3).join(" ");
}

/** The exception's name where the message does not begin with it. */
function typeInStack(stack: string | null): string | null {
  for (const line of (stack ?? "").split("\n", 400)) {
    const { type } = splitType(line.slice(0, 500));
    if (type) return type;
  }
  return null;
}

const digestOf = (...parts: string[]): string =>
  Bun.SHA256.hash([String(FINGERPRINT_VERSION), ...parts].join("\0"), "hex").slice(0, 32);

const frameText = ({ file, function: name }: Frame): string => `${file} ${name}`.trim();

/** Returns the innermost of the project's own frames, preferring frames outside of tests. */
function placeOf(stack: string | null): { frame: string | null; isTest: boolean } {
  const own = ownFrames(stack ?? "");
  const frame = own.find((frame) => !isTestFrame(frame)) ?? own[0];
  return { frame: frame ? frameText(frame) : null, isTest: frame !== undefined && isTestFrame(frame) };
}

const testOf = ({ file, suite, name }: Failure): string => [file, suite, name].filter(Boolean).join(" > ");

/** The parsed failure that both fingerprints are made of. Parsing the stack takes most of the time. */
type Read = ReturnType<typeof placeOf> & { type: string | null; rest: string };

export function readFailure(failure: Failure): Read {
  const { kind, stack } = failure;
  const { type, rest } = splitType(headline(failure));
  return { ...placeOf(stack), type: type ?? typeInStack(stack) ?? (kind === "timeout" ? "Timeout" : null), rest };
}

/** Returns the fingerprint by the message, regardless of the test, so that it is the same across test cases. */
export function fingerprint(failure: Failure, read = readFailure(failure)): Fingerprint {
  const { frames, test, message } = meaningOf(failure, read);
  // Whether a drawn part begins with a digit or a letter is random.
  const drawn = message.replace(/(?:[-_]*<(?:n|hex|size|id)>[-_]*)+/g, "<id>");
  return {
    kind: "message",
    digest: digestOf(read.type ?? "", drawn, ...frames, test ?? ""),
    exceptionType: read.type,
    message,
    frames,
    test,
  };
}

/** Returns the normalised message, and the location or test that distinguishes the failure, if needed. */
function meaningOf(
  failure: Failure,
  { type, rest, frame, isTest }: Read,
): Pick<Fingerprint, "message" | "frames" | "test"> {
  const fromOutside = OUTSIDE.test(`${type} ${rest}`);
  if (frame !== null && !isTest && !fromOutside) {
    const message = normalizeMessage(rest, { numbers: true, values: OF_THE_LANGUAGE.test(type ?? "") });
    return { message, frames: [frame], test: null };
  }
  const bare = normalizeMessage(rest);
  // A counted number is the subject of an assertion, and does not distinguish assertions.
  const words = normalizeMessage(rest, { numbers: /assert|expect/i.test(type ?? ""), values: false });
  const specific = type === null || isVague(type) ? 0 : 1;
  const saysLittle =
    failure.kind === "timeout" ||
    (!fromOutside && isGeneric(bare, 0) && (isAssertion(type, rest) || isGeneric(words, specific)));
  // Without a location, a generic message such as "expected 1 to be 2" belongs to its test; a specific message is one bug wherever it
  // occurs.
  return saysLittle ? { message: bare, frames: [], test: testOf(failure) } : { message: words, frames: [], test: null };
}

/**
 * Identifies a failure by its location, regardless of its message: the same case, exception and innermost own frame. Without a location,
 * the message without numbers is used.
 */
export function caseFingerprint(
  failure: Failure & { testCase: number },
  { frame, type, rest } = readFailure(failure),
): Fingerprint {
  const message = frame === null ? normalizeMessage(rest, { numbers: true, values: false }) : "";
  return {
    kind: "case",
    digest: digestOf("case", String(failure.testCase), type ?? "", frame ?? `says ${message}`),
    exceptionType: type,
    message,
    frames: frame === null ? [] : [frame],
    test: testOf(failure),
  };
}

/** The fingerprint of all failures of a test case that is known to be flaky. */
export const flakyFingerprint = (failure: Failure & { testCase: number }): Fingerprint => ({
  kind: "flaky",
  digest: digestOf("flaky", String(failure.testCase)),
  exceptionType: null,
  message: "",
  frames: [],
  test: testOf(failure),
});

const outage = (message: string, ...parts: string[]): Fingerprint => ({
  kind: "outage",
  // The digest still uses the rule of version 1.
  digest: Bun.SHA256.hash(["1", "outage", ...parts].join("\0"), "hex").slice(0, 32),
  exceptionType: "Outage",
  message,
  frames: [],
  test: null,
});

/** All failures of the project that match an infrastructure rule. */
export const infrastructureFingerprint = (rule: { id: string; name: string }): Fingerprint => ({
  kind: "infrastructure",
  digest: digestOf("infrastructure", rule.id),
  exceptionType: null,
  message: `Infrastructure: ${rule.name}`,
  frames: [],
  test: null,
});

/** The fingerprint of all failures of a run in which nearly everything failed without a common cause. */
export const outageFingerprint = (taskSlug: string): Fingerprint =>
  outage(`Nearly all test cases of "${taskSlug}" failed`, taskSlug);

/** All tasks of one execution in which nearly everything failed. */
export const executionOutageFingerprint = (executionId: string): Fingerprint =>
  outage(`Nearly all test cases of several tasks failed in execution ${executionId}`, "", executionId);

/** Whether a previously normalised text equals this message in all of its words, ignoring new ones. */
export function saysTheSame(old: string, message: string): boolean {
  const wordsOf = (text: string) =>
    text
      .replace(/<[a-z]+>/g, " ")
      .toLowerCase()
      .match(/[a-z]{3,}/g) ?? [];
  const words = new Set(wordsOf(message));
  return wordsOf(old).every((word) => words.has(word));
}
