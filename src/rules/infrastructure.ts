/** Infrastructure rules: texts by which a team recognises failures that are not the fault of a test. */

/** The text of a failure. */
export type RuleText = { message: string | null; stack: string | null; output: string | null };

/** Characters of a failure that are matched: the beginning of its message and stack, and the end of its output. */
export const MATCHED = { message: 2_000, stack: 1_000, output: 1_000 };

const toTexts = ({ message, stack, output }: RuleText): string[] =>
  [
    (message ?? "").slice(0, MATCHED.message),
    (stack ?? "").slice(0, MATCHED.stack),
    (output ?? "").slice(-MATCHED.output),
  ].map((text) => text.toLowerCase());

/** Whether the text contains the parts one after the other. Taking the first place of each part is enough, so this is linear. */
function containsInOrder(text: string, parts: readonly string[]): boolean {
  let from = 0;
  for (const part of parts) {
    const found = text.indexOf(part, from);
    if (found === -1) return false;
    from = found + part.length;
  }
  return true;
}

/**
 * Returns a function that finds the first of the rules that matches a failure: whose message, stack or output contains the pattern, in
 * which `*` stands for any characters. Letter case makes no difference.
 */
export function createRuleSearch<Rule extends { pattern: string }>(rules: readonly Rule[]) {
  const searched = rules.map((rule) => ({ rule, parts: rule.pattern.toLowerCase().split("*") }));
  return (failure: RuleText): Rule | undefined => {
    const texts = toTexts(failure);
    return searched.find(({ parts }) => texts.some((text) => containsInOrder(text, parts)))?.rule;
  };
}
