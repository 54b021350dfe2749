import { describe, expect, test } from "bun:test";
import {
  caseFingerprint,
  type Failure,
  fingerprint,
  normalizeMessage,
  outageFingerprint,
} from "../../src/rules/fingerprint.ts";
import { isTestFrame, ownFrames } from "../../src/rules/stack.ts";
import { isFull } from "../depth.ts";
import bugs from "./fingerprint_bugs.json";

const failure = (message: string | null, stack: string | null = null, name = "a"): Failure => ({
  ...{ message, stack, kind: "failure", suite: "s", name, file: "test/a.test.ts" },
});

const js = (line: string, place = "src/cart.ts", name = "add") =>
  `${line}\n    at ${name} (/home/ci/work/${place}:12:3)\n    at Object.<anonymous> (/home/ci/work/test/a.test.ts:5:1)\n    at run (/home/ci/work/node_modules/vitest/dist/chunk.js:100:1)`;
const java = (line: string) =>
  `${line}\n\tat com.acme.shop.Cart.add(Cart.java:12)\n\tat com.acme.shop.CartTest.adds(CartTest.java:5)\n\tat org.junit.jupiter.engine.Call.run(Call.java:1)`;
const python = (line: string) =>
  `Traceback (most recent call last):\n  File "/usr/lib/python3.11/unittest/case.py", line 57, in run\n  File "/ci/tests/test_cart.py", line 9, in test_add\n  File "/ci/shop/cart.py", line 5, in add\n    raise X\n${line}`;

describe("a labelled set of failures", () => {
  /** Each list of the table is one bug; no two lists are the same one. As the tools write them, with what varies from run to run. */
  const labelled = Object.entries<Partial<Failure>[]>(bugs).flatMap(([bug, failures]) =>
    failures.map((one) => ({ bug, digest: fingerprint({ ...failure(null), ...one }).digest })),
  );
  const pairs = labelled.flatMap((a, index) => labelled.slice(index + 1).map((b) => [a, b] as const));

  test("no pair of two bugs is joined", () => {
    expect(pairs.filter(([a, b]) => a.bug !== b.bug && a.digest === b.digest).map(([a, b]) => [a.bug, b.bug])).toEqual(
      [],
    );
  });

  test("no pair of one bug is split", () => {
    expect(pairs.filter(([a, b]) => a.bug === b.bug && a.digest !== b.digest).map(([a]) => a.bug)).toEqual([]);
  });
});

describe("a message", () => {
  test.each([
    ["expected 3 to equal -5.5e3", "expected <n> to equal <n>"],
    ["Request failed with status code 503", "Request failed with status code 503"],
    ["got 12 items, 503 bytes", "got <n> items, <size>"],
    ["GET https://api.acme.io:8443/users/42 failed: 404", "GET https://<host>/users/<n> failed: 404"],
    ["connect ECONNREFUSED [::1]:5432, not 127.0.0.1:54321", "connect ECONNREFUSED <host>:5432, not <host>"],
    ["Cannot find user 'bob' (0x7ffde3, 8f3a9c2d1)", "Cannot find user <value> (<hex>, <id>)"],
    ["waited 1,234.5 ms until 12:30:05", "waited <duration> until <time>"],
    ["open /home/ci/a b: C:\\work\\x\\y.txt", "open <path> b: <path>"],
    ["mail to ann@example.com bounced", "mail to <email> bounced"],
    ["order_12345 of user7", "order_<n> of user<n>"],
    ["a\n  b\tc", "a b c"],
    ["don't say it's 'quoted'", "don't say it's <value>"],
  ])("%p becomes %p", (message, expected) => expect(normalizeMessage(message)).toBe(expected));

  test("of hostile length and shape takes no time", () => {
    for (const part of ["a/", "'", "1,", "x.", "[0:", "a1_", "\\", "(from a line 1, "]) {
      const text = part.repeat(50_000);
      expect(fingerprint(failure(text, text)).digest).toHaveLength(32);
    }
  });
});

// Gone through from each of them, they would outlast the time that a test has.
test.each(["\n", "\r"])("failures of nothing but %p are gone through once", (text) => {
  const message = text.repeat(2_500);
  const digests = Array.from({ length: 300 }, () => fingerprint(failure(message, message)).digest);
  expect(new Set(digests).size).toBe(1);
});

test("a host is known with its labels, wherever it stands", () => {
  expect(normalizeMessage("no route to a-b.c-d.internal:443 (-x.example.com, y--z.dev)")).toBe(
    "no route to <host> (-<host>, <host>)",
  );
});

describe("frames", () => {
  test("of packages, runtimes and runners are not the project's", () => {
    const files = (stack: string) => ownFrames(stack).map(({ file, function: name }) => `${file} ${name}`.trim());
    expect(files(js("x"))).toEqual(["src/cart.ts add", "test/a.test.ts"]);
    expect(files(java("x"))).toEqual(["com.acme.shop.Cart add", "com.acme.shop.CartTest adds"]);
    expect(files(python("x"))).toEqual(["shop/cart.py add", "tests/test_cart.py test_add"]);
    expect(
      files("tests/test_a.py:3: \n_ _\nshop/cart.py:5: in add\nE   ValueError\n\nshop/cart.py:5: ValueError"),
    ).toEqual(["shop/cart.py add", "tests/test_a.py"]);
  });

  test("of tests are known by their names", () => {
    const isTest = (file: string, name = "") => isTestFrame({ file, function: name });
    for (const file of [
      "test/a.ts",
      "src/a.test.ts",
      "a_test.go",
      "test_a.py",
      "com.acme.CartTest",
      "CartTest.lambda.x",
    ])
      expect([file, isTest(file)]).toEqual([file, true]);
    for (const file of ["src/contest.ts", "src/latest.ts", "com.acme.Tester", "lib/cart.rb"])
      expect([file, isTest(file)]).toEqual([file, false]);
  });
});

