/** Reads the form that a page has sent, within what strangers, and people who are signed in, may take of the server's memory. */

import { readBody } from "../http/body.ts";
import { createFormBudget, type FormBudget } from "../http/form_budget.ts";
import { decodeText, parseQuery } from "../http/input.ts";
import { fail } from "../http/problem.ts";
import { addressBlock } from "../secrets/attempts.ts";

/** Identifies the sender of a form: by the account, or by the network if nobody is signed in. */
export type FormSender = { accountId: string | undefined; address: () => string };

const URL_ENCODED = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

const tooBusy = (): never =>
  fail("RATE_LIMITED", "Too many forms are being sent to this server", { "Retry-After": "5", Connection: "close" });

export function createFormReader(budget: FormBudget = createFormBudget()) {
  /** The fields by their names; undefined where the body is no form. Fails with VALIDATION_ERROR and RATE_LIMITED. */
  return async function readForm(
    request: Request,
    { accountId, address }: FormSender,
  ): Promise<Record<string, string> | undefined> {
    if (!URL_ENCODED.test(request.headers.get("content-type") ?? "")) return undefined;
    const kind = accountId === undefined ? "public" : "signedIn";
    const { maxBytes, maxSeconds } = budget.limits[kind];
    // A body of unknown length may become as large as any.
    const bytes = Number(request.headers.get("content-length") ?? maxBytes) || maxBytes;
    const hold = budget.open(kind, accountId ?? addressBlock(address()), bytes);
    try {
      const { signal } = hold;
      const body = await readBody(request, { maxBytes, maxInflatedBytes: maxBytes, maxSeconds, signal }).catch(
        (error) => {
          if (signal.aborted) tooBusy();
          throw error;
        },
      );
      return parseQuery(decodeText(body));
    } finally {
      hold.release();
    }
  };
}
