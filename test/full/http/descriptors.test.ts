import { expect, test } from "bun:test";
import { join } from "node:path";
import { areFree, createReserve, descriptorLimit } from "../../../src/http/descriptors.ts";

const MODULE = join(import.meta.dir, "../../../src/http/descriptors.ts");

/** What an expression over the module is in a process that may have 64 descriptors. */
async function under64(expression: string): Promise<unknown> {
  const script = `const d = await import(${JSON.stringify(MODULE)}); console.log(JSON.stringify(${expression}))`;
  return JSON.parse(await Bun.$`sh -c ${'ulimit -n 64; exec "$@"'} sh ${process.execPath} -e ${script}`.quiet().text());
}

test("the limit is the one that the process was started with", async () => {
  expect(await under64("d.descriptorLimit()")).toBe(64);
  expect(descriptorLimit()).toBeGreaterThan(64);
});

test("descriptors are free as long as the limit allows, and trying takes none", async () => {
  expect(await under64("[d.areFree(100), d.areFree(20), d.areFree(20), d.areFree(20)]")).toEqual([
    false,
    true,
    true,
    true,
  ]);
});

test("a reserve holds back an eighth, tells of the last ones, and gives back what it holds", async () => {
  const story = `(() => {
    const { openSync } = require("node:fs");
    const reserve = d.createReserve(64);
    reserve.refill();
    const told = [reserve.isShort()];
    try { for (;;) openSync("/dev/null", "r"); } catch {}
    told.push(reserve.isShort(), d.areFree(1), reserve.refillWithRoom());
    reserve.release();
    told.push(d.areFree(8), d.areFree(9), reserve.refillWithRoom());
    reserve.refill();
    return [...told, d.areFree(1)];
  })()`;
  expect(await under64(story)).toEqual([false, true, false, false, true, false, false, false]);
});

test("a reserve of a process that has plenty is never short", () => {
  const reserve = createReserve(1_000_000);
  reserve.refill();
  expect([reserve.isShort(), areFree(50), reserve.refillWithRoom()]).toEqual([false, true, true]);
  reserve.release();
});
