/** A small project for each test tool: about a dozen tests with awkward names, of which some fail. */

export type Project = {
  tool: string;
  /** Of the files, where the command runs; without it all of them. */
  directory?: string;
  /** From npm, into one folder. */
  packages?: string[];
  /** Prints it; ends with something else than 0 where the tool is not there. */
  version: string;
  files: Record<string, string>;
  command: string;
  /** A glob. */
  report: string;
  rerun: string;
  /** How many cases the report has as failed. */
  failures: number;
  /** What may run though it did not fail, as the end of its file and its name, and why it does. */
  more?: string[];
  why?: string;
};

/** Names that shells, patterns, XML and JSON read in their own ways; every other one fails. */
const NAMES = [
  `says "it's" \`now\``,
  `costs $5 & $(touch hacked) \\d+`,
  `a|b (c) [d] {e} ^f$ .* ?`,
  `größer 日本 🎉 <tag attr="x">`,
  `-t --dash`,
  `a > b`,
  `#hash; rm -rf x # y`,
  `plain`,
];

/** `describe` and `test` as in Jest; a test passes where the second text says so. */
const javascript = (imports: string) => `${imports}
const works = () => {};
const fails = () => { throw new Error("on purpose"); };
const names = ${JSON.stringify(NAMES)};
names.forEach((name, at) => test(name, at % 2 === 0 ? fails : works));
describe("outer (1)", () => {
  test("plain", works);
  describe("inner $x", () => {
    test("plain", fails);
    test("plain too", works);
    test("is * it?", fails);
  });
});
describe("login", () => {
  test("login works", fails);
  test("works", works);
});
`;

const each = `
test.each([[1, 2], [2, 2], [3, 4]])("adds %i + $ %i", (a, b) => { if (a !== b) throw new Error("on purpose"); });
`;

/** The same names in another file, where all of them pass. */
const same = (imports: string) => `${imports}
test("plain", () => {});
test("a > b", () => {});
describe("outer (1)", () => { describe("inner $x", () => { test("plain", () => {}); test("unlike", () => { throw new Error("on purpose"); }); }); });
`;

const JEST_FAILURES = 4 + 2 + 1 + 2 + 1;
const jestFiles = {
  "src/it's [a] $x.test.js": javascript("") + each,
  "src/other.test.js": same(""),
  "src/untouched.test.js": `test("plain", () => {});`,
};
/** One pattern is for all files. */
const SAME = {
  more: ["src/other.test.js plain", "src/other.test.ts plain"],
  why: "a test of the same title in another of the files",
};
const vitest = (test: string) => `import { describe, expect, test } from "${test}";`;
const vitestFiles = {
  "src/it's [a] $x.test.ts": javascript(vitest("vitest")) + each,
  "src/other.test.ts": same(vitest("vitest")),
  "src/untouched.test.ts": `${vitest("vitest")}\ntest("plain", () => {});`,
  "package.json": `{ "type": "module", "scripts": { "test": "vitest run --silent" } }`,
};

const playwright = (settings: string) => ({
  "playwright.config.js": `module.exports = { testDir: "e2e", reporter: [["json", { outputFile: "report.json" }]], ${settings} };`,
  "e2e/it's [a] $x.spec.js":
    javascript(`const { test } = require("@playwright/test");\nconst { describe } = test;`) +
    `for (const n of [1, 2]) test("n is " + n + " @smoke", { tag: "@fast" }, n === 1 ? fails : works);
test.describe(() => { test("in a group without a name", fails); });`,
  "e2e/other.spec.js": same(`const { test } = require("@playwright/test");\nconst { describe } = test;`),
  "e2e/untouched.spec.js": `require("@playwright/test").test("plain", () => {});`,
});

