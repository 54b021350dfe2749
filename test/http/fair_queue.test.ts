import { expect, test } from "bun:test";
import { createFairQueue } from "../../src/http/fair_queue.ts";

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
