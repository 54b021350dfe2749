/** Reads the fields of a form, and refuses forms that do not come from one of our pages. */

import { check } from "../../http/input.ts";
import { Problem } from "../../http/problem.ts";
import { createFormReader } from "../../request/forms.ts";
import type { Visitor } from "../../request/visitors.ts";
import type { Page, VisitorServices } from "./page.ts";
import { PageError } from "./page_error.ts";
import { acceptsHtml } from "./page_reply.ts";

type FormRequest = { request: Request; address: () => string; visitor: Visitor | undefined };

/** The function it returns throws a PageError or a Problem. */
export function createFieldReader(visitors: VisitorServices) {
  const readForm = createFormReader();
  return async function readFields(
    schema: NonNullable<Page["fields"]>,
    { request, address, visitor }: FormRequest,
  ): Promise<unknown> {
    const sent = await readForm(request, { accountId: visitor?.accountId, address }).catch((error: unknown) => {
      const isBusy = error instanceof Problem && error.code === "RATE_LIMITED";
      if (!isBusy || !acceptsHtml(request)) throw error;
      throw new PageError(429, error.message, "Nothing was changed. Wait a moment, then try again.");
    });
    const { csrf = "", ...fields } = sent ?? {};
    if (!sent || !visitors.isOwnForm(request, visitor, csrf))
      throw new PageError(403, "This form has expired", "Nothing was changed. Reload the page and try again.");
    return check(schema, fields);
  };
}
