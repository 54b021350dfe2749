import { describe, expect, test } from "bun:test";
import { parseOwners } from "../../src/rules/codeowners.ts";
import type { OwnerSyntax } from "../../src/rules/owner_patterns.ts";
import { createOwnership } from "../../src/rules/owners.ts";

const ownersOf = (
  content: string,
  file: string | null,
  { suite = "", syntax }: { suite?: string; syntax?: OwnerSyntax } = {},
) => createOwnership(parseOwners(content, syntax))({ suite, file })?.owners;

/** Which of some paths a pattern matches. */
const matched = (pattern: string, syntax: OwnerSyntax, paths: readonly string[]) =>
  paths.filter((path) => ownersOf(`${pattern} @x`, path, { syntax })!.length > 0);

const PATHS = [
  "README.md",
  "docs/guide.md",
  "docs/api/index.md",
  "src/docs/guide.md",
  "src/app.js",
  "src/cart/cart.test.js",
  "src/cart/.env.js",
  "build/logs/today.txt",
  "deep/build/logs/today.txt",
];

describe("GitHub", () => {
  test.each<[string, string[]]>([
    ["*", PATHS],
    ["**", PATHS],
    ["/", PATHS],
    ["*.js", ["src/app.js", "src/cart/cart.test.js", "src/cart/.env.js"]],
    ["README.md", ["README.md"]],
    ["guide.md", ["docs/guide.md", "src/docs/guide.md"]],
    ["/docs/", ["docs/guide.md", "docs/api/index.md"]],
    ["/docs", ["docs/guide.md", "docs/api/index.md"]],
    ["docs/", ["docs/guide.md", "docs/api/index.md", "src/docs/guide.md"]],
    ["docs/*", ["docs/guide.md"]],
    ["docs/**", ["docs/guide.md", "docs/api/index.md"]],
    ["docs/api", ["docs/api/index.md"]],
    ["/build/logs/", ["build/logs/today.txt"]],
    ["**/logs", ["build/logs/today.txt", "deep/build/logs/today.txt"]],
    ["src/**/cart.*", ["src/cart/cart.test.js"]],
    ["src/*/c?rt.test.js", ["src/cart/cart.test.js"]],
    ["/src/c**t/*.js", ["src/cart/cart.test.js", "src/cart/.env.js"]],
    ["cart/cart.test.js", []],
    ["/guide.md", []],
    ["DOCS/", []],
  ])("%s", (pattern, expected) => expect(matched(pattern, "github", PATHS)).toEqual(expected));

  test("the last match wins, also one without owners", () => {
    const content = "* @all\n/src/ @app @lead\n/src/cart/ # nobody\n*.md docs@example.com";
    expect(ownersOf(content, "src/app.js")).toEqual(["@app", "@lead"]);
    expect(ownersOf(content, "src/cart/x.js")).toEqual([]);
    expect(ownersOf(content, "src/cart/x.md")).toEqual(["docs@example.com"]);
    expect(ownersOf(content, "x")).toEqual(["@all"]);
  });

  test("comments, blanks and escapes", () => {
    const content = "\ufeff# a comment\r\n\r\n\t/a\\ b/\t@x   @y # and why\r\n\\#c @z @z";
    expect(ownersOf(content, "a b/c")).toEqual(["@x", "@y"]);
    expect(ownersOf(content, "d/#c")).toEqual(["@z"]);
    expect(parseOwners(content).warnings).toEqual([]);
  });

  test("a line that cannot be read is a warning with its number, and gives no rule", () => {
    const { warnings, sections } = parseOwners(
      `/a @ok\n/b nobody @ok\n!/c @x\n/d[0-9] @x\n${"e".repeat(501)} @x\n// @x`,
      "github",
    );
    expect(warnings).toEqual([
      'Line 2: expected an owner such as "@name", "@group/team" or an e-mail address, got "nobody"',
      'Line 3: GitHub does not support "!" and "[ ]" in patterns, got "!/c"',
      'Line 4: GitHub does not support "!" and "[ ]" in patterns, got "/d[0-9]"',
      "Line 5: the pattern has more than 500 characters",
      'Line 6: expected a pattern, got "//"',
    ]);
    expect(sections[0]!.rules.map(({ line }) => line)).toEqual([1]);
  });

  test("a file of nothing but mistakes names the first 100", () => {
    const { warnings } = parseOwners("x nobody\n".repeat(150));
    expect(warnings).toHaveLength(101);
    expect(warnings.at(-1)).toBe("50 more lines could not be read");
  });
});

