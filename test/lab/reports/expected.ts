/** Prints what a fixture is read as: `bun test/lab/reports/expected.ts NAME > test/fixtures/expected/NAME.txt`. */

import { inLines, readFixture } from "../../reports/reading.ts";

process.stdout.write(inLines(readFixture(process.argv[2]!)));
