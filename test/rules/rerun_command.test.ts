import { describe, expect, test } from "bun:test";
import type { PlacedCase } from "../../src/rules/identity.ts";
import { PRESETS } from "../../src/rules/rerun_cases.ts";
import { mistakeInRerun } from "../../src/rules/rerun_command.ts";
import { findPreset } from "../../src/rules/rerun_insertion.ts";
import { at, cases, commandOf, reasonOf, toCommand } from "./rerunning.ts";

describe("the command of each preset", () => {
  const one: PlacedCase = at("cart > sum", "adds (1)", "src/it's.test.ts");
  const title = String.raw`'^\s*(?:cart[\s>]+sum[\s>]+adds\s+\(1\))\s*$'`;
  const file = `'src/it'\\''s.test.ts'`;
  test.each([
    ["jest", "npx jest --json", one, `npx jest -t ${title} --runTestsByPath ${file} --json`],
    ["vitest", "vitest run --coverage", one, `vitest run -t ${title} ${file} --coverage`],
    ["bun", "bun test --bail", one, `bun test -t ${title} './src/it'\\''s.test.ts' --bail`],
    [
      "mocha",
      "npx mocha --reporter json",
      at("cart > sum", "adds (1)", "test/cart.js"),
      String.raw`npx mocha --grep '^\s*(?:cart[\s>]+sum[\s>]+adds\s+\(1\))\s*$' --reporter json`,
    ],
    [
      "node",
      "node --import tsx --test 'test/**/*.test.ts'",
      at("cart", "adds (1)"),
      String.raw`node --test-name-pattern='(?:^|\s)(?:cart|adds\s+\(1\))\s*$' --import tsx --test 'test/**/*.test.ts'`,
    ],
    [
      "phpunit",
      "php vendor/bin/phpunit --log-junit report.xml",
      at("Acme\\Tests\\CartTest", "testSums with data set #1"),
      String.raw`php vendor/bin/phpunit --filter '(?:CartTest::testSums)(?:\s|$)' --log-junit report.xml`,
    ],
    [
      "playwright",
      "npx playwright test --workers=2",
      at("cart", "adds", "a.spec.ts"),
      `npx playwright test --grep '^(?:(?:.*\\s)?a\\.spec\\.ts[\\s>›]+cart[\\s>›]+adds|cart[\\s>›]+a\\.spec\\.ts[\\s>›]+adds)\\s*(?:@.*)?$' '(?:^|/)a\\.spec\\.ts$' --workers=2`,
    ],
    ["cypress", "npx cypress run", at("", "a", "cypress/e2e/a.cy.js"), "npx cypress run --spec 'cypress/e2e/a.cy.js'"],
    [
      "pytest",
      "python -m pytest -q tests -k 'not slow' | tee log",
      at("tests.test_a.TestX", "test_b[x::y $z]", "tests/test_a.py"),
      "python -m pytest 'tests/test_a.py::TestX::test_b[x::y $z]' -q -k 'not slow' | tee log",
    ],
    [
      "rspec",
      "bundle exec rspec -f json",
      at("Cart #sum", "is 0", "spec/a_spec.rb"),
      String.raw`bundle exec rspec 'spec/a_spec.rb' -E '^\s*(?:Cart\s+#sum[\s>]+is\s+0)\s*$' -f json`,
    ],
    [
      "go",
      "go test -json -tags unit ./... -args -x > report.json 2>&1",
      at("example.com/shop/cart", "TestSum/a_b/c"),
      "go test -json -tags unit -run '^(?:TestSum)$' 'example.com/shop/cart' -args -x > report.json 2>&1",
    ],
    [
      "go",
      "gotestsum --junitfile report.xml",
      at("example.com/shop/cart", "TestSum"),
      "gotestsum --junitfile report.xml -- -run '^(?:TestSum)$' 'example.com/shop/cart'",
    ],
    [
      "go",
      "gotestsum --junitfile report.xml -- -race ./cart/...",
      at("example.com/shop/cart", "TestSum"),
      "gotestsum --junitfile report.xml -- -race -run '^(?:TestSum)$' 'example.com/shop/cart'",
    ],
    [
      "maven",
      "./mvnw -B verify",
      at("com.acme.CartTest$Inner", "sums(int)[2]"),
      "./mvnw -Dtest='com.acme.CartTest$Inner#sums' -Dsurefire.failIfNoSpecifiedTests=false -B verify",
    ],
    [
      "dotnet",
      "dotnet test --logger trx -- RunConfiguration.MaxCpuCount=1",
      at("Acme.CartTests+Inner", "Sums"),
      "dotnet test --filter 'FullyQualifiedName=Acme.CartTests+Inner.Sums' --logger trx -- RunConfiguration.MaxCpuCount=1",
    ],
  ])("%s adds what failed to %j", (rerun, command, only, expected) => {
    expect(commandOf({ rerun, command, only: [only] })).toBe(expected);
  });

  test("methods of Java are joined by class, and one that is no method brings its whole class", () => {
    const only = [
      at("a.CartTest", "one"),
      at("a.CartTest", "two{int}[1]"),
      at("a.CartTest", "two{int}[2]"),
      at("a.OtherTest", "three"),
      at("a.OtherTest", "it is called so"),
    ];
    expect(commandOf({ rerun: "maven", command: "mvn test", only })).toContain(
      "-Dtest='a.CartTest#one+two,a.OtherTest' ",
    );
    expect(reasonOf({ rerun: "maven", command: "mvn test", only: [at("a b", "c")] })).toBe(`"a b" is not a Java class`);
  });

  test("tests of .NET with parameters are taken by the beginning of their names, and what is no method by its class", () => {
    const only = [at("A.Cart", "Sums(x: 1)"), at("A.Cart", "Sums(x: 2)"), at("A.Other", "it is called so")];
    expect(commandOf({ rerun: "dotnet", command: "dotnet test", only })).toBe(
      "dotnet test --filter 'FullyQualifiedName~A.Cart.Sums|FullyQualifiedName~A.Other.'",
    );
  });

  test("Cypress runs files, and none that it would take for a pattern", () => {
    const rerun = { rerun: "cypress", command: "cypress run" };
    const only = [1, 2, 1].map((n) => ({ suite: "", name: `n${n}`, file: `cypress/${n}.cy.js` }));
    expect(toCommand({ ...rerun, only })).toEqual({
      whole: false,
      command: "cypress run --spec 'cypress/1.cy.js,cypress/2.cy.js'",
      list: null,
      note: "Cypress runs all tests of the files",
    });
    expect(reasonOf({ ...rerun, only: [at("", "a", "e2e/[id].cy.js")] })).toBe(
      `Cypress takes the file "e2e/[id].cy.js" for a pattern`,
    );
  });

  test("pytest: the file is the longest part of the class that is one, however the folder is called", () => {
    const exists = (path: string) => ["/srv/shop/my.dir/test_a.py", "/srv/shop/tests/test_b.py"].includes(path);
    const node = (suite: string, name: string, file: string | null) =>
      commandOf({ rerun: "pytest", command: "pytest", only: [{ suite, name, file }], exists });
    expect(node("my.dir.test_a.TestX.TestY", "test", "my.dir/test_a.py")).toBe(
      "pytest 'my.dir/test_a.py::TestX::TestY::test'",
    );
    expect(node("tests.test_b", "test[\\xe9]", null)).toBe("pytest 'tests/test_b.py::test[\\xe9]'");
    // A character that XML cannot hold is not what it was.
    expect(node("tests.test_b", "test[#x1B]", null)).toBe("pytest 'tests/test_b.py::test'");
    const gone = { rerun: "pytest", command: "pytest", exists };
    expect(reasonOf({ ...gone, only: [at("tests.test_c", "test")] })).toBe(
      `there is no file for the module "tests.test_c"`,
    );
    // A module that cannot be collected.
    expect(reasonOf({ ...gone, only: [at("", "tests.test_b")] })).toBe(
      `"tests.test_b" is no test that can be selected`,
    );
  });

  test("RSpec: an example of a shared group names no file that can be run", () => {
    const only = [at("Cart", "is shared", "spec/support/shared.rb")];
    expect(commandOf({ rerun: "rspec", command: "rspec", only })).toBe(
      `rspec -E '^\\s*(?:Cart[\\s>]+is\\s+shared)\\s*$'`,
    );
    // rspec_junit_formatter calls the file a class.
    const junit = [at("spec.a_spec", "Cart sums", "spec/a_spec.rb")];
    expect(commandOf({ rerun: "rspec", command: "rspec", only: junit })).toContain("(?:Cart\\s+sums)");
  });
});

