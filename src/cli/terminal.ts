/** Asks the person at the terminal. */

import type { InputStream } from "./invocation.ts";
import { UsageError } from "./usage.ts";

const BACKSPACE = /^[\b\x7f]$/;

/** Reads a password twice from the terminal; without a terminal, reads the first line of standard input. */
export async function askPassword(stdin: InputStream): Promise<string> {
  if (!stdin.isTerminal) {
    const [line = ""] = (await stdin.text()).split(/\r?\n/);
    if (line === "") throw new UsageError("--password is missing: pass it, or write the password to standard input");
    return line;
  }
  const password = await stdin.readHidden("Password: ");
  if ((await stdin.readHidden("Again: ")) !== password) throw new UsageError("The two passwords differ");
  return password;
}

/** Reads a line from the terminal that is not shown while it is typed. Ctrl-C ends it as it would end the command. */
export function readHiddenLine(
  prompt: string,
  { stdin, stderr }: Pick<NodeJS.Process, "stdin" | "stderr">,
): Promise<string> {
  stderr.write(prompt);
  stdin.setRawMode(true);
  stdin.setEncoding("utf8");
  stdin.resume();
  let line = "";
  return new Promise((resolve, reject) => {
    const end = (done: () => void) => {
      stdin.off("data", read);
      stdin.setRawMode(false);
      stdin.pause();
      stderr.write("\n");
      done();
    };
    function read(chunk: string): void {
      // A pasted password arrives in one piece, possibly with a line end.
      for (const character of chunk) {
        if (character === "\r" || character === "\n") return end(() => resolve(line));
        if (character === "\u0003" || character === "\u0004") return end(() => reject(new Error("Cancelled")));
        if (BACKSPACE.test(character)) line = [...line].slice(0, -1).join("");
        else line += character;
      }
    }
    stdin.on("data", read);
  });
}
