/** The shells that scripts of `tools/` and snippets run in. */

import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

export type Shell = { name: string; command: string[]; path: string; hasPipefail: boolean };

const BUSYBOX_TOOLS = [
  "sh",
  "cat",
  "date",
  "kill",
  "mktemp",
  "od",
  "printf",
  "rm",
  "sed",
  "sleep",
  "touch",
  "tr",
  "true",
];

/** Has only its own tools, as in an image with curl and git beside them. */
function createBusybox(program: string, home: string): Shell {
  const path = join(home, "busybox");
  mkdirSync(path);
  for (const tool of BUSYBOX_TOOLS) symlinkSync(program, join(path, tool));
  for (const tool of ["curl", "git"]) symlinkSync(Bun.which(tool)!, join(path, tool));
  return { name: "busybox", command: [program, "sh"], path, hasPipefail: true };
}

/** Returns sh, bash and, if it is installed, busybox, whose folder is created in `home`. */
export function createShells(home: string): [Shell, ...Shell[]] {
  const path = process.env["PATH"]!;
  const busybox = Bun.which("busybox");
  if (!busybox) console.warn("The scripts are not tested in busybox: it is not installed");
  return [
    { name: "sh", command: ["sh"], path, hasPipefail: false },
    { name: "bash", command: ["bash"], path, hasPipefail: true },
    ...(busybox ? [createBusybox(busybox, home)] : []),
  ];
}