/** Only xunit1 tells the file: a folder with a dot in its name is two to xunit2. */
const pytestFiles = (sub: string) => ({
  "tests/test_some.py": `import pytest, unittest

@pytest.mark.parametrize("text", ["a b", "x::y", "[z]", "$(touch hacked)", "it's \\"q\\"", "é", "-k", "a/b.py", "l\\nl"])
def test_texts(text):
    assert text in ("a b", "[z]", "-k")

@pytest.mark.parametrize("a,b", [(1, 1), (1, 2)])
def test_pairs(a, b):
    assert a == b

class TestGroup:
    class TestInner:
        def test_deep(self):
            assert False
        def test_fine(self):
            pass
    def test_deep(self):
        pass

class Old(unittest.TestCase):
    def test_old(self):
        self.fail()

@pytest.fixture
def broken():
    yield
    raise ValueError("teardown")

def test_teardown(broken):
    pass
`,
  [`tests/${sub}/test_some.py`]: `def test_pairs():
    assert False
def test_deep():
    pass
`,
  "tests/untouched/test_untouched.py": `def test_it():
    pass
`,
});

const rspecFiles = {
  "spec/it's_[a]_spec.rb": `names = ${JSON.stringify(NAMES).replaceAll("#{", "\\#{").replaceAll("$", "\\$")}
require_relative "support/shared"
RSpec.describe "outer (1)" do
  names.each_with_index { |name, at| it(name) { raise "on purpose" if at.even? } }
  context "inner $x" do
    it("plain") { raise "on purpose" }
    it("plain too") {}
  end
  describe Array, "#size" do
    it("is 0") { expect([].size).to eq 1 }
  end
end
`,
  "spec/other_spec.rb": `RSpec.describe "outer (1)" do
  it("plain") {}
  it("unlike") { raise "on purpose" }
end
`,
  "spec/support/shared.rb": `RSpec.shared_examples "shared" do
  it("is shared") { raise "on purpose" }
end
`,
};

const goFiles = {
  "go.mod": "module example.com/shop\n\ngo 1.19\n",
  "a/a_test.go": `package a

import "testing"

func TestNames(t *testing.T) {
	for at, name := range []string{"it's \\"q\\"", "a b/c", "$(touch hacked)", "größer"} {
		at := at
		t.Run(name, func(t *testing.T) {
			if at%2 == 0 {
				t.Fatal("on purpose")
			}
		})
	}
}
func TestPlain(t *testing.T)     { t.Fatal("on purpose") }
func TestPlainToo(t *testing.T)  {}
func TestÜber(t *testing.T)      { t.Fatal("on purpose") }
func TestSame(t *testing.T)      {}
`,
  "b/b_test.go": `package b

import "testing"

func TestSame(t *testing.T)  { t.Fatal("on purpose") }
func TestOther(t *testing.T) {}
`,
  "c/c_test.go": `package c

import "testing"

func TestPlain(t *testing.T) {}
`,
};

const mavenFiles = {
  "pom.xml": `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>com.acme</groupId><artifactId>shop</artifactId><version>1</version>
<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<dependencies><dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.10.2</version><scope>test</scope></dependency></dependencies>
<build><plugins><plugin><artifactId>maven-resources-plugin</artifactId><version>3.5.0</version></plugin><plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version></plugin><plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version></plugin></plugins></build></project>`,
  "src/test/java/com/acme/CartTest.java": `package com.acme;
import static org.junit.jupiter.api.Assertions.*;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.*;
class CartTest {
  @Test void fails() { fail("on purpose"); }
  @Test void works() {}
  @ParameterizedTest @ValueSource(strings = {"a b", "$(touch hacked)", "it's"}) void each(String text) { assertEquals("a b", text); }
  @ParameterizedTest @ValueSource(ints = {1, 2}) void fine(int n) {}
  @DisplayName("called $x") @Test void called() { fail("on purpose"); }
  @Nested class Inner {
    @Test void deep() { fail("on purpose"); }
    @Test void works() {}
  }
}
`,
  "src/test/java/com/acme/OtherTest.java": `package com.acme;
import org.junit.jupiter.api.*;
class OtherTest { @Test void fails() {} @Test void works() {} }
`,
};

