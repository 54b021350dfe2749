/** Names and files in rerun commands: what a shell, a tool and a folder make of them. */

import { describe, expect, test } from "bun:test";
import { LIST_VARIABLE } from "../../src/rules/rerun_cases.ts";
import { argumentsOf, at, cases, commandOf, reasonOf, toCommand } from "./rerunning.ts";

const HOSTILE = [
  `it's "quoted" \`id\` $(id) $HOME \${HOME}`,
  `a; exit 3 && b | c > /dev/null < e & # f`,
  `-t --dash`,
  `\\ \\\\ \\' * ? [a-z] {a,b} ~ !`,
  `two\nlines\tand a tab`,
  `größer 日本 🎉`,
  "",
];

describe("values", () => {
  test.each(["sh", "bash"])("reach the tool as they are, through %s", (shell) => {
    const names = HOSTILE.filter((name) => !name.startsWith("-"));
    // Files are stored with forward slashes.
    const files = HOSTILE.filter((name) => !name.includes("\n")).map((name) => name.replaceAll("\\", "") || "x");
    const only = names.flatMap((name) => files.map((file) => ({ suite: "", name, file: `${file}/x.test.ts` })));
    const command = commandOf({ rerun: "tool {names} -- {files}", only });
    const words = files.map((file) => `${/^[\p{L}\p{N}]/u.test(file) ? "" : "./"}${file}/x.test.ts`);
    expect(argumentsOf(command, shell)).toEqual([...names, "--", ...words]);
  });

  test.each([
    "/etc/passwd",
    "../../etc/passwd",
    "src/../../../tmp/evil.js",
    "/srv/shop/../evil.js",
    "/srv/shopping/a.test.ts",
    "file:///tmp/evil.js",
    "https://evil.test/x.js",
    "node_modules/evil/x.js",
    ".git/hooks/pre-commit",
    "a.test.ts\n--globalSetup=/tmp/evil.js",
    "a\u001b[2J.test.ts",
  ])("name no file outside of the folder, though it is there: %j", (file) => {
    const only = [{ suite: "", name: "x", file }];
    const exists = () => true;
    for (const rerun of ["tool {files}", "jest"])
      expect(reasonOf({ rerun, only, exists })).toStartWith("there is no file ");
  });

  test.each(["-p", "--globalSetup=/tmp/evil.js", "@/tmp/arguments"])("name no option: %s", (name) => {
    const reason = `the name "${name}" would be taken for an option`;
    expect(reasonOf({ rerun: "tool {names}", only: cases("a", name) })).toBe(reason);
    expect(argumentsOf(commandOf({ rerun: "tool {files}", only: [{ suite: "", name: "x", file: name }] }))).toEqual([
      `./${name}`,
    ]);
  });

  test.each(["\n", "\r", "\v", "\f", "\u001c", "\u0085", "\u2028"])("add no line to the file for pytest: %j", (end) => {
    const many = Array.from({ length: 4000 }, (_, index) => at("tests.test_a", `test_${index}`));
    const only = [...many, at("tests.test_a", `test${end}-p${end}evil`)];
    const exists = (path: string) => path.endsWith("/tests/test_a.py");
    expect(reasonOf({ rerun: "pytest", command: "pytest", only, exists })).toContain("that pytest cannot be given");
  });

  test.each(["/tmp/evil", "../evil", "a/../../evil", "-exec=x"])("name no package elsewhere for Go: %s", (suite) => {
    const only = [{ suite, name: "TestA", file: null }];
    expect(reasonOf({ rerun: "go", command: "go test ./...", only })).toBe(`"${suite}" is not a Go package`);
  });

  test("are told in the log without the terminal's commands", () => {
    const only = [at("", "x", "/tmp/\u009b2J\u001b[1m")];
    expect(reasonOf({ rerun: "jest", only })).toBe(`there is no file "/tmp/ 2J\\u001b[1m" in /srv/shop`);
  });

  test("match their own names as a pattern, and no others", () => {
    const suites = ["outer $ (1)", "outer > inner"];
    const names = HOSTILE.filter(Boolean);
    const only = suites.flatMap((suite) => names.map((name) => ({ suite, name, file: "a.test.ts" })));
    const [, , pattern] = argumentsOf(`npx jest ${commandOf({ command: "npx jest --json", only }).slice(8)}`);
    const [option, value] = argumentsOf(commandOf({ command: "npx jest --json", only }));
    expect([option, value?.[0]]).toEqual(["-t", "^"]);
    expect(pattern).toBe("--runTestsByPath");
    const regex = new RegExp(value!);
    for (const suite of ["outer $ (1)", "outer inner", "outer > inner"]) {
      for (const name of names) {
        for (const between of [" ", " > "]) expect(`${suite}${between}${name}`).toMatch(regex);
        expect(`x ${suite} ${name}`).not.toMatch(regex);
        expect(`${suite} ${name}x`).not.toMatch(regex);
      }
    }
    expect("outer $ (2) größer 日本 🎉").not.toMatch(regex);
  });

  test("a name that was cut matches by its beginning", () => {
    const name = `a ${"b".repeat(998)}`;
    const [, value] = argumentsOf(commandOf({ only: cases(name) }));
    expect(`${name} and so on`).toMatch(new RegExp(value!));
    expect(`x${name}`).not.toMatch(new RegExp(value!));
  });

  test("jest-junit names a suite that is not the test's own, so without --json the suite may be missing", () => {
    const only = [at("first", "login works", "a.test.ts")];
    const regexOf = (command: string) => new RegExp(argumentsOf(commandOf({ command, only }))[1]!);
    expect("login works").toMatch(regexOf("npx jest --reporters=jest-junit"));
    expect("first login works").toMatch(regexOf("npx jest --reporters=jest-junit"));
    expect("login works").not.toMatch(regexOf("npx jest --json"));
  });

  test("a list holds the cases as JSON, and the command has its path from a variable", () => {
    const only = cases(...HOSTILE);
    const made = toCommand({ rerun: "tool --list={list}", only });
    if (made.whole || made.list === null) throw new Error("There is no list");
    expect(JSON.parse(made.list)).toEqual(only);
    expect(argumentsOf(made.command, "sh", { [LIST_VARIABLE]: "/tmp/a b/$(id)" })).toEqual(["--list=/tmp/a b/$(id)"]);
  });

  test("a preset in a template is what it would add", () => {
    const only = [at("tests.test_a", "test_b", "tests/test_a.py")];
    expect(commandOf({ rerun: "docker run shop pytest {pytest} -q", only })).toBe(
      "docker run shop pytest 'tests/test_a.py::test_b' -q",
    );
    expect(reasonOf({ rerun: "tool {pytest} {jest}", only })).toBe(
      "a template may hold one preset, and then no {list}",
    );
    expect(commandOf({ rerun: "tool --only={namePattern} > log", only })).toBe(
      "tool --only='^\\s*(?:test_b)\\s*$' > log",
    );
  });
});