test.each([
  ["(file failed to load)", "", "a.test.ts"],
  ["(file failed)", "", "a.test.ts"],
  ["(package failed)", "shop/cart", null],
  ["(package did not finish)", "shop/cart", null],
  ["(build failed)", "shop/cart", null],
  ["(suite failed)", "cart", null],
  ["(test run failed)", "", null],
  ["(global setup failed)", "", "setup.ts"],
  ["(error outside of examples)", "", null],
  ["(plan mismatch)", "", null],
  ["(no name)", "", "a.test.ts"],
  ["(failure without a test case)", "", null],
  ["runner exited 1", "", null],
  ["runner failed", "", null],
  ["runner exited 137 (shard 2/4)", "", null],
])("%s is no test: the whole runs, whatever else has failed", (name, suite, file) => {
  const only = [...cases("a test"), { suite, name, file }];
  for (const rerun of [...PRESETS, "tool {names}"])
    expect(reasonOf({ rerun, only })).toBe(`${JSON.stringify(name)} has failed, which is no test that can be selected`);
});

test("a test may be called like that all the same, in brackets or not", () => {
  for (const name of ["(works)", "(a failed b)", "exited 1"]) expect(commandOf({ only: cases(name) })).toContain("-t");
  expect(commandOf({ only: [at("cli", "runner exited 1", "a.test.ts")] })).toContain("-t");
  expect(reasonOf({ only: [] })).toBe("no test case is named");
});