export const PROJECTS: Project[] = [
  {
    tool: "jest, JSON",
    packages: ["jest"],
    version: "npx jest --version",
    files: { ...jestFiles, "package.json": `{}` },
    command: "npx jest --ci --json --outputFile=report.json > /dev/null",
    report: "report.json",
    rerun: "jest",
    failures: JEST_FAILURES,
    ...SAME,
  },
  {
    tool: "jest, jest-junit by npm test",
    packages: ["jest", "jest-junit"],
    version: "npx jest --version",
    files: {
      ...jestFiles,
      "package.json": `{ "scripts": { "test": "jest --ci --reporters=jest-junit" }, "jest-junit": { "addFileAttribute": "true" } }`,
    },
    command: "npm test",
    report: "junit.xml",
    rerun: "jest",
    failures: JEST_FAILURES,
    more: ["src/other.test.js outer (1) inner $x plain", "src/it's [a] $x.test.js login works"],
    why: "what is of that title in all files",
  },
  ...["vitest@5", "vitest@4", "vitest@3"].map((name): Project => ({
    tool: `${name}, JSON`,
    packages: [name],
    version: "npx vitest --version",
    files: vitestFiles,
    command: "npx vitest run --reporter=json --outputFile=report.json --silent",
    report: "report.json",
    rerun: "vitest",
    failures: JEST_FAILURES,
    more: SAME.more,
    why: SAME.why,
  })),
  {
    tool: "vitest@5, JUnit by npm test",
    packages: ["vitest@5"],
    version: "npx vitest --version",
    files: vitestFiles,
    command: "npm test -- --reporter=junit --outputFile=report.xml",
    report: "report.xml",
    rerun: "vitest",
    failures: JEST_FAILURES,
    more: ["src/other.test.ts outer (1) > inner $x > plain"],
    why: SAME.why,
  },
  {
    tool: "bun",
    version: "bun --version",
    files: {
      "src/it's [a] $x.test.ts": javascript(vitest("bun:test")) + each,
      "src/other.test.ts": same(vitest("bun:test")),
      "src/untouched.test.ts": `${vitest("bun:test")}\ntest("plain", () => {});`,
      "deep/src/other.test.ts": same(vitest("bun:test")).replace('throw new Error("on purpose")', ""),
    },
    command: "bun test --reporter=junit --reporter-outfile=report.xml",
    report: "report.xml",
    rerun: "bun",
    failures: JEST_FAILURES,
    ...SAME,
  },
  {
    tool: "playwright",
    packages: ["@playwright/test"],
    version: "npx playwright --version",
    files: playwright(""),
    command: "npx playwright test",
    report: "report.json",
    rerun: "playwright",
    failures: 4 + 2 + 1 + 2 + 1,
  },
  {
    tool: "playwright, two projects",
    packages: ["@playwright/test"],
    version: "npx playwright --version",
    files: playwright(`projects: [{ name: "my chrome" }, { name: "(b) $x" }]`),
    command: "npx playwright test",
    report: "report.json",
    rerun: "playwright",
    failures: 2 * (4 + 2 + 1 + 2 + 1),
  },
  {
    tool: "playwright, JUnit, as a template",
    packages: ["@playwright/test"],
    version: "npx playwright --version",
    files: playwright(`projects: [{ name: "my chrome" }]`),
    command: "PLAYWRIGHT_JUNIT_OUTPUT_NAME=report.xml npx playwright test --reporter=junit",
    report: "report.xml",
    rerun: "PLAYWRIGHT_JUNIT_OUTPUT_NAME=report.xml npx playwright test --reporter=junit {playwright}",
    failures: 4 + 2 + 1 + 2 + 1,
  },
  {
    tool: "cypress",
    packages: ["cypress"],
    version: "npx cypress verify && npx cypress --version",
    files: {
      "cypress.config.js": `module.exports = { e2e: { supportFile: false } };`,
      "cypress/e2e/a.cy.js": `it("fails", () => { throw new Error("on purpose"); }); it("works", () => {});`,
      "cypress/e2e/b.cy.js": `it("fails", () => {}); it("works", () => {});`,
    },
    command: "npx cypress run --reporter junit --reporter-options mochaFile=report-[hash].xml",
    report: "report-*.xml",
    rerun: "cypress",
    failures: 1,
    more: ["cypress/e2e/a.cy.js works"],
    why: "all tests of the file",
  },
  {
    tool: "pytest, xunit2",
    version: "python3 -m pytest --version",
    files: pytestFiles("sub"),
    command: "python3 -m pytest -q -p no:cacheprovider --import-mode=importlib tests --junitxml report.xml",
    report: "report.xml",
    rerun: "pytest",
    failures: 6 + 1 + 1 + 1 + 1 + 1,
  },
  {
    tool: "pytest, xunit1, as a template",
    version: "python3 -m pytest --version",
    files: {
      ...pytestFiles("sub.dir"),
      "run.sh": 'exec python3 -m pytest -q -o junit_family=xunit1 --import-mode=importlib --junitxml=report.xml "$@"',
    },
    command: "sh run.sh tests",
    report: "report.xml",
    rerun: "sh run.sh {pytest}",
    failures: 6 + 1 + 1 + 1 + 1 + 1,
  },
  {
    tool: "pytest, so many that a list holds them",
    version: "python3 -m pytest --version",
    files: {
      "tests/test_many.py": `import pytest

@pytest.mark.parametrize("n", range(2000), ids=lambda n: f"{n} " + "is 'long' $x" * 8)
def test_many(n):
    assert n % 2
`,
    },
    command: "python3 -m pytest -q tests --tb=no --junitxml report.xml",
    report: "report.xml",
    rerun: "pytest",
    failures: 1_000,
  },
  {
    tool: "pytest of Debian, further inside",
    version: "/usr/bin/python3 -m pytest --version",
    files: pytestFiles("sub"),
    directory: "tests",
    command: "/usr/bin/python3 -m pytest -v --rootdir .. --import-mode=importlib --junitxml=report.xml | cat",
    report: "report.xml",
    rerun: "pytest",
    failures: 6 + 1 + 1 + 1 + 1 + 1,
  },
  {
    tool: "rspec, JSON",
    version: "rspec --version",
    files: rspecFiles,
    command: "rspec --format json --out report.json",
    report: "report.json",
    rerun: "rspec",
    failures: 4 + 1 + 1 + 1,
  },
  {
    tool: "rspec, JSON, a shared example",
    version: "rspec --version",
    files: {
      ...rspecFiles,
      "spec/third_spec.rb": `require_relative "support/shared"\nRSpec.describe("third") { include_examples "shared"; it("works") {} }\n`,
    },
    command: "rspec --format json --out report.json",
    report: "report.json",
    rerun: "rspec",
    failures: 4 + 1 + 1 + 1 + 1,
  },
  {
    tool: "go",
    version: "go version",
    files: goFiles,
    command: "go test -json -timeout 60s ./... > report.json 2>&1",
    report: "report.json",
    rerun: "go",
    failures: 1 + 2 + 1 + 1 + 1,
    more: [" TestNames/a_b/c", " TestNames/größer", " TestSame"],
    why: "all subtests, and tests of that name in the other packages",
  },
  {
    tool: "maven",
    // Only where these plugins have been fetched before.
    version: "mvn --version && mvn -o -q -B test-compile",
    files: mavenFiles,
    command: "mvn -o -q -B test",
    report: "target/surefire-reports/TEST-*.xml",
    rerun: "maven",
    failures: 1 + 2 + 1 + 1,
    more: [" each(String)[1]", " each{String}[1]"],
    why: "all parameters of a method",
  },
];