describe("files", () => {
  const commandFor = (file: string | null, there: string[], directory = "/srv/shop") =>
    toCommand({
      rerun: "tool {files}",
      only: [{ suite: "", name: "a", file }],
      directory,
      exists: (path) => there.includes(path),
    });

  test.each([
    ["a.test.ts", ["/srv/shop/a.test.ts"], "/srv/shop", "a.test.ts"],
    ["/srv/shop/src/a.test.ts", ["/srv/shop/src/a.test.ts"], "/srv/shop/", "src/a.test.ts"],
    // Told from where the repository begins, while the command runs in a part of it.
    ["packages/web/a.test.ts", ["/srv/shop/packages/web/a.test.ts"], "/srv/shop/packages/web", "a.test.ts"],
    ["web/web/a.test.ts", ["/srv/web/web/web/a.test.ts"], "/srv/web", "web/web/a.test.ts"],
  ])("%s is found in %j from %s", (file, there, directory, expected) => {
    expect(commandFor(file, there, directory)).toMatchObject({ whole: false, command: `tool '${expected}'` });
  });

  test.each([
    ["gone.test.ts", [], `there is no file "gone.test.ts" in /srv/shop`],
    ["src/a.test.ts", ["/srv/shop/a.test.ts"], `there is no file "src/a.test.ts" in /srv/shop`],
    ["/home/me/shop/a.test.ts", ["/home/me/shop/a.test.ts"], `there is no file "/home/me/shop/a.test.ts" in /srv/shop`],
    [null, [], `the report names no file for "a"`],
  ])("%s is not, and then the whole runs", (file, there, reason) => {
    expect(commandFor(file, there)).toEqual({ whole: true, reason });
  });

  test("a pattern finds tests of which the report tells no file", () => {
    const only = [...cases("a"), at("", "b")];
    expect(commandOf({ only })).toBe(`npx jest -t '^\\s*(?:(?:a|b))\\s*$' --json`);
  });
});

describe("what is too long for a command", () => {
  const many = (count: number, file: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => ({
      suite: "a suite of tests",
      name: `does what it should in case ${index}`,
      file: file(index),
    }));

  test("runs all tests of the files, and where these are too many the whole", () => {
    const few = toCommand({ only: many(10_000, (index) => `src/${index % 100}.test.ts`) });
    expect(few).toMatchObject({ whole: false, note: expect.stringContaining("All tests of the files run") });
    if (!few.whole) expect(argumentsOf(few.command)).toHaveLength(1 + 100 + 1);
    expect(reasonOf({ only: many(10_000, (index) => `src/${index}.test.ts`) })).toBe(
      "the names of what failed are too long for a command",
    );
    const own = commandOf({ only: many(1_000, () => "src/a.test.ts") });
    expect(own).toContain(" -t ");
    expect(argumentsOf(own)).toHaveLength(5);
  });

  test("names its files in the place of those that a documented split gives to the tool", () => {
    const split =
      "assay split 'src/**/*.test.ts' > files.txt && xargs -r -x -n 1000000 -d '\\n' -a files.txt npx jest --ci";
    const only = [at("cart", "adds", "src/cart.test.ts")];
    const plain = toCommand({ only, command: "npx jest --ci" });
    expect(plain.whole).toBeFalse();
    expect(toCommand({ only, command: split })).toEqual(plain);
    expect(toCommand({ only, command: split.replace("-a files.txt", "-a others.txt") }).whole).toBeTrue();
  });

  test("goes to pytest in a file", () => {
    const only = many(10_000, () => "").map(({ name }, at) => ({
      suite: "tests.test_a",
      name: `test[${name}]`,
      file: null,
      at,
    }));
    const made = toCommand({ rerun: "pytest", command: "pytest tests", only });
    expect(made).toMatchObject({ whole: false, command: `pytest "@$${LIST_VARIABLE}"`, note: null });
    if (!made.whole) expect(made.list?.split("\n")).toHaveLength(10_001);
  });

  test("of Go and of Java runs packages and classes", () => {
    const go = Array.from({ length: 10_000 }, (_, index) => at("shop/cart", `TestNumber${index}`));
    expect(commandOf({ rerun: "go", command: "go test ./...", only: go })).toBe("go test 'shop/cart'");
    const java = go.map(({ name }) => ({ suite: "a.CartTest", name, file: null }));
    expect(commandOf({ rerun: "maven", command: "mvn test", only: java })).toContain("-Dtest='a.CartTest' ");
  });
});