describe("the command of a task", () => {
  const only = cases("a");
  const args = `-t '^\\s*(?:a)\\s*$'`;
  const jest = `${args} --runTestsByPath 'a.test.ts'`;
  test.each([
    ["jest", "CI=1 npx --yes jest --ci # all", `CI=1 npx --yes jest ${jest} --ci # all`],
    ["jest", "npm ci && npx jest > out.txt 2>&1", `npm ci && npx jest ${jest} > out.txt 2>&1`],
    [
      "jest",
      "npm install jest\nnode --x node_modules/.bin/jest",
      `npm install jest\nnode --x node_modules/.bin/jest ${jest}`,
    ],
    ["jest", "if npx jest --json; then echo jest; fi", `if npx jest ${jest} --json; then echo jest; fi`],
    ["jest", "npx jest \\\n  --json", `npx jest ${jest} \\\n  --json`],
    ["jest", "docker compose run --rm web npx jest", `docker compose run --rm web npx jest ${jest}`],
    ["jest", "npm test", `npm test -- ${jest}`],
    ["jest", "npm run jest", `npm run jest -- ${jest}`],
    ["jest", "npm exec -- jest --ci", `npm exec -- jest ${jest} --ci`],
    ["jest", "npm run build && npm run test:unit -- --ci", `npm run build && npm run test:unit -- ${jest} --ci`],
    ["jest", "yarn test --ci", `yarn test ${jest} --ci`],
    ["jest", "pnpm run unit", `pnpm run unit ${jest}`],
    ["bun", "bun --env-file=.env test", `bun --env-file=.env test ${args} './a.test.ts'`],
    ["bun", "bun run test", `bun run test ${args} './a.test.ts'`],
    ["vitest", "npx vitest", `npx vitest ${args} 'a.test.ts'`],
  ])("of %s: %j", (rerun, command, expected) => {
    // jest-junit and the like: without --json the suite may be missing, and here there is none.
    expect(commandOf({ rerun, command, only })).toBe(expected);
  });

  test.each([
    ["jest", "make test", "does not run jest itself; a template with {jest}"],
    ["jest", `sh -c "npx jest"`, "does not run jest itself"],
    ["jest", "ssh host npx jest", "does not run jest itself"],
    ["jest", "npm run build", "does not run jest itself"],
    ["jest", "npm exec jest", "does not run jest itself"],
    ["jest", "npm run a && npm run b", "does not run jest itself"],
    ["jest", "npx jest a && npx jest b", "runs jest more than once"],
    ["jest", "cd web && npx jest", "goes to another folder"],
    ["jest", "npm test -w web", "runs in another folder by -w"],
    ["jest", "npx jest -t cart", "has its own -t"],
    ["jest", "npx jest --shard=1/4", "has its own --shard=1/4"],
    ["playwright", "npx playwright test --grep @smoke", "has its own --grep"],
    ["playwright", "npx playwright install", "does not run playwright itself"],
    ["go", "go test -run TestA ./...", "has its own -run"],
    ["go", "make test", "does not run go itself"],
    ["maven", "mvn test -Dtest=A", "has its own -Dtest=A"],
    ["pytest", "npm test", "does not run pytest itself"],
    ["pytest", "pytest --unknown tests", "whether tests belongs to --unknown is not known"],
    ["pytest", "pytest $DIRECTORY", "has a variable where paths may be"],
    ["jest", "npx jest <<END\nEND", "cannot be understood: it has a here-document"],
    ["jest", "npx jest 'a", "cannot be understood: it has an opening quotation mark"],
    ["jest", "npx jest $'a'", "cannot be understood: it has $'…'"],
  ])("of %s that cannot be added to: %j", (rerun, command, reason) => {
    const named = { pytest: at("test_a", "test_b", "test_a.py"), go: at("a", "TestA") };
    const java = at("a.A", "b");
    const one = rerun === "maven" ? java : (named[rerun as "go"] ?? only[0]!);
    expect(reasonOf({ rerun, command, only: [one] })).toContain(reason);
  });
});

