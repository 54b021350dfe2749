/** Lists the forms in which tools print a text: escaped for JSON, URIs, XML and shells, in base64 and in hexadecimal. */

/** A tool's usual forms; together with those of `rareFormsOf` they are all that have to be hidden. */
export const commonFormsOf = (text: string): string[] => {
  const json = toJson(text);
  return [text, json, toJson(json), encodeURIComponent(text), text.replace(/[&<]/g, (char) => XML_TEXT[char]!)];
};

/** Forms that depend on the tool's own taste, such as upper or lower case and which characters are escaped. */
export const rareFormsOf = (text: string): string[] =>
  NEVER_ESCAPED.test(text)
    ? []
    : [
        ...uriFormsOf(text),
        ...jsonFormsOf(text).flatMap((form) => [form, ...jsonFormsOf(form)]),
        ...xmlFormsOf(text),
        ...shellFormsOf(text),
      ];

const NEVER_ESCAPED = /^[A-Za-z0-9_.-]*$/;

/**
 * Base64 in the standard alphabet. What stands before the text in the encoded data shifts it by 0, 1 or 2 bytes; characters
 * that it shares with its neighbours are left out.
 */
export function base64FormsOf(text: string): string[] {
  return [0, 1, 2].flatMap((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(text)]);
    const whole = Math.floor((bytes.length * 8) / 6);
    const encoded = bytes.toString("base64").slice([0, 2, 3][shift]);
    const inner = encoded.slice(0, whole - [0, 2, 3][shift]!);
    // At the end of the encoded data the last character is known, too.
    return [inner, encoded];
  });
}

/** In lower case. */
export const hexOf = (text: string): string => Buffer.from(text).toString("hex");

function uriFormsOf(text: string): string[] {
  const component = encodeURIComponent(text);
  const strict = component.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const forms = [component, strict, encodeURI(text)].flatMap((form) => [form, form.replaceAll("%2F", "/")]);
  const all = [...forms, ...[component, strict].map((form) => form.replaceAll("%20", "+"))];
  return [...all, ...all.map((form) => form.replace(/%../g, (code) => code.toLowerCase()))];
}

const toJson = (text: string): string => JSON.stringify(text).slice(1, -1);

function jsonFormsOf(text: string): string[] {
  const plain = toJson(text);
  const code = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const upper = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}`;
  const forms = [plain, ...[code, upper].map((of) => plain.replace(/[^\0-\x7f]/g, of))];
  // For HTML some writers use codes for these as well, and others put a backslash before each slash.
  const all = [...forms, ...forms.map((form) => form.replace(/[<>&]/g, code)), plain.replace(/[<>&']/g, upper)];
  return [...new Set([...all, ...all.map((form) => form.replaceAll("/", "\\/"))])];
}

const XML_TEXT: Record<string, string> = { "&": "&amp;", "<": "&lt;" };

function xmlFormsOf(text: string): string[] {
  const escape = (codes: Record<string, string>) => text.replace(/[&<>"']/g, (char) => codes[char] ?? char);
  const forms = [
    XML_TEXT,
    { ...XML_TEXT, ">": "&gt;" },
    ...['"', "&quot;", "&#34;"].flatMap((quote) =>
      ["'", "&apos;", "&#39;", "&#x27;"].flatMap((single) => [
        { ...XML_TEXT, '"': quote, "'": single },
        { ...XML_TEXT, ">": "&gt;", '"': quote, "'": single },
      ]),
    ),
  ].map(escape);
  const ofLines = ["&#10;", "&#xA;", "&#xa;"].flatMap((code) => forms.map((form) => form.replaceAll("\n", code)));
  return [...forms, ...ofLines, text.replaceAll("]]>", "]]]]><![CDATA[>")];
}

const SHELL_CODES: Record<string, string> = {
  ...{ "\x07": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r", "\x1b": "\\E" },
  ...{ "\\": "\\\\", "'": "\\'" },
};

/** As `printf %q`, `set -x` and `declare -p` of bash print it. */
function shellFormsOf(text: string): string[] {
  const octal = (text: string) =>
    [...Buffer.from(text)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  // Inside of $'…', which bash uses for the whole text when one character of it cannot be printed.
  const ansi = text.replace(/[\0-\x1f\x7f\\']/g, (char) => SHELL_CODES[char] ?? octal(char));
  const escaped = text.replace(/[ !"$&'()*,;<>?[\\\]^`{|}]/g, "\\$&");
  const tildes = escaped.replace(/[:=]~/g, (pair) => `${pair[0]}\\~`);
  return [
    ansi,
    // In the locale C.
    ansi.replace(/[^\0-\x7f]+/g, octal),
    escaped,
    tildes,
    // At the beginning of a word.
    tildes.replace(/^[#~]/, "\\$&"),
    text.replaceAll("'", `'\\''`),
    // Inside of double quotes, as `declare -p` and `export -p` print it.
    text.replace(/["$\\`]/g, "\\$&"),
  ];
}
