/** Prints what a fixture is read as: `bun test/reports/expected.ts NAME > test/fixtures/expected/NAME.txt`. */

import { inLines, readFixture } from "./reading.ts";

process.stdout.write(inLines(readFixture(process.argv[2]!)));
