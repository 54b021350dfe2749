/** Fits the constants of the account to some teams, one after the other, by the loss of what it says about builds. */

import { CONSTANTS, type Constants } from "../../../src/rules/odds_facts.ts";
import { play } from "./judge.ts";
import { record } from "./record.ts";
import { score } from "./score.ts";
import { TEAMS } from "./teams.ts";

const [teams = "", seeds = "11,23", rounds = "2"] = process.argv.slice(2);
const names = teams === "" ? Object.keys(TEAMS).filter((name) => name !== "large") : teams.split(";");
const recorded = names.flatMap((team) => seeds.split(",").map((seed) => record(team, TEAMS[team]!(Number(seed)))));
const lossOf = (constants: Constants) =>
  recorded.reduce((sum, one) => sum + score(one, play(one, constants)).loss, 0) / recorded.length;

let best = { ...CONSTANTS };
let least = lossOf(best);
console.log("begins at", least.toFixed(3));
for (let round = 0; round < Number(rounds); round++) {
  const step = round === 0 ? 2 : 1.4;
  for (const name of Object.keys(CONSTANTS) as (keyof Constants)[]) {
    for (const factor of [step, 1 / step]) {
      for (;;) {
        const value = best[name] * factor;
        if (value >= 1 && best[name] < 1) break;
        const loss = lossOf({ ...best, [name]: value });
        if (loss >= least - 0.005) break;
        best = { ...best, [name]: value };
        least = loss;
        console.log(round, name, Number(value.toPrecision(3)), least.toFixed(3));
      }
    }
  }
}
console.log(
  JSON.stringify(Object.fromEntries(Object.entries(best).map(([name, value]) => [name, Number(value.toPrecision(2))]))),
);
