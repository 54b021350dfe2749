/** Names test cases of JUnit XML by their suites, their class and their file. */

const SOURCE = /\.(?:[cm]?[jt]sx?|py|rb|php|bats|go|rs|dart|lua|pl|t|sh|exs?|feature|vue|svelte)$/i;

export function isFile(name: string): boolean {
  // A sentence may end in a file name; a path with a space in it has a slash too.
  return name.length <= 500 && SOURCE.test(name) && (/[\\/]/.test(name) || !/\s/.test(name));
}

/** pytest writes the module and the classes as one dotted name; only names of pytest's own test files are trusted. */
function pytestFile(suites: string[], classname: string): string | null {
  if (!suites.includes("pytest")) return null;
  const parts = classname.split(".");
  while (/^[A-Z]/.test(parts.at(-1) ?? "")) parts.pop();
  return /^(?:test_\w*|\w+_test|tests?)$/.test(parts.at(-1) ?? "") ? `${parts.join("/")}.py` : null;
}

// Names that tools give to their whole report do not describe a test.
const TOOL = /^(?:pytest|mocha tests|cucumber-js|jest tests|vitest tests|bun test|alltests|run \d+ of \d+)$/i;
const DOTTED = /^[\p{L}_$][\w$]*(?:\.[\p{L}_$][\w$]*)+$/u;

/** Maximum number of classes whose names are cached. */
const MAX_SAID = 1_000;

/**
 * Returns the suite of a test: the suites around it from the outside in, without those that only repeat the file or the tool; then the
 * classname, unless it repeats the suites, the file or the test (node's "test", jest-junit's full title, bun's suites from the inside out).
 * A dotted class of Java or Python is complete by itself, so the suites around it, which depend on how the run was split, are left out.
 */
export function createNamer() {
  // Neighbours mostly share their suites, and a class its file.
  let around = [] as string[];
  const said = new Map<string, { file: string | null; alone: string; together: string }>();
  let guess = { suites: [] as string[], classname: "", file: null as string | null };
  return {
    toSuite(suites: string[], classname: string, name: string, file: string | null): string {
      if (suites !== around || said.size > MAX_SAID) {
        around = suites;
        said.clear();
      }
      let known = said.get(classname);
      if (known?.file !== file) {
        const path = suites.filter((suite) => !isNameOf(suite, file) && !TOOL.test(suite));
        // bun's root suite is the file, and its classname the path from the inside out.
        const isBun = path.length > 0 && suites[0] === file;
        const says = !isBun && classname !== "" && classname !== "test" && !isNameOf(classname, file);
        const alone = path.join(" > ");
        known = { file, alone, together: says ? joinClass(path, classname) : alone };
        said.set(classname, known);
      }
      return name === classname || name.endsWith(` ${classname}`) ? known.alone : known.together;
    },
    /** Guesses the file of a case that has none. */
    toFile(suites: string[], classname: string): string | null {
      if (suites !== guess.suites || classname !== guess.classname) {
        guess = { suites, classname, file: isFile(classname) ? classname : pytestFile(suites, classname) };
      }
      return guess.file;
    },
  };
}

export type Namer = ReturnType<typeof createNamer>;

function joinClass(path: string[], classname: string): string {
  if (DOTTED.test(classname)) return classname;
  const inner = path.at(-1) ?? "";
  const before = inner.charAt(inner.length - classname.length - 1);
  if (path.includes(classname) || (inner.endsWith(classname) && /[\s.]/.test(before))) return path.join(" > ");
  const continues = inner !== "" && classname.startsWith(inner) && !/^\w/.test(classname.slice(inner.length));
  return [...(continues ? path.slice(0, -1) : path), classname].join(" > ");
}

function isNameOf(text: string, file: string | null): boolean {
  if (file === null) return false;
  return text === file || endsPath(file, text) || (/^(?:\/|[A-Z]:)/.test(text) && endsPath(text, file));
}

function endsPath(path: string, end: string): boolean {
  return path.endsWith(end) && path[path.length - end.length - 1] === "/";
}