test("an outage has a fingerprint for each task, which is the same in every run", () => {
  const digests = ["a", "b", "a"].map((task) => outageFingerprint(task).digest);
  expect(digests[2]).toBe(digests[0]!);
  expect(digests[1]).not.toBe(digests[0]!);
});

describe("a message without a place of its own", () => {
  const words = (message: string) => normalizeMessage(message, { numbers: false, values: false });
  test.each([
    "connect ECONNREFUSED <host>:5432",
    "E11000 duplicate key error",
    "error TS2345: Argument of type 'string' is not assignable",
    "SQLSTATE[23505]: Unique violation",
    "SQLSTATE[HY000] [2002] Connection refused",
    "mysql: ERROR 1045 (28000): Access denied",
    "ORA-00942: table or view does not exist",
    "exited with exit code 137",
    "[Errno 28] No space left on device",
    "curl: (28) timed out",
    "error[E0382]: borrow of moved value",
    "query failed with code P2002",
    "HRESULT 0x80070005",
    "requires node v18.2.0, not 3.11.4-rc.1",
    "Python 3.11 is too old",
    "expected 2 replicas of search",
    "No module named 'yaml'",
    'relation "order_items" does not exist',
    "Cannot find module './pricing/discounts'",
    "GET /api/orders answered 500",
    "rpc error: code = NotFound desc = bucket is not there",
  ])("keeps what tells causes apart: %s", (message) => expect(words(message)).toBe(message));

  test.each([
    ["open '/tmp/work-8123/cart.json'", "open '<path>/cart.json'"],
    ["GET https://a.dev/orders/42?sid=ab12 gave 500", "GET https://<host>/orders/<n>?sid=<value> gave 500"],
    ["order 17 of 4000 rows", "order <n> of <n> rows"],
    ["lodash@4.17.21 of ann@example.com", "lodash@4.17.21 of <email>"],
  ])("%s becomes %s", (message, plain) => expect(words(message)).toBe(plain));
});

describe("by the case", () => {
  const at = (message: string, testCase: number, stack: string | null) =>
    caseFingerprint({ ...failure(message, stack), testCase }).digest;

  test("the same exception in the same place is one, regardless of the message", () => {
    const stack = js("Error: x");
    expect(at("Error: the cart is empty", 1, stack)).toBe(at("Error: quite another thing", 1, stack));
    expect(at("Error: the cart is empty", 2, stack)).not.toBe(at("Error: the cart is empty", 1, stack));
    expect(at("RangeError: the cart is empty", 1, stack)).not.toBe(at("Error: the cart is empty", 1, stack));
    const elsewhere = js("Error: x", "src/order.ts", "pay");
    expect(at("Error: the cart is empty", 1, elsewhere)).not.toBe(at("Error: the cart is empty", 1, stack));
  });

  test("without a place it is what it says, but for numbers", () => {
    const one = at("Error: expected 3 rows in the cart", 1, null);
    expect(at("Error: expected 47 rows in the cart", 1, null)).toBe(one);
    expect(at("Error: expected 3 rows in the order", 1, null)).not.toBe(one);
    expect(at("Error: expected 3 rows in the cart", 2, null)).not.toBe(one);
    expect(at("Error: the api answered 503", 1, null)).not.toBe(at("Error: the api answered 404", 1, null));
  });
});

test("who calls the failing function does not matter", () => {
  const stack = js("Error: x");
  const called = stack.replace("\n    at Object", "\n    at pay (/home/ci/work/src/order.ts:40:2)\n    at Object");
  const message = "Error: stock of item 17 is below 0";
  expect(fingerprint(failure(message, called)).digest).toBe(fingerprint(failure(message, stack)).digest);
});

test("what the surroundings do is one bug wherever it shows", () => {
  const message = "Error: connect ECONNREFUSED 127.0.0.1:6379";
  const [a, b] = [js(message), js(message, "src/order.ts", "pay")];
  expect(fingerprint(failure(message, a)).digest).toBe(fingerprint(failure(message, b, "b")).digest);
});

// Each of these has a way of its own to be gone through again from each of its characters.
test.each(
  'a-|a.|aB|a1|_|a_b-|0x|1.2.|1:|/a|/a/|@a|a@a.|eyJ|eyJa.|A=|/=|css-a|a__b|<|<a|"|ab:|x |order |error '.split("|"),
)("many failures of nothing but %p take no time", (part) => {
  const message = part.repeat(5_000 / part.length);
  const digests = Array.from({ length: isFull ? 100 : 10 }, () => fingerprint(failure(message, message)).digest);
  expect(new Set(digests).size).toBe(1);
});
