/** The failed checks of a test, as the XML of doctest and of Catch2 has them. */

import { child, named, textBelow } from "./fields.ts";
import { firstLine } from "./text.ts";

type Node = Bun.XML.Node;

export type Fault = { message: string; text: string; isException: boolean; isWarning: boolean };

/** Formats a check like doctest and Catch2 do in their text output: the expression, its expansion, and the messages around it. */
export function readExpression(node: Node): Fault {
  const { type = "CHECK" } = node.attributes;
  const [original, expanded] = [textBelow(child(node, "Original")), textBelow(child(node, "Expanded"))];
  const exception = textBelow(child(node, "Exception"));
  const expected = [textBelow(child(node, "ExpectedException")), textBelow(child(node, "ExpectedExceptionString"))]
    .filter(Boolean)
    .join(" ");
  const outcome = exception
    ? `threw ${exception}`
    : expected
      ? `did not throw ${expected}`
      : expanded && expanded !== original
        ? `is ${expanded}`
        : "failed";
  const message = `${type}(${original}): ${outcome}`;
  const info = named(node, "Info").map(textBelow);
  const text = [`${locationOf(node)}${message}`, ...info].join("\n");
  return { message: firstLine(message) || message, text, isException: false, isWarning: type.startsWith("WARN") };
}

export function locationOf({ attributes: { filename, line } }: Node): string {
  return filename ? `${filename}:${line ?? "?"}: ` : "";
}