test.each([
  ["npx jest --ci", "jest"],
  ["TZ=UTC python3 -m pytest -q", "pytest"],
  ["go test -json ./... > r.json", "go"],
  ["npm test", "vitest"],
  ["yarn e2e", "playwright"],
  ["npm run other", undefined],
  ["npx jest && npx playwright test", undefined],
  ["node server.js", undefined],
  ["make test", undefined],
])("%j runs %p", (command, preset) => {
  const scripts = { test: "vitest run", e2e: "playwright test", other: "make test" };
  expect(findPreset(command, scripts)).toBe(preset as never);
});

describe("mistakeInRerun", () => {
  test.each([
    ...PRESETS,
    "a {files}",
    "a {names} > {list}",
    "awk '{print}' {list}",
    "echo ${HOME} {pattern}",
    "a={pattern} b",
  ])("finds nothing in %j", (rerun) => {
    expect(mistakeInRerun(rerun)).toBeNull();
  });

  test.each([
    ["jset", "expected one of jest, vitest, "],
    ["npx jest", "or a command with a placeholder such as {files}"],
    ["npx jest {file}", "as placeholders and not {file}"],
    ["npx jest -t '{pattern}'", "expected {pattern} outside of quotes"],
    [`npx jest -t "{pattern}"`, "expected {pattern} outside of quotes"],
    ["npx jest `echo {files}`", "expected {files} outside of quotes"],
    ["npx jest $(echo {files})", "expected {files} outside of quotes"],
    ["npx jest ${A:-{files}}", "expected {files} outside of quotes"],
    ["npx jest # {files}", "expected {files} outside of quotes"],
    ["npx jest \\{files}", "expected {files} outside of quotes"],
    ["npx jest --only={files}", "expected {files} as a word by itself"],
    ["npx jest x{jest}", "expected {jest} as a word by itself"],
    ["cat <<END\n{files}\nEND", "expected a command that can be understood: it has a here-document"],
    ["npx jest {files} $'a'", "expected a command that can be understood: it has $'…'"],
    ['npx jest {files} "a', "expected a command that can be understood: it has an opening quotation mark"],
  ])("%j", (rerun, mistake) => {
    expect(mistakeInRerun(rerun)).toContain(mistake);
  });
});
