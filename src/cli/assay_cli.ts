/** The program `assay` without the server, for CI jobs and runners. */

import { CLIENT_COMMANDS } from "./client_commands.ts";
import { runCommandLine } from "./command_line.ts";

await runCommandLine(CLIENT_COMMANDS);
