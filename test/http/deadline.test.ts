import { expect, test } from "bun:test";
import { createDeadlines, DeadlineError } from "../../src/http/deadline.ts";

test("work that throws before it has begun to wait rejects at once, and is not said to be late afterwards", async () => {
  let now = 0;
  const expired: string[] = [];
  const { within } = createDeadlines(() => now);
  const failing = within(
    1,
    () => {
      throw new TypeError("at once");
    },
    () => expired.push("failed"),
  );
  await expect(failing).rejects.toBeInstanceOf(TypeError);
  const late = within(
    1,
    () => new Promise(() => {}),
    () => expired.push("late"),
  );
  now = 1_000;
  await expect(late).rejects.toBeInstanceOf(DeadlineError);
  expect(expired).toEqual(["late"]);
});
