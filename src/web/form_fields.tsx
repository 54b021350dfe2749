/** The fields of forms, and what is said of a form that was sent: it is done, or what is wrong with it. */

import type { Html, Piece } from "../http/html.ts";
import { Problem } from "../http/problem.ts";
import { Refusal } from "../schema/refusal.ts";

export type FieldOptions = {
  value?: string | number | null | undefined;
  /** Default: "text". A secret is typed blind and offered by no password store. */
  type?: "text" | "number" | "url" | "secret" | "area";
  hint?: Piece;
  required?: boolean;
  /** Characters. */
  max?: number;
  placeholder?: string;
  /** Of an area. */
  rows?: number;
  /** Of what is given: names, paths, addresses, which are no prose. */
  isCode?: boolean;
  /** Where a page holds two fields of one name. */
  id?: string;
  kind?: string;
};

/** A label with what is asked for below it. */
export function field(label: string, name: string, options: FieldOptions = {}): Html {
  const {
    value,
    type = "text",
    hint,
    required = false,
    max,
    placeholder,
    rows = 4,
    isCode = false,
    kind = "",
  } = options;
  const id = `${options.id ?? name}-hint`.replaceAll(/[^\w-]/g, "-");
  const common = {
    required,
    placeholder,
    maxlength: max,
    class: isCode ? "mono" : undefined,
    spellcheck: isCode ? ("false" as const) : undefined,
    "aria-describedby": hint ? id : undefined,
  };
  const inputType = type === "secret" ? "password" : type === "url" ? "url" : "text";
  // A textarea takes the first line break for its own.
  const control =
    type === "area" ? (
      <textarea name={name} rows={rows} {...common}>
        {"\n"}
        {value}
      </textarea>
    ) : (
      <input
        type={inputType}
        name={name}
        value={value ?? ""}
        autocomplete={type === "secret" ? "off" : undefined}
        inputmode={type === "number" ? "numeric" : undefined}
        pattern={type === "number" ? "[0-9]*" : undefined}
        {...common}
      />
    );
  return (
    <div class={`field ${kind}`}>
      <label>
        {label} {control}
      </label>
      {hint ? (
        <p class="hint" id={id}>
          {hint}
        </p>
      ) : null}
    </div>
  );
}

export type Choice = readonly [value: string, label: string];

/** A label with a list to choose one from. */
export const choice = (
  label: string,
  name: string,
  choices: readonly Choice[],
  { value, hint, kind = "" }: Pick<FieldOptions, "value" | "hint" | "kind"> = {},
): Html => {
  const id = `${name}-hint`.replaceAll(/[^\w-]/g, "-");
  return (
    <div class={`field ${kind}`}>
      <label>
        {label}{" "}
        <select name={name} aria-describedby={hint ? id : undefined}>
          {choices.map(([key, text]) => (
            <option value={key} selected={key === value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      {hint ? (
        <p class="hint" id={id}>
          {hint}
        </p>
      ) : null}
    </div>
  );
};

export const checkbox = (label: Piece, name: string, isChecked: boolean, value = "true"): Html => (
  <label class="check">
    <input type="checkbox" name={name} value={value} checked={isChecked} /> <span>{label}</span>
  </label>
);

/** What somebody has done is done. */
export const done = (text: Piece): Html => (
  <p class="message good" role="status">
    {text}
  </p>
);

/** What is wrong with a form, above it; each part on a line of its own. */
export const wrong = (problem: string | undefined): Html | null =>
  problem === undefined ? null : (
    <div class="message bad" role="alert">
      {problem.split("; ").map((part) => (
        <p>{part}</p>
      ))}
    </div>
  );

/** What is wrong with what was given, so that the form can be shown again with it; anything else is thrown. */
export async function tryForm<T>(work: () => Promise<T>): Promise<{ result: T } | { problem: string }> {
  try {
    return { result: await work() };
  } catch (error) {
    const isMistake =
      error instanceof Refusal ? error.kind === "invalid" : error instanceof Problem && error.status === 400;
    if (!isMistake) throw error;
    return { problem: (error as Error).message };
  }
}

/** Lines or commas between them; blanks around them and empty ones are nothing. */
export const splitList = (text: string | undefined): string[] =>
  (text ?? "")
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** Browsers send the line breaks of a text area as CR LF. */
export const toLines = (text: string): string => text.replaceAll("\r\n", "\n");
