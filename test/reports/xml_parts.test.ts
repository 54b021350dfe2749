import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import { join } from "node:path";
import { isContainer, isRoot, readJunit } from "../../src/reports/junit.ts";
import type { Report } from "../../src/reports/report.ts";
import { clean } from "../../src/reports/text.ts";
import { parseXml } from "../../src/reports/xml.ts";
import { divide } from "../../src/reports/xml_divide.ts";
import { isFull } from "../depth.ts";
import { createRandom } from "../random.ts";

const FIXTURES = join(import.meta.dir, "../fixtures");

const reading = { whole: "testcase", isDivisible: isContainer, isRoot, read: readJunit };
const whole = (text: string): Report => parseXml(text, reading).result;
const parts = (text: string, characters = 1) => [
  ...divide(text, isContainer, { part: { characters, elements: 1_000_000 }, isRoot }),
];

/** Some fixtures hold terminal colours, references to what is no character, and node writes "]]>" as it is. */
function toWellFormed(text: string): string {
  const plain = clean(text.replace(/&#x(?:1b|dc00);/gi, "")).trim();
  try {
    return (Bun.XML.parse(plain), plain);
  } catch (error) {
    if (/root/.test((error as Error).message)) return plain;
    return plain.replaceAll("]]>", "]]&gt;");
  }
}

function resultOf(read: () => Report): Report | string {
  try {
    return read();
  } catch (error) {
    return `${error}`;
  }
}

function expectSame(text: string): void {
  const expected = resultOf(() => whole(text));
  for (const characters of [1, 100, 1_000])
    expect(resultOf(() => readJunit(parts(text, characters)))).toEqual(expected);
}

describe("a JUnit document in parts is read as it is whole", () => {
  for (const name of [...new Glob("*{junit,xunit}.xml").scanSync(FIXTURES)].sort())
    test(name, async () => {
      const text = toWellFormed(await Bun.file(join(FIXTURES, name)).text());
      expect(parts(text).length).toBeGreaterThan(1);
      expectSame(text);
    });

  const documents: Record<string, string> = {
    "suites in suites, with cases between them":
      `<testsuites name="all" tests="4"><testsuite name="a" file="a.test.ts"><testcase name="1"/><testsuite name="b">` +
      `<testcase name="2"/></testsuite><testcase name="3"/></testsuite><testsuite name="c"><testcase name="4"/></testsuite></testsuites>`,
    "a declaration, comments, CDATA, instructions, and tags that look like others":
      `<?xml version="1.0" encoding="UTF-8"?><!-- <testsuite> --><testsuites><?x <y> ?><testsuite name="a &gt; b" x='">'>` +
      `<testcase name="<1>"><system-out><![CDATA[</testcase><testsuite>]]></system-out></testcase><!-- > --></testsuite></testsuites><!-- end -->`.replace(
        '"<1>"',
        '"&lt;1>"',
      ),
    "failures outside of cases, and cases inside of cases":
      `<testsuites><testsuite name="a"><failure message="set-up"/><error>text</error><testcase name="1"><testcase name="2">` +
      `<failure message="f"/></testcase></testcase></testsuite><testsuite name="b"><error message="late"/></testsuite></testsuites>`,
    prefixes: `<j:testsuites xmlns:j="urn:j"><j:testsuite name="a"><j:testcase name="1"><j:skipped/></j:testcase><j:testcase name="2"/></j:testsuite></j:testsuites>`,
    "unknown elements around suites": `<testrun name="r"><group><testsuite name="a"><testcase name="1"/></testsuite><more/></group><testsuite name="b"><testcase name="2"/></testsuite></testrun>`,
    "one suite as root": `<testsuite name="a" timestamp="2024-05-05T05:05:05Z" time="2"><properties><property name="k" value="v"/></properties><testcase name="1"/><testcase name="2"/></testsuite>`,
    "times of which one is missing": `<testsuites><testsuite timestamp="2024-05-05T05:05:05Z" name="a"><testcase name="1"/></testsuite><testsuite name="b"><testcase name="2"/></testsuite></testsuites>`,
    "times of which the last counts": `<testsuites><testsuite timestamp="2024-05-05T05:05:05Z" name="a"><testcase name="1"/></testsuite><testsuite timestamp="2024-05-05T06:05:05Z" time="3" name="b"><testcase name="2"/></testsuite></testsuites>`,
    "totals that are wrong at every level":
      `<testsuites tests="9" failures="9"><testsuite name="a" failures="1"><testsuite name="b" tests="1" errors="2"><testcase name="1"/></testsuite>` +
      `<testcase name="2"><failure/></testcase></testsuite><testsuite name="c" failures="1"><testsuite name="d" skipped="1"/><testcase name="3"/></testsuite></testsuites>`,
    "comments that count": `<testsuites><testsuite name="a"><testcase name="1"/></testsuite><testcase name="2"/><!-- fail 1 --><!-- cancelled 2 --></testsuites>`,
    "several roots": `<?xml version="1.0"?><testsuites tests="2"><testsuite name="a"><testcase name="1"/></testsuite></testsuites><?xml version="1.0"?>\n<!-- b -->\n<testsuite name="b" errors="1"><testcase name="2"/></testsuite><testsuites/>`,
    "names that are cut": `<testsuites><testsuite name="${"n".repeat(2_000)}"><testcase name="${"m".repeat(2_000)}"/><testcase name="2"/></testsuite></testsuites>`,
  };
  for (const [what, text] of Object.entries(documents)) test(what, () => expectSame(text));

  test("a hundred nested suites", () => {
    const text = `${'<testsuite name="s"><testcase name="c"/>'.repeat(99)}${"</testsuite>".repeat(99)}`;
    expect(readJunit(parts(text, 500))).toEqual(whole(text));
  });

  test("whatever nests in whatever", () => {
    const { integer } = createRandom(7);
    const random = (below: number) => integer(0, below - 1);
    const names = ["testsuite", "testsuites", "testcase", "failure", "system-out", "other", "properties", "property"];
    const element = (depth: number): string => {
      const name = depth === 0 ? names[random(2)]! : names[random(names.length)]!;
      const inner =
        depth > 6 ? "" : Array.from({ length: random(5) }, () => (random(4) ? element(depth + 1) : " text ")).join("");
      const totals = random(3) ? "" : ` tests="${random(3)}" failures="${random(2)}" skipped="${random(2)}"`;
      const tag = `${name}${totals} name="${"<>&\"'xyz"[random(8)]!.replace(/[<&"]/, "&amp;")}${random(9)}"`;
      return inner === "" && random(2) ? `<${tag}/>` : `<${tag}>${inner}</${name}>`;
    };
    for (let index = 0; index < (isFull ? 300 : 60); index++)
      expectSame(Array.from({ length: 1 + random(2) }, () => element(0)).join("\n"));
  });
});

describe("a large document that is not well formed is read in parts as it is whole", () => {
  const start = `<testsuites><testsuite name="s">${'<testcase name="0"/>'.repeat(50)}</testsuite>\n<testsuite name="t">`;
  const small = { characters: 100, elements: 10 };
  const outcome = (sizes: typeof small | undefined, text: string) => {
    try {
      return parseXml(text, reading, ...(sizes ? [{ large: sizes, part: sizes }] : []));
    } catch (error) {
      return `${error}`;
    }
  };
  const ends: Record<string, string> = {
    "it breaks off": `<testcase name="1"/>\n<testcase name="2"><failure`,
    "it closes what is not open": `<testcase name="1"/></b></testsuite></testsuites>`,
    "a character is not escaped": `<testcase name="1"><failure message="a & b"/></testcase></testsuite></testsuites>`,
    "there is more after its end": `<testcase name="1"/></testsuite></testsuites>\n<other/>`,
    "there is another root": `<testcase name="1"/></testsuite></testsuites>\n<testsuites><testsuite name="u"><testcase name="2"/></testsuite></testsuites>`,
    "there is another root, which breaks off": `<testcase name="1"/></testsuite></testsuites>\n<testsuite name="u"><testcase name="2"/><testcase`,
    "there is text between two roots": `<testcase name="1"/></testsuite></testsuites>\nand\n<testsuites/>`,
    "an entity is not declared": `<testcase name="&foo;"/></testsuite></testsuites>`,
    "an attribute is there twice": `<testcase name="1" name="2"/></testsuite></testsuites>`,
    "a comment holds two hyphens": `<!-- a -- b --><testcase name="1"/></testsuite></testsuites>`,
    "a comment is not closed": `<testcase name="1"/><!-- </testsuite></testsuites>`,
    "a quote is not closed": `<testcase name="1/></testsuite></testsuites>`,
  };
  for (const [what, end] of Object.entries(ends))
    test(what, () => expect(outcome(small, start + end)).toEqual(outcome(undefined, start + end)));

  const medium = { characters: 1_000_000, elements: 100_000 };

  test("it is nested too deeply", () => {
    const text = `${"<testsuite>".repeat(60_000)}${"</testsuite>".repeat(60_000)}`;
    for (const sizes of [medium, undefined])
      expect(outcome(sizes, text)).toEqual("ReportError: its elements are nested more than 100 levels deep");
  });

  test.skipIf(!isFull)("it holds too many cases, which is told only when nothing is wrong with the markup", () => {
    const text = `<testsuite>${'<testcase name="1"/>'.repeat(200_001)}<a b="1" b="2"/></testsuite>`;
    expect(outcome(medium, text)).toEqual(outcome(undefined, text));
  });
});
