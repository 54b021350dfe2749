/** Reads the lines of a .env file: NAME=value, quoted or not, with comments. */

export type DotenvLine = { line: number; name: string; value: string };

/** Problems name their line. Nothing is expanded: what a value refers to is known where it is used, not here. */
export function parseDotenv(text: string): { variables: DotenvLine[]; problems: string[] } {
  const variables: DotenvLine[] = [];
  const problems: string[] = [];
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/);
  for (let at = 0; at < lines.length; at++) {
    const line = at + 1;
    const match = /^\s*(?:export\s+)?([^\s=#]+)\s*=\s*(.*)$/.exec(lines[at]!);
    if (!match) {
      if (!/^\s*(?:#.*)?$/.test(lines[at]!)) problems.push(`line ${line}: expected NAME=value`);
      continue;
    }
    const [, name, rest] = match as unknown as [string, string, string];
    const quote = /^["'`]/.exec(rest)?.[0];
    if (quote === undefined) {
      variables.push({ line, name, value: rest.replace(/(?:^|\s+)#.*$/, "").trim() });
      continue;
    }
    // A quoted value may go on over lines.
    let body = rest.slice(1);
    let end = endOf(body, quote);
    while (end === -1 && at + 1 < lines.length) {
      body += `\n${lines[++at]!}`;
      end = endOf(body, quote);
    }
    if (end === -1) {
      problems.push(`line ${line}: the quotation mark is not closed`);
      break;
    }
    if (!/^\s*(?:#.*)?$/.test(body.slice(end + 1)))
      problems.push(`line ${line}: there is more after the closing quote`);
    const value = body.slice(0, end);
    variables.push({ line, name, value: quote === '"' ? unescape(value) : value });
  }
  return { variables, problems };
}

/** Only in double quotes a backslash means anything. */
function endOf(text: string, quote: string): number {
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\" && quote === '"') at++;
    else if (text[at] === quote) return at;
  }
  return -1;
}

const ESCAPES: Record<string, string> = { n: "\n", r: "\r", t: "\t" };
const unescape = (text: string): string => text.replace(/\\([nrt"\\$])/g, (_, char: string) => ESCAPES[char] ?? char);
