import { expect, test } from "bun:test";
import { createPasswords } from "../../src/secrets/passwords.ts";
import { countingHashing } from "../people.ts";

test("two are at work at once, the others wait in line, and beyond a hundred they are refused at once", async () => {
  const hashing = countingHashing();
  const passwords = createPasswords(hashing);
  // Of what stands in for a missing one each would take as long as a real one.
  const hash = await hashing.hash("right password");
  const all = await Promise.allSettled(Array.from({ length: 110 }, () => passwords.verify("wrong password", hash)));
  expect(hashing.most).toBe(2);
  expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(102);
  const refused = all.find((one) => one.status === "rejected")!;
  expect((refused as PromiseRejectedResult).reason.message).toBe(
    "Too many people are signing in, try again in a moment",
  );
  expect(hashing.count.verify).toBe(102);
  expect(await passwords.verify("right password", hash)).toBe(true);
});

test("one that fails gives its place back", async () => {
  let broken = true;
  const passwords = createPasswords({
    hash: async (password) => (broken ? Promise.reject(new Error("out of memory")) : password),
    verify: async () => true,
  });
  const failing = await Promise.allSettled(Array.from({ length: 5 }, () => passwords.hash("x")));
  expect(failing.map(({ status }) => status)).toEqual(Array(5).fill("rejected"));
  broken = false;
  expect(await Promise.all(Array.from({ length: 5 }, () => passwords.hash("x")))).toHaveLength(5);
});

test("a damaged hash, an empty password and no hash are false, and take a turn each", async () => {
  const hashing = countingHashing();
  const passwords = createPasswords(hashing);
  const hash = await passwords.hash("right password");
  expect(await passwords.verify("right password", hash)).toBe(true);
  expect(await passwords.verify("right password", `${hash.slice(0, -5)}!`)).toBe(false);
  expect(await passwords.verify("right password", "nonsense")).toBe(false);
  expect(await passwords.verify("", hash)).toBe(false);
  expect(await passwords.verify("", null)).toBe(false);
  expect(hashing.count.verify).toBe(5);
});
