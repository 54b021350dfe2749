/** Asks whoever sits at the terminal. */

import { UsageError } from "./usage.ts";

const BACKSPACE = /^[\b\x7f]$/;

/** A line that is not shown while it is typed, asked for twice; without a terminal the first line of standard input. */
export async function askPassword(): Promise<string> {
  if (!process.stdin.isTTY) {
    const [line = ""] = (await new Response(Bun.stdin.stream()).text()).split(/\r?\n/);
    if (line === "") throw new UsageError("--password is missing: pass it, or write the password to standard input");
    return line;
  }
  const password = await readHidden("Password: ");
  if ((await readHidden("Again: ")) !== password) throw new UsageError("The two passwords differ");
  return password;
}

/** Ctrl-C ends it as it would end the command. */
function readHidden(prompt: string): Promise<string> {
  const { stdin, stderr } = process;
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
      // A password that is pasted comes in one piece, perhaps with the return behind it.
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
