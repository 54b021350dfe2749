/** One delivery of an integration, with its attempts. */

import type { Html, Path } from "../../../http/html.ts";
import type { Delivery, DeliveryAttempt } from "../../../schema/deliveries.ts";
import type { Integration } from "../../../schema/integrations.ts";
import { toDuration } from "../../../wording/numbers.ts";
import { AgoCell, TableHead } from "../../components/list.tsx";
import { ActionForm } from "../../components/form.tsx";
import { Mark } from "../../components/status.tsx";
import { Ago, toExact } from "../../components/text.tsx";
import type { TeamContext } from "../../site/page.ts";

const MAX_SHOWN_ATTEMPTS = 5;

export const ACTION_WORDS: Record<Delivery["action"], string> = {
  notify: "message",
  digest: "digest",
  create_issue: "issue",
  set_commit_status: "commit status",
  dispatch: "pipeline",
};

export const DELIVERY_STATES: Record<Delivery["status"], { shape: string; word: string }> = {
  pending: { shape: "running", word: "waiting" },
  sent: { shape: "passed", word: "sent" },
  inapplicable: { shape: "skipped", word: "nothing to send" },
  failed: { shape: "failed", word: "failed" },
};

function attemptRow({ attemptedAt, statusCode, latencyMs, error }: DeliveryAttempt, now: Date): Html {
  return (
    <tr>
      <AgoCell at={attemptedAt} now={now} kind="nowrap" />
      <td class="number">{statusCode ?? <span class="soft">no response</span>}</td>
      <td class="number">{toDuration(latencyMs)}</td>
      <td class="long">{error ?? "arrived"}</td>
    </tr>
  );
}

export function deliveryDetails(
  { team, role, csrf, now }: TeamContext,
  integration: Integration,
  delivery: Delivery,
): Html {
  const { id, status, action: what, title, eventType, attempts, nextAttemptAt, createdAt } = delivery;
  const last = attempts.at(-1);
  const { shape, word } = DELIVERY_STATES[status];
  const shown = attempts.slice(-MAX_SHOWN_ATTEMPTS).toReversed();
  const path: Path = `/teams/${team.id}/integrations/${integration.id}/deliveries/${id}/redeliver`;
  return (
    <details class="failure" id={`d-${id}`}>
      <summary>
        <span>
          <Mark status={shape} word={word} />
        </span>
        <span class="long">
          {title}{" "}
          <span class="small soft">
            {ACTION_WORDS[what]} · {eventType}
          </span>
        </span>
        <span class="soft nowrap">
          {word}
          {last?.statusCode == null ? "" : ` · ${last.statusCode}`}
          {last ? ` · ${toDuration(last.latencyMs)}` : ""}
        </span>
        <span class="soft nowrap">
          <Ago at={createdAt} now={now} />
        </span>
      </summary>
      <div class="evidence one">
        {shown.length === 0 ? (
          <p class="soft">No attempts yet.</p>
        ) : (
          <>
            <div class="scroll">
              <table>
                <TableHead
                  caption="Attempts, newest first"
                  columns={["Attempt", ["Status", "number"], ["Latency", "number"], "Result"]}
                />
                <tbody>{shown.map((one) => attemptRow(one, now))}</tbody>
              </table>
            </div>
            {attempts.length > shown.length ? (
              <p class="hint">and {attempts.length - shown.length} earlier attempts</p>
            ) : null}
          </>
        )}
        {nextAttemptAt === null ? null : (
          <p class="hint">
            {shown.length === 0 ? "First attempt" : "Next attempt"} at {toExact(nextAttemptAt)}.
          </p>
        )}
        {last?.answer ? (
          <div>
            <h3>Last response</h3>
            <pre>{last.answer}</pre>
          </div>
        ) : null}
        <p class="hint">
          webhook-id <code>{id}</code>
        </p>
        {role === "owner" && integration.enabled ? <ActionForm action={path} csrf={csrf} label="Redeliver" /> : null}
      </div>
    </details>
  );
}
