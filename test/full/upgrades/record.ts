/** Stores the dump of this version beside those of earlier releases: `bun test/full/upgrades/record.ts`, before a release. */

import { writeRelease } from "./dump.ts";
import { record } from "./recording.ts";

const dump = await record();
const { version, answers } = dump.expectation;
console.log(`Version ${version}: ${answers.length} answers, ${await writeRelease(dump)} bytes`);
