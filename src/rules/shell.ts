/** Parses the part of the shell's grammar needed to add words to a command, and to insert values as words. */

/** A value as one word, whatever is in it. */
export const quoted = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;

/** The text of a word without its quotation marks; null where the shell puts something into it. */
export type Word = { text: string | null; start: number; end: number };

type ShellScan = {
  /** The words of each simple command, without redirections and what they lead to; none is empty. */
  commands: Word[][];
  /** Whether the character there is outside of quotes, comments and expansions. */
  isPlain: (at: number) => boolean;
  /** Why the text cannot be understood: "it has …"; null if it can. */
  problem: string | null;
};

/** Maximum depth of nested substitutions. */
const MAX_DEPTH = 20;

export function scanShell(text: string): ShellScan {
  const commands: Word[][] = [[]];
  const plain = new Uint8Array(text.length);
  let word = null as { text: string | null; start: number; isQuoted: boolean } | null;
  let isTarget = false;
  let problem: string | null = null;
  const add = (at: number, piece: string | null, isQuoted: boolean) => {
    word ??= { text: "", start: at, isQuoted: false };
    word.text = word.text === null || piece === null ? null : word.text + piece;
    word.isQuoted ||= isQuoted;
  };
  const endWord = (at: number) => {
    if (word && !isTarget) commands.at(-1)!.push({ text: word.text, start: word.start, end: at });
    if (word) isTarget = false;
    word = null;
  };
  const endCommand = (at: number) => {
    endWord(at);
    isTarget = false;
    commands.push([]);
  };
  let at = 0;
  /** Skips to the end of a construct; a construct without an end is a problem. */
  const skip = (end: number, piece: (inside: string) => string | null) => {
    if (end === -1) {
      problem ??= "it has an opening quotation mark or bracket without the closing one";
      return void (at = text.length);
    }
    add(at, piece(text.slice(at, end + 1)), true);
    at = end + 1;
  };
  while (at < text.length) {
    const char = text[at]!;
    const next = text[at + 1] ?? "";
    if (char === "\\" && next === "\n") at += 2;
    else if (char === "\\") {
      add(at, next, true);
      at += 2;
    } else if (char === "'") skip(text.indexOf("'", at + 1), (inside) => inside.slice(1, -1));
    else if (char === '"') skip(endOfDouble(text, at, 0), (inside) => (/[$`]/.test(inside) ? null : unescape(inside)));
    else if (char === "`") skip(endOfBackquote(text, at), () => null);
    else if (char === "$" && next === "'") {
      problem ??= "it has $'…', which not every shell reads alike";
      break;
    } else if (char === "$" && next === "(") skip(endOfBrackets(text, at + 1, 0), () => null);
    else if (char === "$" && next === "{") skip(endOfBrackets(text, at + 1, 0), () => null);
    else if (char === "#" && word === null) {
      const end = text.indexOf("\n", at);
      at = end === -1 ? text.length : end;
    } else if (/\s/.test(char)) {
      plain[at] = 1;
      if (char === "\n") endCommand(at);
      else endWord(at);
      at++;
    } else if (char === "<" || char === ">" || (char === "&" && next === ">")) {
      const operator = /^(?:&>>?|<<<|<<|<>|<&|>>|>\||>&|[<>])/.exec(text.slice(at, at + 3))![0];
      if (operator === "<<") {
        problem ??= "it has a here-document";
        break;
      }
      const isNumber = word !== null && !word.isQuoted && /^\d+$/.test(word.text ?? "");
      if (isNumber) word = null;
      endWord(at);
      isTarget = true;
      at += operator.length;
    } else if (/[;&|()]/.test(char)) {
      endCommand(at);
      at++;
    } else {
      plain[at] = 1;
      add(at, char === "$" && /[\w@*#?!$-]/.test(next) ? null : char, false);
      at++;
    }
  }
  endWord(text.length);
  return { commands: commands.filter(({ length }) => length > 0), isPlain: (place) => plain[place] === 1, problem };
}

const unescape = (inside: string) =>
  inside
    .slice(1, -1)
    .replace(/\\\n/g, "")
    .replace(/\\([\\"])/g, "$1");

/** Returns the index of the closing quote for the opening quote at `start`; -1 if there is none. */
function endOfDouble(text: string, start: number, depth: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at]!;
    if (char === "\\") at++;
    else if (char === '"') return at;
    else if (char === "`") at = endOfBackquote(text, at);
    else if (char === "$" && /[({]/.test(text[at + 1] ?? "")) at = endOfBrackets(text, at + 1, depth + 1);
    if (at === -1) return -1;
  }
  return -1;
}

function endOfBackquote(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "`") return at;
  }
  return -1;
}

function endOfBrackets(text: string, start: number, depth: number): number {
  if (depth > MAX_DEPTH) return -1;
  const closing = text[start] === "(" ? ")" : "}";
  for (let at = start + 1; at < text.length; at++) {
    const char = text[at]!;
    if (char === closing) return at;
    if (char === "\\") at++;
    else if (char === "'") at = text.indexOf("'", at + 1);
    else if (char === '"') at = endOfDouble(text, at, depth + 1);
    else if (char === "`") at = endOfBackquote(text, at);
    else if (char === "(" || (char === "{" && text[at - 1] === "$")) at = endOfBrackets(text, at, depth + 1);
    if (at === -1) return -1;
  }
  return -1;
}
