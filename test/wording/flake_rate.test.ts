import { expect, test } from "bun:test";
import { flakeCountWords, flakeWords } from "../../src/wording/flake_rate.ts";

test("a flake rate is counts first, with a percentage only from 20 results on", () => {
  expect(flakeWords({ flakeFailures: 1, flakeResults: 14 })).toBe("failed 1 of the last 14 results");
  expect(flakeWords({ flakeFailures: 3, flakeResults: 25 })).toBe("failed 3 of the last 25 results (12 %)");
  expect(flakeCountWords({ flakeFailures: 3, flakeResults: 200 })).toBe("3 of 200");
});
