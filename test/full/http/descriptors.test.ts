import { expect, test } from "bun:test";
import { join } from "node:path";
import { descriptorLimit } from "../../../src/http/descriptors.ts";

const MODULE = join(import.meta.dir, "../../../src/http/descriptors.ts");

test("a process that may have 64 descriptors knows it, and trying whether some are free takes none", async () => {
  const values = "[d.descriptorLimit(), d.areFree(100), d.areFree(20), d.areFree(20), d.areFree(20)]";
  const script = `const d = await import(${JSON.stringify(MODULE)}); console.log(${values}.join())`;
  const told = await Bun.$`sh -c ${'ulimit -n 64; exec "$@"'} sh ${process.execPath} -e ${script}`.quiet().text();
  expect(told).toBe("64,false,true,true,true\n");
  expect(descriptorLimit()).toBeGreaterThan(64);
});
