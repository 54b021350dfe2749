/** Reads the lines of a .env file: NAME=value, quoted or not, with comments. */

type DotenvLine = { line: number; name: string; value: string };

const MAX_PROBLEMS = 20;

/** Parses a .env file. Problems name their line; after MAX_PROBLEMS the rest is ignored. Values are not expanded. */
export function parseDotenv(text: string): { variables: DotenvLine[]; problems: string[] } {
  const variables: DotenvLine[] = [];
  const problems: string[] = [];
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/);
  for (let at = 0; at < lines.length && problems.length < MAX_PROBLEMS; at++) {
    const line = at + 1;
    const match = /^\s*(?:export\s+)?([^\s=#]+)\s*=/.exec(lines[at]!);
    if (!match) {
      if (!/^\s*(?:#.*)?$/.test(lines[at]!)) problems.push(`line ${line}: expected NAME=value`);
      continue;
    }
    const [head, name] = match as unknown as [string, string];
    const rest = lines[at]!.slice(head.length).trimStart();
    const quote = /^["'`]/.exec(rest)?.[0];
    if (quote === undefined) {
      const comment = rest.search(/(?:^|\s)#/);
      variables.push({ line, name, value: (comment === -1 ? rest : rest.slice(0, comment)).trim() });
      continue;
    }
    // A quoted value may go on over lines; no escape does.
    const whole: string[] = [];
    let last = rest.slice(1);
    let end = endOf(last, quote);
    while (end === -1 && at + 1 < lines.length) {
      whole.push(last);
      last = lines[++at]!;
      end = endOf(last, quote);
    }
    if (end === -1) {
      problems.push(`line ${line}: the quotation mark is not closed`);
      break;
    }
    if (!/^\s*(?:#.*)?$/.test(last.slice(end + 1)))
      problems.push(`line ${line}: there is more after the closing quote`);
    const value = [...whole, last.slice(0, end)].join("\n");
    variables.push({ line, name, value: quote === '"' ? unescape(value) : value });
  }
  return { variables, problems };
}

/** Backslashes only have a meaning in double quotes. */
function endOf(text: string, quote: string): number {
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\" && quote === '"') at++;
    else if (text[at] === quote) return at;
  }
  return -1;
}

const ESCAPES: Record<string, string> = { n: "\n", r: "\r", t: "\t" };
const unescape = (text: string): string => text.replace(/\\([nrt"\\$])/g, (_, char: string) => ESCAPES[char] ?? char);