describe("GitLab", () => {
  test.each<[string, string[]]>([
    ["*", PATHS],
    ["*.js", ["src/app.js", "src/cart/cart.test.js", "src/cart/.env.js"]],
    ["docs/", ["docs/guide.md", "docs/api/index.md", "src/docs/guide.md"]],
    ["/docs/", ["docs/guide.md", "docs/api/index.md"]],
    ["docs/*", ["docs/guide.md", "src/docs/guide.md"]],
    ["/docs/*", ["docs/guide.md"]],
    ["/docs/**/*.md", ["docs/guide.md", "docs/api/index.md"]],
    ["docs/guide.md", ["docs/guide.md", "src/docs/guide.md"]],
    ["/docs", []],
    ["/src/[ab]pp.js", ["src/app.js"]],
    ["/src/[!a-b]pp.js", []],
    ["/src/[b-z]pp.js", []],
  ])("%s", (pattern, expected) => expect(matched(pattern, "gitlab", PATHS)).toEqual(expected));

  test("the last match of each section counts, and sections add up", () => {
    const content = [
      "* @everybody",
      "[Documentation][2] @docs",
      "docs/",
      "*.md @writers @everybody",
      "^[Database] @dba",
      "model/db/",
      "config/db/setup.md @docs",
    ].join("\n");
    expect(ownersOf(content, "x.rb")).toEqual(["@everybody"]);
    expect(ownersOf(content, "docs/x.png")).toEqual(["@everybody", "@docs"]);
    expect(ownersOf(content, "docs/x.md")).toEqual(["@everybody", "@writers"]);
    expect(ownersOf(content, "a/model/db/y.rb")).toEqual(["@everybody", "@dba"]);
    expect(ownersOf(content, "config/db/setup.md")).toEqual(["@everybody", "@writers", "@docs"]);
  });

  test("sections of one name are one, whatever the case; each heading has its own default owners", () => {
    const content = "[App] @a\n/src/\n[Other]\n/other/ @o\n[APP] @b\n/src/cart/";
    expect(parseOwners(content).sections.map(({ name }) => name)).toEqual(["app", "other"]);
    expect(ownersOf(content, "src/x")).toEqual(["@a"]);
    expect(ownersOf(content, "src/cart/x")).toEqual(["@b"]);
  });

  test("what a section excludes it does not include again; other sections keep theirs", () => {
    const content = "* @all\n!/vendor/\n/vendor/own/ @v\n[Ruby]\n*.rb @ruby\n!/config/**/*.rb";
    expect(ownersOf(content, "vendor/own/x")).toEqual([]);
    expect(ownersOf(content, "vendor/x.rb")).toEqual(["@ruby"]);
    expect(ownersOf(content, "config/a/x.rb")).toEqual(["@all"]);
  });

  test("a role is an owner, a word that is none is not, and a comment behind a rule still names owners", () => {
    const content = "[S]\n/a @@maintainer word\n/b @ok @in/valid! # see @lead";
    expect(ownersOf(content, "a")).toEqual(["@@maintainer"]);
    expect(ownersOf(content, "b")).toEqual(["@ok", "@lead"]);
    expect(parseOwners(content).warnings).toEqual([
      'Line 3: expected an owner such as "@name", "@group/team" or an e-mail address, got "@in/valid!"',
    ]);
  });

  test("a heading makes a file GitLab's, unless it is said whose it is", () => {
    expect(parseOwners("[Docs]\n/docs/ @d").syntax).toBe("gitlab");
    expect(parseOwners("/docs/ @d").syntax).toBe("github");
    expect(parseOwners("[Docs]\n/docs/ @d", "github").warnings).toEqual([
      'Line 1: GitHub does not support "!" and "[ ]" in patterns, got "[Docs]"',
    ]);
  });
});

