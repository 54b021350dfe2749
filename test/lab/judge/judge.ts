/** Judges the recorded builds of simulated teams, and prints how right that was: `bun test/lab/judge/judge.ts`. */

import { weigh } from "../../../src/rules/odds.ts";
import { CONSTANTS, type Constants } from "../../../src/rules/odds_facts.ts";
import { createHistory } from "./history.ts";
import { record, type Recorded } from "./record.ts";
import { FLAKY, score, toRow } from "./score.ts";
import { parseArguments, TEAMS } from "./teams.ts";

export function play({ builds }: Recorded, constants: Constants = CONSTANTS) {
  const history = createHistory(constants);
  return builds.map((build) => {
    const facts = history.factsOf(build);
    const judgements = facts.runs.flatMap((run) => weigh({ ...facts, run }, constants));
    history.add(build, judgements, facts.runs);
    const flaky = build.runs
      .flatMap(({ failures }) => failures.map(({ test }) => test))
      .filter((test) => history.flakiness(test) > FLAKY);
    return { build, facts, judgements, flaky, flakiness: history.flakiness };
  });
}

if (import.meta.main) {
  const named = process.env["TEAMS"];
  const { teams, seeds } = parseArguments([...(named ? [named] : []), ...process.argv.slice(2)]);
  for (const team of teams)
    for (const seed of seeds) {
      const began = performance.now();
      const recorded = record(team, TEAMS[team]!(seed));
      const recordedAt = performance.now();
      const result = score(recorded, play(recorded));
      console.log(
        JSON.stringify({ team, seed, ...toRow(result) }),
        result.loss.toFixed(1),
        `${Math.round(recordedAt - began)} + ${Math.round(performance.now() - recordedAt)} ms`,
      );
      console.log("   ", result.tenths.map(({ count, change }) => `${change}/${count}`).join(" "));
    }
}
