/** The lines for the shell on the pages of the API. */

import { unescape } from "../browser.ts";

/** The lines for the shell, by the anchors of their operations. */
export function linesIn(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let anchor = "";
  new HTMLRewriter()
    .on("section.operation", { element: (section) => void (anchor = section.getAttribute("id")!) })
    .on("section.operation pre[data-copy]", {
      text: ({ text }) => void found.set(anchor, (found.get(anchor) ?? "") + text),
    })
    .transform(text);
  return new Map([...found].map(([anchor, line]) => [anchor, unescape(line)]));
}
