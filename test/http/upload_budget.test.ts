import { expect, test } from "bun:test";
import { createUploadBudget, type Hold } from "../../src/http/upload_budget.ts";

const MIB = 1_048_576;

/** Grows as far as it gets: a body that arrives MiB by MiB. */
function body(hold: Hold, mebibytes: number) {
  const state = { has: 0, isRefused: false };
  const done = (async () => {
    for (; state.has < mebibytes; state.has++) await hold.grow(MIB);
  })().catch(() => (state.isRefused = true));
  return { state, hold, done };
}
const settled = async () => {
  for (let turn = 0; turn < 500; turn++) await Promise.resolve();
};

test("what fits in is had at once, without a promise", () => {
  const budget = createUploadBudget(80 * MIB);
  const hold = budget.open("a");
  expect(hold.grow(30 * MIB)).toBeUndefined();
  expect(budget.held()).toBe(30 * MIB);
  hold.release();
  expect(budget.held()).toBe(0);
});

test("half-read bodies do not wait for each other for ever, and at most one goes beyond the limit", async () => {
  const budget = createUploadBudget(64 * MIB);
  const bodies = Array.from({ length: 40 }, (_, index) => body(budget.open(`key ${index % 7}`), 32));
  let [left, highest] = [bodies.length, 0];
  while (left > 0) {
    await settled();
    highest = Math.max(highest, budget.held());
    const whole = bodies.filter(({ state }) => state.has === 32);
    expect(whole.length).toBeGreaterThan(0);
    for (const one of whole) {
      one.hold.release();
      one.state.has = Infinity;
      left--;
    }
  }
  expect(highest).toBeLessThanOrEqual((64 + 32) * MIB);
  expect(budget.held()).toBe(0);
});

test("many bodies of one key leave another key its room", async () => {
  const budget = createUploadBudget(64 * MIB);
  for (let index = 0; index < 50; index++) body(budget.open("a"), 4);
  await settled();
  const other = body(budget.open("b"), 6);
  await other.done;
  expect(other.state).toEqual({ has: 6, isRefused: false });
});

test("room that becomes free is given to the keys by turns", async () => {
  const budget = createUploadBudget(16 * MIB);
  const first = body(budget.open("x"), 7);
  const second = body(budget.open("y"), 7);
  await Promise.all([first.done, second.done]);
  const order: string[] = [];
  // The first that waits may go beyond the limit, and the one after it waits.
  for (const [key, name] of Object.entries({ a0: "a", a1: "a", a2: "a", b0: "b", c0: "c" })) {
    const hold = budget.open(name);
    void hold.grow(2 * MIB)?.then(() => order.push(key));
  }
  await settled();
  expect(order).toEqual(["a0"]);
  first.hold.release();
  await settled();
  expect(order).toEqual(["a0", "a1", "b0"]);
  second.hold.release();
  await settled();
  expect(order).toEqual(["a0", "a1", "b0", "c0", "a2"]);
});

test("small bodies have room that large ones cannot take", () => {
  const budget = createUploadBudget(64 * MIB);
  const large = ["a", "b", "c"].map((key) => body(budget.open(key), 60));
  const small = budget.open("a");
  expect(small.grow(MIB)).toBeUndefined();
  expect(large.every(({ state }) => state.has < 60)).toBe(true);
});

test("who is released while it waits is refused, takes nothing, and lets the others on", async () => {
  const budget = createUploadBudget(16 * MIB);
  const whole = body(budget.open("a"), 7);
  await whole.done;
  const first = body(budget.open("b"), 20);
  await first.done;
  const second = body(budget.open("c"), 20);
  await settled();
  expect([first.state.has, second.state.has < 20]).toEqual([20, true]);
  second.hold.release();
  await second.done;
  expect(second.state.isRefused).toBe(true);
  whole.hold.release();
  first.hold.release();
  first.hold.release();
  expect(budget.held()).toBe(0);
  expect(await second.hold.grow(1)?.catch(({ message }) => message)).toContain("released");
});

test("a large body that brings little while others wait gives way to them, unless all of it is there", async () => {
  const budget = createUploadBudget(64 * MIB);
  const [slow, whole, beyond, other] = ["a", "b", "c", "d"].map((key) => budget.open(key)) as [Hold, Hold, Hold, Hold];
  expect([slow.grow(28 * MIB), whole.grow(28 * MIB)]).toEqual([undefined, undefined]);
  whole.arrived();
  // One goes beyond the limit, and goes on bringing something.
  await beyond.grow(2 * MIB);
  let isIn = false;
  const waits = other.grow(2 * MIB)!.then(() => (isIn = true));
  await settled();
  expect(isIn).toBe(false);
  expect(beyond.grow(MIB)).toBeUndefined();
  budget.look();
  await waits;
  await expect(slow.grow(1)).rejects.toThrow("came too slowly");
  expect(whole.grow(0)).toBeUndefined();
  expect(budget.held()).toBe((28 + 3 + 2) * MIB);
});

test("small bodies have room whatever large ones hold, of their own key as well", async () => {
  const budget = createUploadBudget(64 * MIB);
  for (let index = 0; index < 4; index++) body(budget.open("a"), 30);
  await settled();
  expect(budget.open("a").grow(1_000)).toBeUndefined();
  expect(budget.open("b").grow(MIB)).toBeUndefined();
});

test("more than 256 that wait are refused", async () => {
  const budget = createUploadBudget(16 * MIB);
  const bodies = Array.from({ length: 300 }, () => body(budget.open("a"), 12));
  await settled();
  expect(bodies.filter(({ state }) => state.isRefused).length).toBeGreaterThan(0);
  expect(bodies.filter(({ state }) => state.isRefused).length).toBeLessThan(60);
});
