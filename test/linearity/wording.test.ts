/** Sentences hold texts of test frameworks, runners and people: writing one takes linear time. */

import { caseTitle, shownCaseTitle } from "../../src/wording/case_title.ts";
import { firstLineOf } from "../../src/wording/first_line.ts";
import { testLinearity } from "./growth.ts";

const caseOf = (text: string) => ({ suite: text, name: text });

testLinearity("wording", {
  "case_title.ts": {
    caseTitle: (text) => caseTitle(caseOf(text)),
    shownCaseTitle: (text) => shownCaseTitle(caseOf(text)),
  },
  "first_line.ts": { firstLineOf: (text) => firstLineOf(text, 100) },
});
