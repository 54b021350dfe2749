/** Sends one delivery once with the sender of its integration, and returns the outcome. */

import { type Outbound, type OutboundAnswer, OutboundError } from "../http/outbound.ts";
import type { DeliveryAttempt } from "../schema/deliveries.ts";
import type { IntegrationAction, Kind } from "../schema/integration_configs.ts";
import { toStorable } from "../schema/fields.ts";
import { createMask } from "../secrets/mask.ts";
import { discord } from "./discord.ts";
import { smtp } from "./email.tsx";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { jira } from "./jira.ts";
import { linear } from "./linear.ts";
import { pagerduty } from "./pagerduty.ts";
import { type Answered, shorten, type Job, type Outcome, type Sender } from "./sender.ts";
import { slack } from "./slack.ts";
import { teams } from "./teams.ts";
import { webhook } from "./webhook.ts";

const SENDERS: { [K in Kind]: Sender<K> } = {
  webhook,
  slack,
  discord,
  teams,
  email: smtp,
  github,
  gitlab,
  jira,
  linear,
  pagerduty,
};

export const actionsOf = (kind: Kind): readonly IntegrationAction[] => SENDERS[kind].actions;
export const sampleOf = (kind: Kind): IntegrationAction => SENDERS[kind].sample;

/** Undefined: it is news of its own. */
export const stateOf = (kind: Kind, job: Pick<Job, "action" | "options" | "notice">): string | undefined =>
  (SENDERS[kind] as Sender<Kind>).stateOf?.(job);

const ANSWER_CHARACTERS = 1_024;
const ERROR_CHARACTERS = 600;
/** All requests of a delivery together. */
const DELIVERY_MS = 30_000;

export type { Outbound };

/** `config` is whole, `secrets` are the texts in it that must not be seen anywhere. */
export type Receiver = { kind: Kind; config: Record<string, unknown>; secrets: readonly string[] };

/** The message of an internal error for users; the log has the details. */
export const INTERNAL_ATTEMPT = "Internal error while sending. See the log of the server";

/** Never throws: `bug` is an internal error, which may be temporary like any other failure. */
export async function send(
  http: Outbound,
  { kind, config, secrets }: Receiver,
  job: Job,
): Promise<{ outcome: Outcome; attempt: DeliveryAttempt; bug?: unknown }> {
  const started = performance.now();
  let last: Pick<OutboundAnswer, "status" | "text"> | undefined;
  let bug: unknown;
  const sender = SENDERS[kind] as Sender<never>;
  const hidden = [...secrets, ...(sender.secretsOf?.(config as never) ?? [])].flatMap(partsOf);
  const timeLeft = () => {
    const left = Math.ceil(DELIVERY_MS - (performance.now() - started));
    if (left <= 0) throw new OutboundError(`Not done within ${DELIVERY_MS / 1000} s`, false);
    return left;
  };
  const watched: Outbound = {
    async request(request) {
      // A receiver may send back what it has got, and what our secrets were made into counts as much.
      for (const [name, value] of Object.entries(request.headers ?? {}))
        if (/^(authorization|private-token|webhook-signature)$/i.test(name))
          hidden.push(...value.split(" ").flatMap(partsOf));
      last = undefined;
      return (last = await http.request({ ...request, timeoutMs: timeLeft() }));
    },
    connect: (target, use) => http.connect({ ...target, timeoutMs: timeLeft() }, use),
  };
  let outcome: Outcome;
  try {
    const { answer, ...answered }: Answered = await sender.send(watched, config as never, job);
    outcome = answered;
    last = answer ?? last;
  } catch (error) {
    if (error instanceof OutboundError) outcome = { status: error.isFinal ? "refused" : "retry", error: error.message };
    else {
      bug = error;
      outcome = { status: "retry", error: INTERNAL_ATTEMPT };
    }
  }
  const answer = last as Pick<OutboundAnswer, "status" | "text"> | undefined;
  const mask = createMask(hidden, "[secret]");
  const error = "error" in outcome ? toStorable(shorten(mask.text(outcome.error), ERROR_CHARACTERS)) : null;
  return {
    outcome: error === null ? outcome : ({ ...outcome, error } as Outcome),
    attempt: {
      attemptedAt: job.now.toISOString(),
      statusCode: answer?.status ?? null,
      latencyMs: Math.round(performance.now() - started),
      answer: answer ? toStorable(mask.text(answer.text).slice(0, ANSWER_CHARACTERS)) : null,
      error,
    },
    ...(bug === undefined ? {} : { bug }),
  };
}

/** Minimum length of masked texts; shorter ones are words that occur in many answers. */
const MIN_MASKED_LENGTH = 8;

/** Returns the parts of a secret that receivers may send back; of an address, those that cannot be guessed. */
function partsOf(secret: string): string[] {
  // Base64 may come without its padding, or with encoded padding.
  const parts = [secret, secret.replace(/^whsec_/, ""), secret.replace(/=+$/, "")];
  // A token may begin like an address and be none.
  const address = /^https?:/i.test(secret) ? URL.parse(secret) : null;
  if (address) {
    const { pathname, search, searchParams } = address;
    const isSecret = (part: string) => !/^[a-z]*$/i.test(part);
    parts.push(`${pathname}${search}`, pathname, search);
    parts.push(...[...pathname.split("/"), ...searchParams.values()].filter(isSecret));
  }
  return parts.filter((part) => part.length >= MIN_MASKED_LENGTH);
}
