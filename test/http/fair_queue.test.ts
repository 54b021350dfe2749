import { expect, test } from "bun:test";
import { createFairQueue, createOwnersQueue } from "../../src/http/fair_queue.ts";

const all = (turns: { shift: () => string | undefined }) => {
  const items: string[] = [];
  for (let item = turns.shift(); item !== undefined; item = turns.shift()) items.push(item);
  return items.join(" ");
};

test("keys take turns, and what waits under one key keeps its order", () => {
  const turns = createFairQueue<string>();
  for (const item of ["a1", "a2", "a3", "b1", "c1", "b2"]) turns.push(item[0]!, item);
  expect(all(turns)).toBe("a1 b1 c1 a2 b2 a3");
  expect(turns.shift()).toBeUndefined();
});

test("who comes while fifty of another key wait is next but one", () => {
  const turns = createFairQueue<string>();
  for (let index = 0; index < 50; index++) turns.push("a", `a${index}`);
  turns.shift();
  turns.push("b", "b0");
  expect([turns.shift(), turns.shift(), turns.shift()]).toEqual(["a1", "b0", "a2"]);
});

test("what is taken out is not there any more, and the others keep their turns", () => {
  const turns = createFairQueue<string>();
  for (const item of ["a1", "b1", "a2", "b2"]) turns.push(item[0]!, item);
  expect(turns.remove("a", (item) => item === "a1")).toBe(true);
  expect(turns.remove("a", (item) => item === "a1")).toBe(false);
  expect(turns.remove("c", () => true)).toBe(false);
  expect(all(turns)).toBe("a2 b1 b2");
});

test("owners take turns, however many keys they have, and so do the keys of one owner", () => {
  const turns = createOwnersQueue<string>();
  for (const item of ["a1x", "a2x", "a3x", "a1y", "b1x", "b1y"]) turns.push(item[0]!, item.slice(0, 2), item);
  expect(turns.remove("a", "a3", () => true)).toBe(true);
  expect([turns.remove("a", "a3", () => true), turns.remove("c", "c1", () => true)]).toEqual([false, false]);
  expect(all(turns)).toBe("a1x b1x a2x b1y a1y");
  turns.push("a", "a1", "a1");
  expect(turns.remove("a", "a1", () => true)).toBe(true);
  expect([turns.isEmpty(), turns.shift()]).toEqual([true, undefined]);
});
