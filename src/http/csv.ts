/** Writes tables as comma-separated values (RFC 4180). */

/** Spreadsheets run a cell that begins with one of these as a formula, also the wide forms of the signs. */
const BEGINS_FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
/** A formula after a semicolon or tab inside quotes: programs that separate cells there ignore the quotes. */
const FORMULAS_BEHIND = /([;\t][ "]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
/** A semicolon and a tab separate cells in some countries and programs. */
const NEEDS_QUOTES = /[",;\t\r\n]|^\s|\s$/;

/** A text is never a formula: it gets an apostrophe in front. A number is one as it stands, and other values are written as JSON. */
function toCell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  // An empty text differs from null, which is an empty cell without quotes.
  if (text === "") return '""';
  const harmless = `${BEGINS_FORMULA.test(text) ? "'" : ""}${text.replace(FORMULAS_BEHIND, "$1'")}`;
  return NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Returns the table with a line of column names; every line ends with CR LF. */
export function formatCsv(columns: readonly string[], rows: readonly Readonly<Record<string, unknown>>[]): string {
  const lines = [columns.map(toCell), ...rows.map((row) => columns.map((column) => toCell(row[column])))];
  return lines.map((cells) => `${cells.join(",")}\r\n`).join("");
}
