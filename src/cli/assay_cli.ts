/** The program `assay` without the server, for CI jobs and runners. */

import { CLIENT_COMMANDS } from "./client_commands.ts";
import { runCommandLine } from "./command_line.ts";
import { runProcess } from "./process_io.ts";

await runProcess(process, (...given) => runCommandLine(CLIENT_COMMANDS, ...given));
