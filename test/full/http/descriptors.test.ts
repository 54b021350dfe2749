import { expect, test } from "bun:test";
import { join } from "node:path";
import { descriptorLimit } from "../../../src/http/descriptors.ts";

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
