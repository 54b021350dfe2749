/** The decisions of gates: what they have forgiven and why, or why they did not pass. */

import type { Html } from "../../http/html.ts";
import type { StoredGate } from "../../schema/gate.ts";
import { shownCaseTitle } from "../../wording/case_title.ts";
import { gateHeadline } from "../../wording/gate.ts";
import { counted } from "../../wording/numbers.ts";
import { testPath } from "../site/paths.ts";
import { Breakable } from "./text.tsx";

/** Maximum number of forgiven failures that a page names for one decision. */
const MAX_NAMED = 20;
/** Maximum number of decisions on a page. */
const MAX_GATES = 20;

type GatesProperties = { projectId: string; gates: readonly StoredGate[] };

function ForgivenList({ projectId, gate: { forgiven, forgivenCount } }: { projectId: string; gate: StoredGate }): Html {
  const named = forgiven.slice(0, MAX_NAMED);
  const more = forgivenCount - named.length;
  return (
    <ul class="plain small">
      {named.map(({ testCaseId, reason, ...ref }) => (
        <li>
          <a href={testPath(projectId, testCaseId)}>
            <Breakable text={shownCaseTitle(ref)} />
          </a>{" "}
          <span class="soft">{reason}</span>
        </li>
      ))}
      {more > 0 ? <li class="soft">and {counted(more, "other failure")}</li> : null}
    </ul>
  );
}

function GateItem({ projectId, gate }: { projectId: string; gate: StoredGate }): Html | null {
  const headline = gateHeadline(gate);
  if (headline === null) return null;
  const shard = gate.shard === null ? "" : `Shard ${gate.shard}: `;
  return (
    <div class={`message ${gate.pass ? "good" : "bad"}`} role="note">
      <p>
        {shard}
        {headline}
      </p>
      {gate.pass ? <ForgivenList projectId={projectId} gate={gate} /> : null}
    </div>
  );
}

/** The first 20 decisions, each with up to 20 forgiven failures. */
export const Gates = ({ projectId, gates }: GatesProperties): Html => (
  <>
    {gates.slice(0, MAX_GATES).map((gate) => (
      <GateItem projectId={projectId} gate={gate} />
    ))}
  </>
);
