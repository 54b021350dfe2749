/** Reads dates, builds, commits, branches and tasks from the names of folders and files, by a pattern such as "{date}/{branch}". */

const FIELDS = ["date", "build", "commit", "branch", "task"] as const;
export type PatternField = (typeof FIELDS)[number];

export type NamedPart = {
  fields: Partial<Record<PatternField, string>>;
  /** The part of the path that the pattern has matched: files with the same part belong together. */
  prefix: string;
};

/** Returns what a path says, undefined if it does not match the pattern. */
export type NamePattern = { match: (path: string) => NamedPart | undefined };

const DATE =
  "\\d{4}-\\d{2}-\\d{2}(?:[T_-]\\d{2}[:.-]?\\d{2}(?:[:.-]?\\d{2})?Z?)?" +
  "|\\d{8}(?:[T_-]\\d{4}(?:\\d{2})?Z?)?|\\d{14}|\\d{13}|\\d{10}";
const EXTENSIONS = "(?:\\.(?:xml|trx|jsonl?|ndjson|tap|subunit|txt|log|gz|zst))*";

const escape = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** Returns undefined for a text that is not a pattern, with the reason. */
export function readPattern(text: string): NamePattern | { problem: string } {
  const pattern = text.replace(/^\.?\/+|\/+$/g, "");
  const parts = pattern.split(/(\{[^{}]*\}|\*)/);
  const used: string[] = [];
  let source = "";
  for (const part of parts) {
    if (part === "*") source += "[^/]*";
    else if (!/^\{.*\}$/.test(part)) source += escape(part);
    else {
      const name = part.slice(1, -1);
      if (!(FIELDS as readonly string[]).includes(name))
        return { problem: `expected ${FIELDS.map((field) => `{${field}}`).join(", ")} or *, got "${part}"` };
      if (used.includes(name)) return { problem: `${part} is there twice` };
      used.push(name);
      source += `(?<${name}>${name === "date" ? DATE : name === "commit" ? "[0-9a-fA-F]{7,64}" : "[^/]+?"})`;
    }
  }
  if (used.length === 0) return { problem: `expected at least one of ${FIELDS.map((one) => `{${one}}`).join(", ")}` };
  const expression = new RegExp(`^(?<prefix>${source})${EXTENSIONS}(?:/|$)`);
  return {
    match: (path) => {
      const groups = expression.exec(path)?.groups;
      if (!groups) return undefined;
      const { prefix = "", ...fields } = groups;
      return { prefix, fields: fields as NamedPart["fields"] };
    },
  };
}

/**
 * Reads "2025-06-02", "20250602T041000Z", "2025-06-02_04-10-00", seconds or milliseconds since 1970. A time without "Z" is
 * `offsetMinutes` ahead of UTC. Returns undefined for a day or a time that does not exist.
 */
export function readNameDate(text: string, offsetMinutes: number): Date | undefined {
  if (/^(?:\d{10}|\d{13})$/.test(text)) return new Date(Number(text) * (text.length === 10 ? 1000 : 1));
  const digits = text.replace(/\D/g, "");
  if (![8, 12, 14].includes(digits.length)) return undefined;
  const numbers = [digits.slice(0, 4), ...digits.slice(4).match(/\d\d/g)!].map(Number);
  const [year, month, day, hour = 0, minute = 0, second = 0] = numbers as [number, number, number, ...number[]];
  const date = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  const isReal =
    date.getUTCMonth() === month - 1 && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  if (!isReal) return undefined;
  return text.endsWith("Z") ? date : new Date(date.getTime() - offsetMinutes * 60_000);
}
