/** Infrastructure rules: texts by which a team recognises failures that are not the fault of a test. */

import type { InfrastructurePattern } from "../schema/infrastructure_rules.ts";
import { compileLinearPattern, type MatchBudget, PatternError } from "./linear_pattern.ts";

/** What a failure says. */
export type RuleText = { message: string | null; stack: string | null; output: string | null };

/** Characters of a failure that are matched: the beginning of its message and stack, and the end of its output. */
export const MATCHED = { message: 2_000, stack: 1_000, output: 1_000 };

/** Steps for the failures of one run: about a fifth of a second. Failures beyond that are judged without the rules. */
export const MATCH_STEPS = 20_000_000;

type Match = (text: string, budget: MatchBudget) => boolean;

/** A pattern always compiles to the same matcher, so the cache needs no version. */
const compiled = new Map<string, Match>();
const MAX_COMPILED = 500;

function matcherOf({ kind, pattern }: InfrastructurePattern): Match {
  if (kind === "text") {
    const wanted = pattern.toLowerCase();
    return (text) => text.includes(wanted);
  }
  let match = compiled.get(pattern);
  if (!match) {
    if (compiled.size >= MAX_COMPILED) compiled.delete(compiled.keys().next().value!);
    match = compileLinearPattern(pattern);
    compiled.set(pattern, match);
  }
  return match;
}

/** Returns what is wrong with a regular expression; undefined if it can be matched. */
export function findPatternProblem({ kind, pattern }: InfrastructurePattern): string | undefined {
  if (kind === "text") return undefined;
  try {
    compileLinearPattern(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof PatternError) return error.message;
    throw error;
  }
}

const toText = ({ message, stack, output }: RuleText): string =>
  [
    (message ?? "").slice(0, MATCHED.message),
    (stack ?? "").slice(0, MATCHED.stack),
    (output ?? "").slice(-MATCHED.output),
  ]
    .join("\n")
    .toLowerCase();

/** Returns a function that finds the first of the rules that matches a failure. Letter case makes no difference. */
export function createRuleSearch<Rule extends InfrastructurePattern>(rules: readonly Rule[]) {
  const matchers = rules.map((rule) => ({ rule, match: matcherOf(rule) }));
  const budget: MatchBudget = { steps: MATCH_STEPS };
  return (failure: RuleText): Rule | undefined => {
    const text = toText(failure);
    return matchers.find(({ match }) => match(text, budget))?.rule;
  };
}
