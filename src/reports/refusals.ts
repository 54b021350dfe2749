/** Recognises files that people upload by mistake, so that the error can name them. */

import { headOf } from "./text.ts";

type Json = Record<string, unknown>;

const MAGIC: [string, string][] = [
  ["PK\x03\x04", "a zip archive"],
  ["PK\x05\x06", "a zip archive"],
  ["%PDF-", "a PDF document"],
  ["\x89PNG", "a PNG image"],
  ["\xff\xd8\xff", "a JPEG image"],
  ["GIF8", "a GIF image"],
  ["BZh", "a bzip2 archive"],
  ["\xfd7zXZ", "an xz archive"],
  ["7z\xbc\xaf", "a 7z archive"],
  ["\x7fELF", "a program"],
  ["MZ", "a program"],
  ["SQLite format 3", "an SQLite database"],
];

/** Recognises a file by its first bytes, before it is decoded as text. */
export function binaryKind(bytes: Uint8Array): string | null {
  const head = headOf(bytes, 262);
  if (head.slice(257) === "ustar") return "a tar archive";
  return MAGIC.find(([magic]) => head.startsWith(magic))?.[1] ?? null;
}

const OTHERS = new Map([
  ["checkstyle", "a Checkstyle report"],
  ["svg", "an SVG image"],
  ["jmeterTestPlan", "a test plan of JMeter"],
  ["plist", "a property list"],
]);

/** Returns the kind of a document of another tool that has the root of a test report, if it is known. */
export function foreignKind(root: string, head: string): string | null {
  if (root === "testsuites" && head.includes("http://check.sourceforge.net/ns")) return "the XML of Check (libcheck)";
  if (root === "TestRun" && /<(?:FailedTests|SuccessfulTests|Statistics)\b/.test(head))
    return "the XML of CppUnit or AUnit";
  if (root === "assembly" && head.includes("http://maven.apache.org/")) return "a Maven assembly descriptor";
  return null;
}

/** `root` without a prefix; `head` is the beginning of the document. */
export function xmlKind(root: string, head: string): string | null {
  const foreign = foreignKind(root, head);
  if (foreign !== null) return foreign;
  if (/^(?:html|head|body)$/i.test(root)) return "an HTML page";
  if (root === "coverage") {
    if (/<file\s+path=|<lineToCover\b/.test(head)) return "SonarQube's generic coverage";
    return /\sclover=|\sgenerated="\d/.test(head) ? "a Clover coverage report" : "a Cobertura coverage report";
  }
  if (root === "report" && /JACOCO|<sessioninfo|<package|<counter/.test(head)) return "a JaCoCo coverage report";
  if (root === "testResults" && /<(?:httpSample|sample)\b|\sversion="/.test(head)) return "results of JMeter";
  if (root === "phpunit") return "PHPUnit's configuration (phpunit.xml)";
  if (root === "Site") return "what CTest writes of its other steps";
  if (root === "CoverageSession") return "an OpenCover coverage report";
  if (root === "project" && /maven\.apache\.org\/POM|<modelVersion>|<artifactId>/.test(head)) {
    return "a Maven project file (pom.xml)";
  }
  return OTHERS.get(root) ?? null;
}

export function jsonKind(json: unknown): string | null {
  if (Array.isArray(json) && json[0] === "start" && hasFields(json[1], "total"))
    return "the output of Mocha's json-stream (send that of --reporter json)";
  if (Array.isArray(json)) return hasFields(json[0], "filePath", "messages") ? "an ESLint report" : null;
  if (typeof json !== "object" || json === null) return null;
  const { $schema, version, runs, total } = json as Json;
  if (hasFields(json, "uid", "name") || hasFields(json, "reportName", "statistic"))
    return "data of a generated Allure report (send allure-results)";
  if ((typeof $schema === "string" && /sarif/i.test($schema)) || (typeof version === "string" && Array.isArray(runs))) {
    return "a SARIF report";
  }
  if (hasFields(total, "lines", "statements")) return "an Istanbul coverage summary";
  for (const file in json) {
    return hasFields((json as Json)[file], "statementMap", "fnMap") ? "an Istanbul coverage report" : null;
  }
  return null;
}

export function textKind(text: string): string {
  if (/^(?:TN:.*\n)?SF:/.test(text)) return "an LCOV coverage report";
  if (/^mode: (?:set|count|atomic)\n/.test(text)) return "a Go coverage profile";
  if (/^timeStamp,elapsed,label,/.test(text)) return "results of JMeter";
  if (/^=== RUN {1,2}\S/m.test(text)) return "the output of go test -v of Go before version 1.5";
  if (/^(?:ok  |FAIL)\t\S+\t(?:\(cached\)|\d+\.\d+s)/m.test(text))
    return "the output of go test without -v, which leaves out the tests that passed";
  if (
    /^(?:time: [^\n]{0,100}\n)?test(?:ing)?: [^\n]{1,1000}\n(?:time: [^\n]{0,100}\n)?(?:success(?:ful)?|failure|error|skip|xfail): /.test(
      text,
    )
  )
    return "subunit version 1, which subunit-1to2 converts to version 2";
  return /[\0\ufffd]/.test(text.slice(0, 1000)) ? "binary data" : "plain text";
}

export function hasFields(value: unknown, ...keys: string[]): boolean {
  return typeof value === "object" && value !== null && keys.every((key) => Object.hasOwn(value, key));
}
