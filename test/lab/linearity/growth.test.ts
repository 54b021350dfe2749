/** Where times are measured, a superlinear function is found, and a linear one is not. */

import { expect, test } from "bun:test";
import { findSteep, TIMEOUT_MS } from "./growth.ts";

const ENDING = { name: "a… b", of: (length: number) => `${"a".repeat(length - 1)}b` };

test(
  "a quadratic function is found",
  async () => {
    const call = (text: string) => {
      let blanks = 0;
      for (let end = 1; end <= text.length; end++)
        for (let index = 0; index < end; index += 16) if (text.charCodeAt(index) === 32) blanks++;
      return blanks;
    };
    expect(await findSteep(call, [ENDING])).toEqual([expect.stringMatching(/^a… b at /)]);
  },
  TIMEOUT_MS,
);

test("a linear function that takes as long is not", async () => {
  const call = (text: string) => {
    let sum = 0;
    for (let round = 0; round < 400; round++)
      for (let index = 0; index < text.length; index++) sum = (sum * 31 + text.charCodeAt(index)) | 0;
    return sum;
  };
  expect(await findSteep(call, [ENDING])).toEqual([]);
});
