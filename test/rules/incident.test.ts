import { describe, expect, test } from "bun:test";
import { isIll, isIncident, type MachineRun, mayBeIll } from "../../src/rules/incident.ts";
import { isFromOutside } from "../../src/rules/outside.ts";

const run = (more: Partial<MachineRun> = {}): MachineRun => ({
  ...{ isMine: false, line: "a", isBad: false, isOfMachine: false, ...more },
});
const others = (count: number, bad = 0) => Array.from({ length: count }, (_, index) => run({ isBad: index < bad }));
/** The last runs of the machine, newest first: a letter each, b for a bad one; each on a branch of its own. */
const own = (letters: string) =>
  [...letters].map((letter, index) => run({ isMine: true, line: `line ${index}`, isBad: letter === "b" }));

describe("a machine is ill", () => {
  test("from the second bad run of hardly any on others, of two branches", () => {
    const [last, ...before] = own("bbb");
    expect(isIll(last!, [...before, ...others(30)])).toBeTrue();
    const onOne = before.map((one) => ({ ...one, line: last!.line }));
    expect(isIll(last!, [...onOne, ...others(30)])).toBeFalse();
  });

  test("not for one bad run, nor for two among ten, nor where the others are as bad", () => {
    expect(isIll(own("b")[0]!, others(30))).toBeFalse();
    const [last, ...before] = own("bppppppppb");
    expect(isIll(last!, [...before, ...others(30)])).toBeFalse();
    const [bad, ...more] = own("bbbb");
    expect(isIll(bad!, [...more, ...others(30, 15)])).toBeFalse();
  });

  test("not where too few runs on other machines are known", () => {
    const [last, ...before] = own("bbbbbb");
    expect(isIll(last!, [...before, ...others(9)])).toBeFalse();
    expect(isIll(last!, [...before, ...others(10)])).toBeTrue();
  });

  test("until three of its runs in a row were not bad", () => {
    const isIllAfter = (letters: string) => isIll(own(letters)[0]!, [...own(letters).slice(1), ...others(30)]);
    expect(["pbbb", "ppbbb", "pppbbb"].map(isIllAfter)).toEqual([true, true, false]);
  });

  test("or may be, after one bad run among its last three: nothing that it shows is a sign of flaky tests", () => {
    const mayBeIllAfter = (letters: string, known = 10) => mayBeIll([...own(letters), ...others(known)]);
    for (const letters of ["b", "ppb"]) expect(mayBeIllAfter(letters)).toBeTrue();
    for (const letters of ["pppb", "p", ""]) expect(mayBeIllAfter(letters)).toBeFalse();
    expect(mayBeIllAfter("b", 9)).toBeFalse();
  });
});

describe("what many tests fail with at once", () => {
  const sample = (message: string, stack = "") => ({
    ...{ suite: "s", name: "n", file: "a.test.ts", kind: "failure", message, stack },
  });
  const family = (message: string, cases = 8, files = 3, stack = "") => ({
    ...{ cause: "c", cases, files, sample: sample(message, stack) },
  });
  const AWAY = "connect ECONNREFUSED 10.0.0.7:5432";

  test.each([
    AWAY,
    "getaddrinfo EAI_AGAIN stock.internal",
    "java.net.ConnectException: Connection refused",
    "expected 200, got status 503",
    "expected status 200, got 502",
    "unexpected response status: expected 200 but was 504",
    "expected [Error: connect ECONNREFUSED] to be null",
    "No space left on device",
    "could not translate host name: Name or service not known",
    "FATAL: sorry, too many clients already",
  ])("comes from outside: %s", (message) => {
    expect(isFromOutside(sample(message))).toBeTrue();
  });

  test.each([
    'AssertionError: expected menu to say "disk full"',
    "expected 200 items, got 502",
    "expected 3 items, got 2",
    "the connection of both accounts is missing",
    "TypeError: x is undefined",
  ])("does not: %s", (message) => {
    expect(isFromOutside(sample(message))).toBeFalse();
  });

  test("is an incident from eight tests in three files on, unless the branch alone shows it again", () => {
    expect(isIncident(family(AWAY), { before: false, elsewhere: false, isOwn: false })).toBeTrue();
    expect(isIncident(family(AWAY, 7), { before: false, elsewhere: true, isOwn: false })).toBeFalse();
    expect(isIncident(family(AWAY, 8, 2), { before: false, elsewhere: true, isOwn: false })).toBeFalse();
    expect(isIncident(family(AWAY), { before: true, elsewhere: false, isOwn: false })).toBeFalse();
    expect(isIncident(family(AWAY), { before: true, elsewhere: true, isOwn: false })).toBeTrue();
    expect(isIncident(family(AWAY), { before: true, elsewhere: true, isOwn: true })).toBeFalse();
  });

  test("is none in other words, wherever they are seen: one change may break many tests on several branches", () => {
    const sightings = { before: false, elsewhere: true, isOwn: false };
    expect(isIncident(family("Widget schema v3 is not supported", 40, 20), sightings)).toBeFalse();
  });
});
