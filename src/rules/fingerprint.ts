/** Which failures are one bug: the same exception, the same message but for what varies, in the same places. */

import { type Frame, isTestFrame, ownFrames } from "./stack.ts";

/** Raised whenever the same failure gets another fingerprint: old ones then no longer match. */
export const FINGERPRINT_VERSION = 1;

export type Failure = {
  kind: string | null;
  message: string | null;
  stack: string | null;
  suite: string;
  name: string;
  file: string | null;
};

/** `digest` is 32 hexadecimal digits; the rest tells what it was made of. */
export type Fingerprint = {
  digest: string;
  exceptionType: string | null;
  /** Normalised. */
  message: string;
  /** As "file function". */
  frames: string[];
  /** The test, where nothing else tells the failure from others. */
  test: string | null;
};

const TYPE_NAME =
  "(?:[A-Za-z_$][\\w$]*(?:\\.|::|\\\\))*(?:[A-Z][\\w$]*)?(?:Error|Exception|Failure|Failed|Fault|Panic|Timeout|Interrupt|Exit|Mismatch)\\b";
const TYPED = new RegExp(
  `^\\s*(?:E\\s+|Caused by: |Uncaught |Unhandled )?(${TYPE_NAME})(?:\\s*\\[[\\w-]+\\])?\\s*(?::\\s*|$)`,
);

/** The exception's own name, without package; Go and Rust have panics instead. */
function splitType(line: string): { type: string | null; rest: string } {
  const match = TYPED.exec(line);
  if (match) return { type: match[1]!.split(/\.|::|\\/).at(-1)!, rest: line.slice(match[0].length) };
  const panic = /^\s*(panic|fatal error): /.exec(line) ?? /^thread '.{0,200}' (panicked) at /.exec(line);
  return panic ? { type: "panic", rest: line.slice(panic[0].length) } : { type: null, rest: line };
}

