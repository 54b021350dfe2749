/** The lines for the shell on the pages of the API. */

const ENTITIES: Record<string, string> = { quot: '"', amp: "&", lt: "<", gt: ">", "#x27": "'" };
export const decode = (text: string) => text.replace(/&(#?\w+);/g, (whole, name: string) => ENTITIES[name] ?? whole);

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
  return new Map([...found].map(([anchor, line]) => [anchor, decode(line)]));
}
