/** Failures whose message says that something outside of the code is the cause. */

import { type Failure, readFailure } from "./fingerprint.ts";

const TYPES =
  /^(?:Connect\w*(?:Exception|Error|Refused\w*|Reset\w*|Timeout\w*)|Connection(?:Error|Refused\w*|Reset\w*|Aborted\w*|Closed\w*|Timeout\w*)|UnknownHost\w*|NoRouteToHost\w*|Socket(?:Timeout\w*|Exception)|NameResolution\w*|ServiceUnavailable\w*|BadGateway\w*|GatewayTimeout\w*|OutOfMemory\w*|MemoryError|SSLHandshake\w*)$/;
const WORDS = new RegExp(
  [
    "\\b(?:ECONNREFUSED|ECONNRESET|ECONNABORTED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EPIPE|ENOSPC|EMFILE|ENFILE|ENOMEM|EDQUOT|OOMKilled)\\b",
    "\\bconnection (?:[\\w<>:./-]+ ){0,8}(?:refused|reset|closed|aborted|lost|timed out|terminated)\\b",
    "\\b(?:refused|reset|closed) (?:the|by) (?:connection|peer)\\b",
    "\\bcan(?:not|'t) (?:reach|connect to) (?:the )?(?:database|server|host)\\b",
    "\\bno route to host\\b|\\bno such host\\b|\\bname or service not known\\b|\\bname resolution\\b|\\bnetwork is unreachable\\b",
    "\\b(?:status|status code|HTTP|response code|code)[ :=]{0,3}50[234]\\b|\\b50[234] (?:bad gateway|service|gateway)",
    "\\b(?:status|status code|HTTP|response)\\b.{0,40}\\b(?:got|received|returned|was|is|but)[ :]{1,2}50[234]\\b",
    "\\bbad gateway\\b|\\bservice (?:is )?(?:temporarily )?unavailable\\b|\\bgateway time-?out\\b|\\btoo many requests\\b",
    "\\btoo many (?:connections|open files|clients)\\b|\\bremaining connection slots\\b",
    "\\bno space left on device\\b|\\bdisk (?:is )?full\\b|\\bdisk quota exceeded\\b|\\bout of memory\\b|\\bcannot allocate memory\\b",
    "\\bcertificate (?:has|is) expired\\b|\\bread-only file system\\b",
  ].join("|"),
  "i",
);

/** The expectation of an assertion, which is the test's own text: "expected menu to say "disk full"". */
const EXPECTATION = /^(expected\b.{0,500}?) to [a-z].*$/s;

const LINE_END = /[\n\r\u2028\u2029]/;
/** The beginning of a line of a stack that names a cause: Java, JavaScript, Python, .NET. */
const CAUSE = /^(?:\[cause\]:|caused by:|cause:|-+> |\(Inner Exception #\d+\))/i;
const NAMED = /^(?:[\w$]+\.)*([\w$]+)(?::|$)/;

/** Whether it says, or its stack names as a cause, that something outside of the code did not answer, or ran out. */
export function isFromOutside(failure: Failure): boolean {
  const { type, rest } = readFailure(failure);
  const line = rest.slice(0, 1_000).replace(EXPECTATION, "$1");
  if (TYPES.test(type ?? "") || WORDS.test(line)) return true;
  // The values that a test compares may quote such a text.
  if (/assert|expect/i.test(`${type} ${line}`)) return false;
  const lines = (failure.stack ?? "").slice(0, MAX_STACK).split(LINE_END);
  return lines.some((line) => {
    const text = line.trimStart();
    const begin = CAUSE.exec(text)?.[0];
    if (begin === undefined) return false;
    const cause = text.slice(begin.length).trimStart().slice(0, MAX_CAUSE);
    return TYPES.test(NAMED.exec(cause)?.[1] ?? "") || WORDS.test(cause);
  });
}

/** Characters. */
const MAX_STACK = 8_000;
const MAX_CAUSE = 500;
