/** Finds documents of JSON and XML in a text that begin like a report and cannot be read to their end: a report is lost there. */

import { toFault } from "./fields.ts";
import { BREAKS_OFF, findFault } from "./json.ts";
import { emptyReport, type Report } from "./report.ts";
import { createCutter } from "./text.ts";
import { prolog } from "./xml_syntax.ts";

export type BrokenDocument = { at: number; reason: string };

/** A key that a JSON document of a report begins with, or has near its beginning. */
export const REPORT_KEY =
  /^\{\s*"(?:config|collection|results|run|taskSlug|created|root_group|metrics|state|options)"\s*:|"(?:testResults|num\w+Tests|num\w+TestSuites|suites|stats|reportFormat|tests|testNodes|exitcode|examples|elements|keyword|uri|uuid|failed)"\s*:/;
export const HEAD_LENGTH = 1_000;

/** The document that begins at a line like a report; null if it is whole, or is not JSON up to a key of a report. */
export function brokenAt(text: string, at: number): BrokenDocument | null {
  const rest = text.slice(at);
  if (rest.startsWith("<")) return isOpenXml(rest) ? { at, reason: BREAKS_OFF } : null;
  const key = REPORT_KEY.exec(rest.slice(0, HEAD_LENGTH));
  const fault = key && findFault(rest);
  return fault && !fault.isAfterEnd && fault.at >= key.index + key[0].length ? { at, reason: fault.reason } : null;
}

function isOpenXml(text: string): boolean {
  const { root } = prolog(text);
  return root === null || !(text.includes(`</${root}`) || /^[^>]*\/>/.test(text.slice(text.indexOf(`<${root}`))));
}

/** The document that begins in the last line which can begin one, and that the end of the text cuts off, whatever it is. */
export function findCutOff(text: string, from: number): BrokenDocument | null {
  const at = ["\n{", "\n[", "\n<"].reduce((last, start) => Math.max(last, text.lastIndexOf(start) + 1), 0);
  if (at <= from) return null;
  const rest = text.slice(at);
  const isCutOff = rest.startsWith("<") ? /^<(?:[A-Za-z?!][^<>]*)?$/.test(rest.trimEnd()) : isCutJson(rest.trimEnd());
  return isCutOff ? { at, reason: BREAKS_OFF } : null;
}

/** A cut within a word, a number or an escape is no end of the text for those who expect the whole of it. */
function isCutJson(text: string): boolean {
  const fault = findFault(text);
  if (!fault || fault.isAfterEnd) return false;
  const tail = text.slice(fault.at);
  return (
    fault.reason === BREAKS_OFF ||
    /^(?:\\(?:u[\da-fA-F]{0,3})?|[-+.\deE]+|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?)$/.test(tail)
  );
}

/** A red report in place of the one that is lost at a line. */
export function toLostReport(format: string, line: number, reason: string): Report {
  const message = `The report that begins at line ${line} cannot be read: ${reason}`;
  const cases = [toFault(createCutter(), { name: "(broken report)", message })];
  return { ...emptyReport(format), cases, partial: true };
}
