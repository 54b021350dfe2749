/** The syntax of TeamCity service messages. */

import { clean } from "./text.ts";

export type MessageAttributes = Map<string, string>;
export type ServiceMessage = { kind: string; attributes: MessageAttributes; whole: boolean; end: number };

export const MESSAGE_START = "##teamcity[";
const MIN_BEGINNING = 3;
/** Whether the last line is a truncated message. */
export const isMessageStart = (line: string): boolean => line.length >= MIN_BEGINNING && MESSAGE_START.startsWith(line);

/** Parses the message at `start` as far as possible, visiting each character once. */
export function parseServiceMessage(text: string, start: number): ServiceMessage {
  const attributes: MessageAttributes = new Map();
  let at = start + MESSAGE_START.length;
  const kind = match(text, KIND, at);
  at += kind.length;
  for (let key = match(text, KEY, at); key !== ""; key = match(text, KEY, at)) {
    const value = at + key.length;
    const end = valueEnd(text, value);
    attributes.set(key.slice(0, key.lastIndexOf("=")).trim(), unescape(text.slice(value, end)));
    at = end + 1;
    if (text[end] !== "'") return { kind, attributes, whole: false, end };
  }
  const bare = attributes.size === 0 ? match(text, BARE, at) : "";
  if (bare !== "") at = valueEnd(text, at + bare.length) + 1;
  const close = match(text, CLOSE, at);
  return { kind, attributes, whole: close !== "", end: Math.min(at + close.length, text.length) };
}

const KIND = /[a-zA-Z]\w{0,100}/y;
const KEY = /[ \t]+[\w.:-]{1,100}[ \t]*=[ \t]*'/y;
// A single value may stand without a key: ##teamcity[progressMessage 'text'].
const BARE = /[ \t]+'/y;
const CLOSE = /[ \t]*\]/y;

function match(text: string, pattern: RegExp, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

const [QUOTE, PIPE, NEWLINE] = [0x27, 0x7c, 0x0a];

/** The quote that ends a value, or else the end of its line. */
function valueEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE || code === NEWLINE) return at;
    if (code === PIPE) at++;
  }
  return text.length;
}

const ESCAPES: Record<string, string> = { n: "\n", r: "\r", x: "\u0085", l: "\u2028", p: "\u2029" };

function unescape(value: string): string {
  if (!value.includes("|")) return clean(value);
  return clean(
    value.replace(/\|(?:0x([\da-f]{4})|([^]))/gi, (_, hex: string | undefined, char: string) =>
      hex ? String.fromCharCode(Number.parseInt(hex, 16)) : (ESCAPES[char] ?? char),
    ),
  );
}
