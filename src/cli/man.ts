/** `assay man`: prints the manual page, made from the help texts, in the language mdoc. */

import type { Commands } from "./command_line.ts";
import { type HelpTopic, readTopics } from "./help_text.ts";
import type { Invocation } from "./invocation.ts";
import { UsageError } from "./usage.ts";

export const MAN_HELP = `Usage: assay man

Prints the manual page of all commands: assay man | man -l -`;

/** Throws UsageError. */
export async function printManual(
  [word]: readonly string[],
  { stdout }: Invocation,
  commands: Commands,
): Promise<void> {
  if (word !== undefined) throw new UsageError(`Unknown option: ${word}. man takes none`);
  await stdout.write(toManual(await readTopics(commands)));
}

/** A line that begins with a dot or an apostrophe would be a request of roff. */
const escape = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "...")
    .replace(/^(?=[.'])/, "\\&");

const MAX_LINE_LENGTH = 70;

/** Each sentence begins a line, as formatters expect, and no line is long. */
function toLines(text: string): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    const isFull = line.length + word.length > MAX_LINE_LENGTH || (/\w\.$/.test(line) && /^[A-Z]/.test(word));
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines.map(escape).join("\n");
}

function* toSection({ name, purpose, synopses, blocks }: HelpTopic): Generator<string> {
  yield `.Ss ${escape(name)}`;
  yield ".Bd -literal";
  for (const synopsis of synopses) yield `assay ${escape(synopsis)}`;
  yield ".Ed";
  const isCall = (term: string) => term === name || term.startsWith(`${name} `);
  if (blocks.some((block) => "items" in block && block.items.some(({ term }) => isCall(term)))) {
    yield ".Pp";
    yield `${escape(purpose.charAt(0).toUpperCase())}${toLines(purpose.slice(1))}.`;
    return;
  }
  for (const block of blocks) {
    if ("text" in block) {
      yield ".Pp";
      yield toLines(block.text);
      continue;
    }
    yield ".Bl -tag -width Ds";
    for (const { term, text } of block.items) {
      yield `.It Li ${escape(term)}`;
      if (text !== "") yield toLines(text);
    }
    yield ".El";
  }
}

function toManual(topics: readonly HelpTopic[]): string {
  return `.Dd $Mdocdate$
.Dt ASSAY 1
.Os
.Sh NAME
.Nm assay
.Nd store test results, explain failures and run tests
.Sh SYNOPSIS
.Nm
.Ar command
.Op Ar option ...
.Nm
.Fl \\-version
.Sh DESCRIPTION
.Nm
starts a server of Assay, and talks to one.
The commands are:
.Bl -tag -width bisect
${topics
  .filter(({ name }) => !name.includes(" "))
  .map(({ name, purpose }) => `.It Cm ${name}\n${toLines(purpose)}`)
  .join("\n")}
.El
.Sh COMMANDS
${topics
  .filter((topic) => topic.name !== "admin")
  .flatMap((topic) => [...toSection(topic)])
  .join("\n")}
.Sh ENVIRONMENT
.Bl -tag -width Ds
.It Ev ASSAY_URL
The address of the server.
.It Ev ASSAY_PROJECT
The id of the project.
.It Ev ASSAY_KEY
A key of the project.
.El
.Pp
The variables of the server are in docs/configuration.md.
.Sh EXIT STATUS
0 on success, 1 after a failure, 2 for wrong usage.
Commands with other codes list them.
`;
}