/** In the order in which they are tried: what holds others comes first. */
const VARYING: [RegExp, string][] = [
  [/\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+\b/g, "<email>"],
  [/\b([a-z][a-z0-9+]{1,10}):\/\/[^\s/"'`<>)\]]+/gi, "$1://<host>"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>"],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|\s?[+-]\d\d:?\d\d)?)?\b/g, "<time>"],
  [
    /\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? (?:\w{3} )?\d{1,2} (?:\w{3} )?\d{4}(?: \d\d:\d\d:\d\d)?(?: (?:GMT|UTC)[+\d]*)?/gi,
    "<time>",
  ],
  [/\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b(?!:)/g, "<time>"],
  [/"(?:[^"\\\n]|\\.){0,1000}"|'(?:[^'\\\n]|\\.){0,1000}'(?![A-Za-z])|`[^`\n]{0,1000}`|“[^”\n]{0,1000}”/g, "<value>"],
  [
    // Where a label has begun once, beginning within it finds nothing more, and takes long where it is long.
    /(?:\[[0-9a-f:]{2,40}\]|\blocalhost|\b(?:\d{1,3}\.){3}\d{1,3}|::1|\b(?<!\w-*)[\w-]+(?:\.[\w-]+)*\.(?:local|internal|lan|com|net|org|io|dev|test|example|cluster))(?::\d{1,5})?\b/gi,
    "<host>",
  ],
  [/(?<![\w<])(?:[A-Za-z]:)?(?:\.{0,2}[\\/])?(?:[\w@.+~-]+[\\/]){1,30}[\w@.+~-]*\.\w{1,8}(?::\d+){0,2}/g, "<path>"],
  [/(?<![\w<>/])(?:[A-Za-z]:\\|\/)(?:[\w@.+~-]+[\\/])+[\w@.+~-]*/g, "<path>"],
  [/\b0x[0-9a-f]+\b/gi, "<hex>"],
  [/\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b/gi, "<hex>"],
  [
    /\b\d+(?:,\d{3})*(?:[.,]\d+)?\s?(?:ns|µs|us|ms|milliseconds?|s|sec|secs|seconds?|m|min|minutes?|h|hours?)\b/g,
    "<duration>",
  ],
  [
    /\b(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*[_-]?(?=[A-Za-z0-9_-]*)\b/g,
    "<word>",
  ],
];

/** HTTP statuses are kept where the text is about requests, or holds nothing else: 404 and 503 are different bugs. */
const ABOUT_HTTP =
  /\b(?:https?|status(?: ?code)?|response|request(?:ed)?|fetch|axios|api|endpoint|unauthorized|forbidden|gateway|unavailable|not found)\b/i;
const STATUS = /^(?:20[0-6]|30[0-478]|40[0-9]|41[0-8]|42[1-689]|431|451|50[0-8]|51[01]|52[0-6])$/;
const NUMBER = /(?<![\w<.])[-+]?\d(?:[\d_]|,(?=\d{3}))*(?:\.\d+)?(?:e[+-]?\d+)?%?(?![\w>])/gi;

/** A word that only carries a number, as `user42` and `utf8` do: the letters say more than the digits. */
const plainWord = (word: string): string =>
  /^\d+e\d+$/i.test(word)
    ? word
    : /\d{4,}|\d[A-Za-z]+\d/.test(word) || word.length > 24
      ? "<id>"
      : word.replace(/\d+/g, "<n>");

export function normalizeMessage(message: string): string {
  const line = message.slice(0, 2_000).replace(/\s+/g, " ").trim();
  let text = line.replace(/\bHTTP\/[\d.]+/g, "HTTP");
  for (const [pattern, replacement] of VARYING)
    text = replacement === "<word>" ? text.replace(pattern, plainWord) : text.replace(pattern, replacement);
  const numbers = text.match(NUMBER) ?? [];
  const keepsStatus = ABOUT_HTTP.test(line) || (numbers.length > 1 && numbers.every((number) => STATUS.test(number)));
  return text.replace(NUMBER, (number) => (keepsStatus && STATUS.test(number) ? number : "<n>")).slice(0, 300);
}

/** What assertions say whatever they assert. */
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

/** Whether the message says nothing but that an assertion failed. */
const isGeneric = (message: string): boolean =>
  !/\b[1-5]\d\d\b/.test(message) &&
  (message.toLowerCase().match(/[a-z]{2,}/g) ?? []).filter((word) => !BOILERPLATE.has(word)).length < 2;

const MAX_FRAMES = 3;

/** PHPUnit and bats tell the test or the place before they tell what happened. */
const PLACE = /^(?:[\w\\]+::\w+(?: with data set .*)?|\((?:in|from) .{1,300} line \d+[,)].*)$/;
// Only blanks of its own line, or a text of nothing but line breaks would be gone through from each of them.
const VALUES = /^[^\S\n\r\u2028\u2029]*(?:E\s+)?(?:expected|received|actual|but was|got|left|right)\b[^:]{0,40}: .*/gim;

/** What happened: the first line of the message or else of the stack, and what they say of expected and actual values. */
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

export function fingerprint(failure: Failure): Fingerprint {
  const { type: told, rest } = splitType(headline(failure));
  const exceptionType = told ?? typeInStack(failure.stack) ?? (failure.kind === "timeout" ? "Timeout" : null);
  const message = normalizeMessage(rest);
  const own = ownFrames(failure.stack ?? "").filter((frame) => !isTestFrame(frame));
  const frames = own.slice(0, MAX_FRAMES).map(({ file, function: name }: Frame) => `${file} ${name}`.trim());
  // Without a place of its own a bare "expected 1 to be 2" is the test's; a telling message is one bug wherever it shows.
  const saysLittle = failure.kind === "timeout" || isGeneric(message);
  const test = frames.length === 0 && saysLittle ? [failure.file ?? "", failure.suite, failure.name].join(" > ") : null;
  const parts = [String(FINGERPRINT_VERSION), exceptionType ?? "", message, ...frames, test ?? ""];
  return {
    digest: Bun.SHA256.hash(parts.join("\0"), "hex").slice(0, 32),
    exceptionType,
    message,
    frames,
    test,
  };
}

/** All failures of a run in which nearly everything failed. */
export function outageFingerprint(taskSlug: string): Fingerprint {
  const message = `Nearly all test cases of "${taskSlug}" failed`;
  const parts = [String(FINGERPRINT_VERSION), "outage", taskSlug];
  return {
    digest: Bun.SHA256.hash(parts.join("\0"), "hex").slice(0, 32),
    exceptionType: "Outage",
    message,
    frames: [],
    test: null,
  };
}
