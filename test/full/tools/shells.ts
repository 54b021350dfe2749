/** The shells that scripts of `tools/` run in. */

import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

export type Shell = { name: string; command: string[]; path: string };

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
  return { name: "busybox", command: [program, "sh"], path };
}

/** Returns sh, bash and, if it is installed, busybox, whose folder is created in `home`. */
export function createShells(home: string): [Shell, ...Shell[]] {
  const path = process.env["PATH"]!;
  const busybox = Bun.which("busybox");
  if (!busybox) console.warn("The scripts are not tested in busybox: it is not installed");
  return [
    { name: "sh", command: ["sh"], path },
    { name: "bash", command: ["bash"], path },
    ...(busybox ? [createBusybox(busybox, home)] : []),
  ];
}
