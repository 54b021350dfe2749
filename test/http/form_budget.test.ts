/** Forms give way to each other: what has been arriving for the longest time goes first. */

import { describe, expect, test } from "bun:test";
import { createFormBudget, type FormLimits } from "../../src/http/form_budget.ts";

const limits = (more: Partial<FormLimits> = {}): FormLimits => ({
  ...{ maxBytes: 10, maxSeconds: 15, totalBytes: 40, share: 1 / 2 },
  ...more,
});

describe("forms of strangers", () => {
  test("hold no more than their room, and the oldest makes room for the next", () => {
    const budget = createFormBudget({ public: limits(), signedIn: limits() });
    const holds = Array.from({ length: 4 }, (_, index) => budget.open("public", `address${index}`, 10));
    expect(budget.held()).toBe(40);
    budget.open("public", "address4", 10);
    expect([budget.held(), holds.map(({ signal }) => signal.aborted)]).toEqual([40, [true, false, false, false]]);
  });

  test("of one address make room for each other first", () => {
    const budget = createFormBudget({ public: limits(), signedIn: limits() });
    const other = budget.open("public", "other", 10);
    const first = budget.open("public", "attacker", 10);
    for (let count = 0; count < 100; count++) budget.open("public", "attacker", 10);
    expect([first.signal.aborted, other.signal.aborted, budget.held()]).toEqual([true, false, 30]);
  });

  test("take nothing from those of people who are signed in", () => {
    const budget = createFormBudget({ public: limits(), signedIn: limits() });
    const own = budget.open("signedIn", "ada", 10);
    for (let count = 0; count < 100; count++) budget.open("public", `address${count}`, 10);
    expect([own.signal.aborted, budget.held()]).toEqual([false, 50]);
  });
});

test("a form that says it is larger than any may be holds as much as the largest, and nothing when it is over", () => {
  const budget = createFormBudget({ public: limits(), signedIn: limits() });
  const hold = budget.open("public", "address", 1e9);
  expect(budget.held()).toBe(10);
  hold.release();
  hold.release();
  expect(budget.held()).toBe(0);
});
