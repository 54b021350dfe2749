import { expect, test } from "bun:test";
import { readStack } from "../../src/rules/stack.ts";

const kinds = (stack: string) => readStack(stack).map(({ kind }) => kind);

test("each line of a stack is the project's, of others, or no frame", () => {
  expect(
    kinds(`TypeError: x is undefined
    at priceOf (src/cart/price.ts:41:17)
    at file:///app/node_modules/vitest/dist/runner.js:12:3
    at processTicksAndRejections (node:internal/process/task_queues:95:5)
    at new Promise (<anonymous>)`),
  ).toEqual(["text", "own", "foreign", "foreign", "foreign"]);
  expect(
    kinds(`java.lang.IllegalStateException: no
	at com.acme.Cart.add(Cart.java:12)
	at org.junit.jupiter.engine.Runner.run(Runner.java:1)`),
  ).toEqual(["text", "own", "foreign"]);
  expect(
    kinds(`Traceback (most recent call last):
  File "/app/cart.py", line 12, in add
    raise ValueError()
  File "/usr/lib/python3.12/unittest/case.py", line 3, in run`),
  ).toEqual(["text", "own", "text", "foreign"]);
});

test("of an endless stack the first lines are read, and a line that is too long is no frame", () => {
  expect(readStack("    at f (a.ts:1:1)\n".repeat(10_000)).length).toBe(200);
  expect(kinds(`    at ${"f".repeat(5_000)} (a.ts:1:1)`)).toEqual(["text"]);
});
