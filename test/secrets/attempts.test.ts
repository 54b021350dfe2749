import { describe, expect, test } from "bun:test";
import { addressBlock, createAttempts } from "../../src/secrets/attempts.ts";

const pair = (account: string, address = "192.0.2.1") => ({ account, address });

describe("wrong passwords of an account from an address", () => {
  test("wait twice as long after each, from the fourth on, up to a quarter of an hour", () => {
    let now = 0;
    const attempts = createAttempts(() => now);
    const waits: number[] = [];
    for (let count = 0; count < 20; count++) {
      const wait = attempts.begin(pair("ada"));
      waits.push(wait);
      now += wait;
      if (wait > 0) expect(attempts.begin(pair("ada"))).toBe(0);
    }
    const seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900];
    expect(waits.slice(0, 15)).toEqual([0, 0, 0, ...seconds.map((second) => second * 1000)]);
  });

  test("count from the moment they begin: a hundred at once are three", () => {
    const attempts = createAttempts(() => 0);
    const admitted = Array.from({ length: 100 }, () => attempts.begin(pair("ada"))).filter((wait) => wait === 0);
    expect(admitted).toHaveLength(3);
  });

  test("lock out neither the account from elsewhere nor others from there", () => {
    const attempts = createAttempts(() => 0);
    for (let count = 0; count < 100; count++) attempts.begin(pair("ada", "203.0.113.66"));
    expect(attempts.begin(pair("ada", "192.0.2.1"))).toBe(0);
    expect(attempts.begin(pair("grace", "203.0.113.66"))).toBe(0);
  });

  test("what is refused does not count, and a right one ends the wait", () => {
    let now = 0;
    const attempts = createAttempts(() => now);
    for (let count = 0; count < 3; count++) attempts.begin(pair("ada"));
    for (let count = 0; count < 50; count++) expect(attempts.begin(pair("ada"))).toBe(1000);
    now = 1000;
    expect(attempts.begin(pair("ada"))).toBe(0);
    attempts.succeed(pair("ada"));
    for (let count = 0; count < 3; count++) expect(attempts.begin(pair("ada"))).toBe(0);
  });

  test("are forgotten after an hour without any", () => {
    let now = 0;
    const attempts = createAttempts(() => now);
    for (let count = 0; count < 3; count++) attempts.begin(pair("ada"));
    now = 3_600_000;
    for (let count = 0; count < 3; count++) expect(attempts.begin(pair("ada"))).toBe(0);
  });
});

test("of accounts and addresses, so many are remembered; beyond that the oldest are forgotten", () => {
  const attempts = createAttempts(() => 0, 100);
  for (let count = 0; count < 3; count++) attempts.begin(pair("ada", "192.0.2.1"));
  for (let count = 0; count < 50; count++) attempts.begin(pair(`guess${count}`, "192.0.2.2"));
  const others = (from: number, to: number) => {
    for (let count = from; count < to; count++) attempts.begin(pair("x", `10.0.0.${count}`));
  };
  // Ada's pair, those of the guesses, and these.
  others(0, 49);
  expect(attempts.begin(pair("ada", "192.0.2.1"))).toBe(1_000);
  expect(attempts.begin(pair("guess50", "192.0.2.2"))).toBe(600_000);
  others(49, 150);
  expect(attempts.begin(pair("ada", "192.0.2.1"))).toBe(0);
  expect(attempts.begin(pair("guess50", "192.0.2.2"))).toBe(0);
});

describe("an address", () => {
  test("has fifty wrong ones in ten minutes, whatever the accounts; right ones do not count", () => {
    let now = 0;
    const attempts = createAttempts(() => now);
    for (let count = 0; count < 500; count++) {
      expect(attempts.begin(pair(`office${count}`))).toBe(0);
      attempts.succeed(pair(`office${count}`));
    }
    for (let count = 0; count < 50; count++) expect(attempts.begin(pair(`guess${count}`))).toBe(0);
    expect(attempts.begin(pair("guess50"))).toBe(600_000);
    now = 600_000;
    expect(attempts.begin(pair("guess50"))).toBe(0);
  });

  const fill = (attempts: ReturnType<typeof createAttempts>) => {
    for (let count = 0; count < 50; count++) attempts.begin(pair(`guess${count}`));
  };

  test("beyond its limit lets accounts be reviewed that were not attacked, each three times before its own waits", () => {
    const attempts = createAttempts(() => 0);
    fill(attempts);
    const reviews = Array.from({ length: 4 }, () => [attempts.begin(pair("ada")), attempts.review(pair("ada"))]);
    expect(reviews).toEqual([...Array.from({ length: 3 }, () => [600_000, 0]), [600_000, 1_000]]);
    expect(attempts.review(pair("grace"))).toBe(0);
  });

  test("tells by its wait nothing of an account: neither that it was attacked nor that it was reviewed", () => {
    const attempts = createAttempts(() => 0);
    for (let count = 0; count < 3; count++) attempts.begin(pair("ada"));
    expect(attempts.begin(pair("ada"))).toBe(1_000);
    fill(attempts);
    expect([attempts.begin(pair("ada")), attempts.begin(pair("nobody"))]).toEqual([600_000, 600_000]);
    expect(attempts.review(pair("ada"))).toBe(1_000);
  });

  test("has three hundred reviews in ten minutes, and a right password takes none", () => {
    let now = 0;
    const attempts = createAttempts(() => now);
    fill(attempts);
    for (let count = 0; count < 500; count++) {
      expect(attempts.review(pair(`office${count}`))).toBe(0);
      attempts.succeed({ ...pair(`office${count}`), isReviewed: true });
    }
    // What was wrong before still counts.
    expect(attempts.begin(pair("guess50"))).toBe(600_000);
    for (let count = 0; count < 300; count++) expect(attempts.review(pair(`sprayed${count}`))).toBe(0);
    expect(attempts.review(pair("sprayed300"))).toBe(600_000);
    now = 600_000;
    expect(attempts.review(pair("sprayed300"))).toBe(0);
  });

  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:DB8:1:2::9", "2001:db8:1:2"],
    ["2001:db8::9", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
    ["2001:0db8:0001:0002::", "2001:db8:1:2"],
    ["", ""],
  ])("%s counts as %s", (address, block) => expect(addressBlock(address)).toBe(block));
});
