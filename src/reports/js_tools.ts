/** Names tests in the JUnit XML of JavaScript's tools as the tools' own JSON does: a test is the same one in both formats. */

import type { CaseName, KnownNames } from "./report.ts";

/** A test case in the words of the XML. `hostname` is that of its test suite, "" when there is none. */
type JunitName = CaseName & { classname: string; hostname: string };

/** Returns undefined where the test case does not have the form that the tool writes. */
type ToolReader = (test: JunitName) => (CaseName & KnownNames) | undefined;

type Attributes = Record<string, string | undefined>;

export const FAILED_TO_LOAD = "(file failed to load)";

/** Vitest's JUnit reporter joins the titles with this; its JSON lists them. */
const VITEST_SEPARATOR = " > ";
/** Playwright joins titles with this, and jest-junit is often configured to. */
const ARROW = " › ";

/** Splits joined titles at the last separator: a title that contains the separator is split the same way in both formats. */
function splitTitles(titles: readonly string[], separator: string): Pick<CaseName, "suite" | "name"> {
  const all = titles.join(separator);
  const at = all.lastIndexOf(separator);
  if (at === -1) return { suite: "", name: all };
  return { suite: all.slice(0, at).replaceAll(separator, " > "), name: all.slice(at + separator.length) };
}

export const splitVitestTitles = (titles: readonly string[]) => splitTitles(titles, VITEST_SEPARATOR);
export const splitPlaywrightTitles = (titles: readonly string[]) => splitTitles(titles, ARROW);

/** The suite of a Playwright test: the same test in two projects is two test cases. */
export const withProject = (project: string, suite: string): string => [project, suite].filter(Boolean).join(" > ");

/** The suite of a Jest test, with the separator that jest-junit writes where it is configured to " › ". */
export const joinJestSuites = (titles: readonly string[]): string => titles.join(" > ").replaceAll(ARROW, " > ");

/**
 * Returns the names that jest-junit may give the test with these titles. Its default joins all titles with blanks, which cannot be
 * separated again, and omits the file.
 */
export function namesInJestJunit(suites: readonly string[], name: string, file: string): CaseName[] {
  const joined = suites.join(" ");
  const names: [suite: string, name: string][] = [];
  if (suites.length > 0) names.push(["", `${joined} ${name}`]);
  if (suites.length > 1) names.push([joined, name]);
  return [
    ...names.flatMap(([suite, name]) => [
      { suite, name, file },
      { suite, name, file: null },
    ]),
    { suite: joinJestSuites(suites), name, file: null },
  ];
}

const readVitest: ToolReader = ({ name, classname, file }) => {
  // Vitest names a file that fails to load as if it were a test.
  if (name === classname && name === file) return { suite: "", name: FAILED_TO_LOAD, file };
  return classname === file ? { ...splitVitestTitles([name]), file } : undefined;
};

const readJest: ToolReader = ({ suite, name, classname, file }) => {
  const title = name.trim();
  if (classname.trim() === "Test suite failed to run") {
    const path = file ?? title;
    return { suite: "", name: FAILED_TO_LOAD, file: path };
  }
  // The test suite is called after the first describe block of the file, whatever block the test is in.
  if (classname.trim() === title || classname === "" || classname === file)
    return withoutFile({ suite: "", name: title, file }, true);
  const own = classname.replaceAll(ARROW, " > ").trim();
  const isRepeated = title.startsWith(`${classname} `);
  if (isRepeated) return withoutFile({ suite: own, name: title.slice(classname.length).trim(), file }, false);
  // A class name of another template keeps what the general rules make of it.
  return suite === classname || suite.endsWith(` > ${classname}`)
    ? withoutFile({ suite: own, name: title, file }, false)
    : undefined;
};

/** jest-junit leaves the file out unless it is configured to add it, and Jest's JSON names it absolutely. */
const withoutFile = (one: CaseName, keepOtherNames: boolean) =>
  one.file === null ? one : { ...one, otherNames: [{ suite: one.suite, name: one.name, file: null }], keepOtherNames };

const readMocha: ToolReader = ({ name, classname, file }) => {
  const [full, title] = name.length >= classname.length ? [name, classname] : [classname, name];
  if (title === "") return { suite: "", name: full, file };
  if (full === title) return { suite: "", name: title, file };
  return full.endsWith(` ${title}`) ? { suite: full.slice(0, -title.length).trim(), name: title, file } : undefined;
};

const readPlaywright: ToolReader = ({ name, classname, file, hostname }) => {
  const tag = `[${hostname}] `;
  const titles = splitPlaywrightTitles([hostname !== "" && name.startsWith(tag) ? name.slice(tag.length) : name]);
  return { suite: withProject(hostname, titles.suite), name: titles.name, file: file ?? classname };
};

/** Tools by the name of the root element, which each reporter has a default for. */
const TOOLS: Record<string, { name: string; read: ToolReader }> = {
  "vitest tests": { name: "Vitest", read: readVitest },
  "jest tests": { name: "Jest", read: readJest },
  "Mocha Tests": { name: "Mocha", read: readMocha },
};

const PLAYWRIGHT_ATTRIBUTES = "errors failures id name skipped tests time";

/** Returns whether Playwright wrote this root element. It writes the name of a project where others write that of the machine. */
export const isPlaywright = (root: Attributes): boolean => Object.keys(root).sort().join(" ") === PLAYWRIGHT_ATTRIBUTES;

/** Only Playwright's class name is the file that its test suite is called after. */
const asPlaywright: ToolReader = (test) => (test.classname === test.file ? readPlaywright(test) : undefined);

const PLAYWRIGHT = { name: "Playwright", read: asPlaywright };

const toolOf = (root: Attributes): { name: string; read: ToolReader } | undefined =>
  isPlaywright(root) ? PLAYWRIGHT : Object.hasOwn(TOOLS, root.name ?? "") ? TOOLS[root.name!] : undefined;

/** Returns the reader for the tool that wrote this root element, or undefined where another one wrote it. */
export const toolReaderOf = (root: Attributes): ToolReader | undefined => toolOf(root)?.read;

/** Returns the tool that wrote this root element, if its own format keeps retries, which its JUnit XML omits; undefined: another one wrote it. */
export const betterToolOf = (root: Attributes): string | undefined => toolOf(root)?.name;

const TIMED_OUT = /\btimeout of \d+ ?m?s exceeded\b/i;

export const isMochaTimeout = (message: string): boolean => TIMED_OUT.test(message.slice(0, 500));
