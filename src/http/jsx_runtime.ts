/** The runtime of TSX: an element is rendered to escaped HTML at once, a component is a function of its properties. */

import { escapeText, type Href, Html, type Piece, render } from "./html.ts";

/** Elements without content and end tag. */
const VOID = new Set(["br", "hr", "img", "input", "link", "meta", "source", "wbr"]);

/** Elements of SVG, which are closed even without content. */
const SHAPES = new Set(["line", "path", "rect"]);

type Value = string | number | boolean | null | undefined;
type Properties = Record<string, Value> & { children?: Piece };

/** Formats an attribute. One that is undefined, null or false is omitted, as is an empty class; true is written as its name alone. */
function attribute(name: string, value: Value): string {
  if (value === undefined || value === null || value === false || (value === "" && name === "class")) return "";
  if (value === true) return ` ${name}`;
  return ` ${name}="${typeof value === "number" ? value : escapeText(value)}"`;
}

function element(tag: string, properties: Properties): Html {
  let text = `<${tag}`;
  for (const name in properties) if (name !== "children") text += attribute(name, properties[name]);
  if (VOID.has(tag)) return new Html(`${text}>`);
  if (SHAPES.has(tag) && properties.children === undefined) return new Html(`${text}/>`);
  return new Html(`${text}>${render(properties.children)}</${tag}>`);
}

/** Called by the code that TSX is compiled to. */
export const jsx = (type: string | ((properties: Properties) => Html), properties: Properties): Html =>
  typeof type === "string" ? element(type, properties) : type(properties);
export { jsx as jsxs, jsx as jsxDEV };

export const Fragment = ({ children }: { children?: Piece }): Html => new Html(render(children));

type Text = string | number | null | undefined;
type Flag = boolean | undefined;
type Autocomplete = "off" | "name" | "email" | "username" | "current-password" | "new-password";

/** TSX itself allows every attribute with a hyphen: data-…, aria-…, stroke-…. */
type Global = {
  children?: Piece;
  class?: string | undefined;
  id?: string | undefined;
  title?: string | undefined;
  role?: string | undefined;
  lang?: string | undefined;
  hidden?: Flag;
  tabindex?: number | undefined;
};
type Control = Global & { name?: string | undefined; disabled?: Flag; required?: Flag; form?: string | undefined };
type Field = Control & {
  autocomplete?: Autocomplete | undefined;
  maxlength?: number | undefined;
  minlength?: number | undefined;
  placeholder?: string | undefined;
  readonly?: Flag;
  spellcheck?: "true" | "false" | undefined;
  inputmode?: "decimal" | "numeric" | "email" | "url" | undefined;
};
type Shape = Global & {
  [name in "d" | "fill" | "stroke" | "x" | "y" | "x1" | "x2" | "y1" | "y2"]?: Text;
} & {
  width?: Text;
  height?: Text;
  rx?: Text;
};
type Cell = Global & { colspan?: number | undefined; headers?: string | undefined };

type Plain =
  | "abbr"
  | "b"
  | "body"
  | "caption"
  | "code"
  | "dd"
  | "del"
  | "div"
  | "dl"
  | "dt"
  | "figcaption"
  | "figure"
  | "h1"
  | "h2"
  | "h3"
  | "head"
  | "header"
  | "hr"
  | "html"
  | "i"
  | "ins"
  | "legend"
  | "li"
  | "main"
  | "mark"
  | "nav"
  | "p"
  | "pre"
  | "q"
  | "section"
  | "small"
  | "span"
  | "summary"
  | "table"
  | "tbody"
  | "thead"
  | "tr"
  | "ul"
  | "br"
  | "wbr";
type Elements = { [name in Plain]: Global } & {
  [name in "g" | "line" | "path" | "rect" | "text"]: Shape;
} & {
  a: Global & { href?: Href | undefined; rel?: string | undefined; download?: string | boolean | undefined };
  button: Control & { type?: "submit" | "button" | undefined; value?: Text };
  details: Global & { open?: Flag; name?: string | undefined };
  fieldset: Control;
  form: Global & { action?: Href | undefined; method?: "get" | "post" | undefined };
  img: Global & { src: Href; alt: string; width?: Text; height?: Text; loading?: "lazy"; decoding?: "async" };
  video: Global & { src: Href; controls?: Flag; preload?: "none" };
  input: Field & {
    type?:
      "checkbox" | "date" | "email" | "hidden" | "number" | "password" | "radio" | "range" | "search" | "text" | "url";
    value?: Text;
    checked?: Flag;
    pattern?: string | undefined;
    min?: Text;
    max?: Text;
    list?: string | undefined;
  };
  label: Global & { for?: string | undefined };
  link: Global & { rel: string; href: Href; type?: string };
  meta: Global & { charset?: string; name?: string; content?: string };
  ol: Global & { start?: number };
  option: Global & { value?: Text; selected?: Flag };
  output: Global & { for?: string };
  progress: Global & { value?: Text; max?: Text };
  script: Global & { type?: string; src: Href };
  select: Control;
  svg: Global & { viewBox?: string; width?: Text; height?: Text; preserveAspectRatio?: string; xmlns?: string };
  td: Cell;
  textarea: Field & { rows?: number };
  th: Cell & { scope?: "col" | "row" | "colgroup" | "rowgroup" };
  time: Global & { datetime: string };
  title: Global;
  datalist: Global;
};

export namespace JSX {
  export type Element = Html;
  // A component takes any properties; each declares its own.
  export type ElementType = keyof Elements | ((properties: never) => Html | null);
  export interface ElementChildrenAttribute {
    children: unknown;
  }
  export interface IntrinsicElements extends Elements {}
}
