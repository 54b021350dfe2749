/** Forms, their fields, and the notice or error after a form was sent. */

import * as v from "valibot";
import type { Html, Path, Piece } from "../../http/html.ts";
import { toFormMessage } from "../../wording/field_problem.ts";

type FieldProperties = {
  label: string;
  name: string;
  value?: string | number | null | undefined;
  /** Hides the value while it is typed, and keeps password managers from offering one. */
  type?: "text" | "number" | "url" | "email" | "date" | "password" | "secret" | "area";
  hint?: Piece;
  required?: boolean;
  /** Minimum and maximum number of characters. */
  min?: number;
  max?: number;
  /** The first day of a date. */
  from?: string;
  placeholder?: string;
  /** Number of rows of a text area. */
  rows?: number;
  /** Shows names, paths and addresses in a monospaced font. */
  isCode?: boolean;
  /** Distinguishes two fields of the same name on one page. */
  id?: string;
  kind?: string;
  /** The `autocomplete` attribute, which password managers read. */
  autocomplete?: "off" | "name" | "email" | "username" | "current-password" | "new-password" | undefined;
};

const INPUT_TYPES = {
  text: "text",
  number: "text",
  url: "url",
  email: "email",
  date: "date",
  password: "password",
  secret: "password",
} as const;

const hintId = (id: string) => `${id}-hint`.replaceAll(/[^\w-]/g, "-");

const Hint = ({ id, children }: { id: string; children: Piece }): Html | null =>
  children ? (
    <p class="hint" id={id}>
      {children}
    </p>
  ) : null;

/** A label with a text field or an area, and a hint below it. */
export function Field({
  label,
  name,
  value,
  type = "text",
  hint,
  max,
  rows = 4,
  isCode,
  ...rest
}: FieldProperties): Html {
  const id = hintId(rest.id ?? name);
  const common = {
    required: rest.required ?? false,
    placeholder: rest.placeholder,
    minlength: rest.min,
    maxlength: max,
    class: isCode ? "mono" : undefined,
    spellcheck: isCode ? ("false" as const) : undefined,
    "aria-describedby": hint ? id : undefined,
  };
  return (
    <div class={rest.kind ? `field ${rest.kind}` : "field"}>
      <label>
        {label}{" "}
        {type === "area" ? (
          <textarea name={name} rows={rows} {...common}>
            {/* Browsers drop a line break at the beginning of a text area. */}
            {"\n"}
            {value}
          </textarea>
        ) : (
          <input
            type={INPUT_TYPES[type]}
            name={name}
            value={value ?? ""}
            autocomplete={type === "secret" ? "off" : rest.autocomplete}
            inputmode={type === "number" ? "numeric" : undefined}
            pattern={type === "number" ? "[0-9]*" : undefined}
            min={rest.from}
            {...common}
          />
        )}
      </label>
      <Hint id={id}>{hint}</Hint>
    </div>
  );
}

export type FieldOptions = Omit<FieldProperties, "label" | "name" | "value"> & {
  /** Shown if the field has no value. */
  fallback?: string;
};

/** Shows a field with its value in the fields of a form. `values`: undefined for a new form. */
export const field = <Name extends string>(
  values: { readonly [N in Name]?: string | undefined } | undefined,
  name: Name,
  label: string,
  { fallback, ...options }: FieldOptions = {},
): Html => <Field {...options} label={label} name={name} value={values?.[name] ?? fallback} />;

/** The value of an option and its label. */
export type Choice = readonly [value: string, label: string];

/** Returns the values as choices, after a first one that is no value. */
export const toChoices = (
  first: string,
  values: readonly string[],
  labelOf = (value: string): string => value,
): Choice[] => [["", first], ...values.map((value): Choice => [value, labelOf(value)])];

export const Options = ({ options, value }: { options: readonly Choice[]; value: unknown }): Html => (
  <>
    {options.map(([option, label]) => (
      <option value={option} selected={option === value}>
        {label}
      </option>
    ))}
  </>
);

type SelectProperties = Pick<FieldProperties, "label" | "name" | "value" | "hint" | "kind"> & {
  options: readonly Choice[];
};

/** A label with a list to choose one option from, and a hint below it. */
export const Select = ({ label, name, options, value, hint, kind }: SelectProperties): Html => (
  <div class={kind ? `field ${kind}` : "field"}>
    <label>
      {label}
      <select name={name} aria-describedby={hint ? hintId(name) : undefined}>
        <Options options={options} value={value} />
      </select>
    </label>
    <Hint id={hintId(name)}>{hint}</Hint>
  </div>
);

type CheckboxProperties = { label: Piece; name: string; checked: boolean; value?: string };

export const Checkbox = ({ label, name, checked, value = "true" }: CheckboxProperties): Html => (
  <label class="check">
    <input type="checkbox" name={name} value={value} checked={checked} /> <span>{label}</span>
  </label>
);

export const Hidden = ({ name, value }: { name: string; value: string | undefined }): Html | null =>
  value === undefined || value === "" ? null : <input type="hidden" name={name} value={value} />;

/** The hidden CSRF token. Every form that changes something contains it. */
export const Csrf = ({ token }: { token: string }): Html => <input type="hidden" name="csrf" value={token} />;

type FormProperties = {
  to: Path;
  csrf: string;
  /** The label of the button that sends the form. Undefined: the form has buttons of its own. */
  button?: Piece;
  /** The class of the button. */
  buttonKind?: string;
  kind?: string;
  children?: Piece;
};

/** A form that changes something. */
export const Form = ({
  to,
  csrf,
  button,
  buttonKind = "main",
  kind = "fields card padded",
  children,
}: FormProperties) => (
  <form class={kind} method="post" action={to}>
    <Csrf token={csrf} />
    {children}
    {button === undefined ? null : (
      <div>
        <button class={buttonKind}>{button}</button>
      </div>
    )}
  </form>
);

type ActionProperties = { action: Path; csrf: string; label: Piece; kind?: string; fields?: Piece };

/** A form that consists of one button. */
export const ActionForm = ({ action, csrf, label, kind, fields }: ActionProperties): Html => (
  <form method="post" action={action}>
    <Csrf token={csrf} />
    {fields}
    <button class={kind}>{label}</button>
  </form>
);

/** An action that cannot be undone. It expands to a warning and its button. */
export const Danger = ({ loss, ...form }: Omit<ActionProperties, "kind"> & { loss: Piece }): Html => (
  <details class="danger">
    <summary>{form.label}</summary>
    <p>{loss}</p>
    <ActionForm {...form} kind="danger" />
  </details>
);

/** The error of a form, one line for each part. */
export const FormError = ({ message }: { message: string | undefined }): Html | null =>
  message === undefined ? null : (
    <div class="message bad" role="alert">
      {toFormMessage(message)
        .split("; ")
        .map((part) => (
          <p>{part}</p>
        ))}
    </div>
  );

type Notices = Readonly<Record<string, string>>;

/** The query parameter, such as `?notice=saved`, that names one of the notices of a page. */
export const noticeParameter = <const Texts extends Notices>(notices: Texts) =>
  v.optional(v.picklist(Object.keys(notices) as (keyof Texts & string)[], "expected a known notice"));

type NoticeProperties = { notices: Notices; name: string | undefined; isError?: boolean };

/** Shows the named notice, or nothing without a name. */
export const Notice = ({ notices, name, isError = false }: NoticeProperties): Html | null =>
  name === undefined ? null : (
    <p class={`message ${isError ? "bad" : "good"}`} role={isError ? "alert" : "status"}>
      {notices[name]}
    </p>
  );
