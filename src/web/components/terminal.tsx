/** Text of a terminal as markup: its colours and styles are classes, because the pages allow no style attributes. */

import type { Html, Piece } from "../../http/html.ts";
import { type Look, readAnsiLines, type Stretch } from "../../rules/ansi.ts";

/** Returns the classes of a look (site/terminal_style.ts). Bold is a separate element. */
function classesOf({ foreground, background, dim, italic, underline, inverse, strike }: Look): string {
  const [front, back] = inverse ? [background, foreground] : [foreground, background];
  return [
    dim && front === null ? "dim" : "",
    italic ? "italic" : "",
    underline ? (strike ? "underlined-struck" : "underlined") : strike ? "struck" : "",
    // With the default colours on both sides, the style sheet swaps them.
    inverse && front === null && back === null ? "inverse" : "",
    front === null ? "" : `fg${front}`,
    back === null ? "" : `bg${back}`,
  ]
    .filter((name) => name !== "")
    .join(" ");
}

/** Shows stretches in sequence. `show` renders the text of each. */
export const Stretches = ({
  stretches,
  show = (text) => text,
}: {
  stretches: readonly Stretch[];
  show?: (text: string, index: number) => Piece;
}): Html => (
  <>
    {stretches.map(({ text, look }, index): Piece => {
      const classes = classesOf(look);
      const shown = show(text, index);
      if (look.bold) return <b class={classes}>{shown}</b>;
      return classes === "" ? shown : <span class={classes}>{shown}</span>;
    })}
  </>
);

/** Shows a whole text without line numbers. */
export const Terminal = ({ text }: { text: string }): Html => (
  <>
    {readAnsiLines(text).map((stretches, index) => (
      <>
        {index === 0 ? null : "\n"}
        <Stretches stretches={stretches} />
      </>
    ))}
  </>
);
