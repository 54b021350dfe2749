/** The commands of CI jobs and developers, most of which talk to a server over HTTP. */

import { bisect } from "./bisect.ts";
import { BISECT_HELP, BISECT_USAGE } from "./bisect_options.ts";
import type { Commands } from "./command_line.ts";
import { EXPORT_HELP, EXPORT_USAGE, exportProject } from "./export.ts";
import { importHistory } from "./import.ts";
import { IMPORT_HELP, IMPORT_USAGE } from "./import_options.ts";
import { RUNNER_HELP, RUNNER_USAGE, runner } from "./runner.ts";
import { SPLIT_HELP, SPLIT_USAGE, split } from "./split.ts";
import { upload } from "./upload.ts";
import { UPLOAD_HELP, UPLOAD_USAGE } from "./upload_options.ts";
import { WHY_HELP, WHY_USAGE, why } from "./why.ts";

export const CLIENT_COMMANDS: Commands = {
  upload: { usage: UPLOAD_USAGE, help: () => UPLOAD_HELP, run: upload },
  import: { usage: IMPORT_USAGE, help: () => IMPORT_HELP, run: importHistory },
  split: { usage: SPLIT_USAGE, help: () => SPLIT_HELP, run: split },
  runner: { usage: RUNNER_USAGE, help: () => RUNNER_HELP, run: runner },
  why: { usage: WHY_USAGE, help: () => WHY_HELP, run: why },
  bisect: { usage: BISECT_USAGE, help: () => BISECT_HELP, run: bisect },
  export: { usage: EXPORT_USAGE, help: () => EXPORT_HELP, run: exportProject },
};
