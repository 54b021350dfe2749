/** The share up to which gates of a project forgive: the choices side by side, with what each would have done. */

import type { Html, Path, Piece } from "../../../http/html.ts";
import { readGatePreviews } from "../../../operations/projects/gate_preview.ts";
import { GATE_SHARES, type GatePreview } from "../../../schema/gate.ts";
import type { Sql } from "../../../database/connect.ts";
import { toCount } from "../../../wording/numbers.ts";
import { Form } from "../../components/form.tsx";
import { TableHead } from "../../components/list.tsx";

export const CHOICES = ["strict", "normal", "own"] as const;
type Choice = (typeof CHOICES)[number];

/** The share that is shown as "own" until the project has chosen one. */
const FIRST_OWN = 0.1;
const DAYS = 30;

const ODDS: Record<Choice, (share: number) => string> = {
  strict: () => "20 to 1 against the change",
  normal: () => "4 to 1 against the change",
  own: (share) => `${toCount(Math.round((10 * (1 - share)) / share) / 10)} to 1 against the change`,
};
const NAMES: Record<Choice, string> = { strict: "Strict", normal: "Normal", own: "Another number" };

export type GateChoices = { chosen: Choice; own: string; previews: readonly GatePreview[] };

const choiceOf = (share: number): Choice =>
  share === GATE_SHARES.strict ? "strict" : share === GATE_SHARES.normal ? "normal" : "own";

/** `tried`: a number that is not saved. */
export async function readGateChoices(
  sql: Sql,
  projectId: string,
  { saved, tried, now }: { saved: number; tried: number | undefined; now: Date },
): Promise<GateChoices> {
  const chosen = tried === undefined ? choiceOf(saved) : "own";
  const own = tried ?? (choiceOf(saved) === "own" ? saved : FIRST_OWN);
  const shares = [GATE_SHARES.strict, GATE_SHARES.normal, own];
  return { chosen, own: String(own), previews: await readGatePreviews(sql, projectId, { shares, days: DAYS, now }) };
}

type ChoiceProperties = { choice: Choice; choices: GateChoices; preview: GatePreview; mayChange: boolean };

function ChoiceLabel({ choice, choices: { chosen, own }, preview, mayChange }: ChoiceProperties): Html {
  const isChosen = choice === chosen;
  const odds = (
    <span class="small soft">
      {choice === "own" && mayChange ? null : <>{preview.share}: </>}
      {ODDS[choice](preview.share)}
    </span>
  );
  if (!mayChange)
    return (
      <>
        {NAMES[choice]} {isChosen ? <b>(chosen)</b> : null}
        {odds}
      </>
    );
  return (
    <>
      <label class="check">
        <input type="radio" name="choice" value={choice} checked={isChosen} />{" "}
        <span>
          {NAMES[choice]}
          {odds}
        </span>
      </label>
      {choice === "own" ? (
        <input
          name="share"
          value={own}
          inputmode="decimal"
          aria-label="Another number, from 0.01 to 0.5"
          maxlength={8}
        />
      ) : null}
    </>
  );
}

function choiceRow(properties: ChoiceProperties): Html {
  const { guiltyBuilds, guiltyPassed, otherBuilds, otherStopped } = properties.preview;
  return (
    <tr>
      <td class="long">
        <ChoiceLabel {...properties} />
      </td>
      <td class="number">
        {toCount(guiltyPassed)} of {toCount(guiltyBuilds)}
      </td>
      <td class="number">
        {toCount(otherStopped)} of {toCount(otherBuilds)}
      </td>
    </tr>
  );
}

const formPath = (projectId: string): Path => `/projects/${projectId}/settings/gate-share`;

type CardContext = { project: { id: string }; role: "viewer" | "member" | "owner"; csrf: string };

export function gateShareCard({ project, role, csrf }: CardContext, choices: GateChoices): Html {
  const mayChange = role === "owner";
  const shown = CHOICES.filter((choice) => mayChange || choice !== "own" || choices.chosen === "own");
  const table: Piece = (
    <table>
      <TableHead
        caption="What each share would have done"
        columns={["Share", ["Guilty builds let through", "number"], ["Others stopped", "number"]]}
      />
      <tbody>
        {shown.map((choice) =>
          choiceRow({ choice, choices, preview: choices.previews[CHOICES.indexOf(choice)]!, mayChange }),
        )}
      </tbody>
    </table>
  );
  return (
    <>
      <h2 id="gates">
        Gates <small>forgive a failure up to this share of the change among its explanations</small>
      </h2>
      {mayChange ? (
        <Form to={formPath(project.id)} csrf={csrf} kind="card gate-share">
          {table}
          <p class="actions">
            <button class="main" name="action" value="save">
              Save
            </button>
            <button name="action" value="try">
              Try another number
            </button>
          </p>
        </Form>
      ) : (
        <div class="card gate-share">{table}</div>
      )}
      <p class="hint">
        The table says what the gate “new” would have done with the red builds of the last {DAYS} days. A build is
        guilty if one of its failures was put down to its change in the end. Failures above the share are unclear: they
        stay red, and a rerun tells. A new share applies to failures that arrive afterwards.
      </p>
    </>
  );
}