describe("classes and packages", () => {
  const bySuite = (content: string, suite: string, file: string | null = null) => ownersOf(content, file, { suite });

  test.each<[string, string, boolean]>([
    ["class:com.acme.cart.**", "com.acme.cart.CartTest", true],
    ["class:com.acme.cart.**", "com.acme.cart.price.PriceTest", true],
    ["class:com.acme.cart.**", "com.acme.cart", false],
    ["class:com.acme.cart", "com.acme.cart.CartTest$Inner", true],
    ["class:com.acme.cart", "com.acme.cartoon.ToonTest", false],
    ["class:com.acme.*.CartTest", "com.acme.cart.CartTest", true],
    ["class:com.acme.*", "com.acme.CartTest", true],
    ["class:com.acme.*", "com.acme.cart.CartTest", false],
    ["class:*CartTest", "com.acme.cart.MyCartTest", true],
    ["class:github.com/acme/shop/cart", "github.com/acme/shop/cart", true],
    ["class:Acme\\Cart", "Acme\\Cart\\CartTest", true],
    ["class:Acme/Cart", "Acme\\Cart\\CartTest", true],
    ["class:cart::tests", "cart::tests::adds", true],
    ["class:checkout", "checkout > cart", true],
  ])("%s %s", (pattern, suite, isMatch) => expect(bySuite(`${pattern} @c`, suite)).toEqual(isMatch ? ["@c"] : []));

  test("stand among paths: the last match of either kind decides", () => {
    const content = "* @all\nclass:com.acme.cart.** @cart\n/special/ @special";
    expect(bySuite(content, "com.acme.cart.CartTest")).toEqual(["@cart"]);
    expect(bySuite(content, "com.acme.cart.CartTest", "special/CartTest.java")).toEqual(["@special"]);
  });

  test("without a file only what matches everything applies", () => {
    expect(bySuite("* @all", "a.B")).toEqual(["@all"]);
    expect(bySuite("*.js @js\n/* @root", "a.B")).toEqual([]);
  });
});

test("a pattern of stars takes no time that grows with the power of them", () => {
  const pattern = `${"*a".repeat(200)}b`;
  expect(matched(pattern, "github", [`${"a".repeat(2_000)}`])).toEqual([]);
  expect(matched(`${"**/a*/".repeat(60)}b`, "github", [`${"a/".repeat(1_000)}c`])).toEqual([]);
  expect(matched("*", "github", ["x".repeat(5_000)])).toEqual(["x".repeat(5_000)]);
});

test("rules times segments times characters are bounded for a case", () => {
  const [deep, long] = [`${"a/".repeat(90)}c`, "a".repeat(4_000)];
  expect(ownersOf("/**/*b @x\n".repeat(20_000), deep)).toBeUndefined();
  expect(ownersOf(`*a${"a".repeat(200)}?b? @x\n`.repeat(500), long)).toBeUndefined();
  expect(ownersOf("/src/*.ts @x\n".repeat(20_000), "src/a.ts")).toEqual(["@x"]);
  // No repository has such a folder.
  expect(ownersOf("/a/ @x", `${"a/".repeat(101)}c`)).toEqual([]);
});

test("counts what many sections look up for a deep path, so that others have their turn", () => {
  const sections = Array.from({ length: 1_000 }, (_, at) => `[s${at}]\n/q${at} @a`).join("\n");
  const steps = { taken: 0 };
  const owners = createOwnership(parseOwners(sections, "gitlab"));
  expect(owners({ suite: "", file: `${"a/".repeat(50)}b.ts` }, steps)?.owners).toEqual([]);
  expect(steps.taken).toBeGreaterThan(50_000);
});
