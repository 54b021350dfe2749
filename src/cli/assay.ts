/** The program `assay`: all commands, those of the server included. */

import { main } from "./main.ts";
import { runProcess } from "./process_io.ts";

await runProcess(process, main);
