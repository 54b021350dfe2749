/** Asks the server which test cases the default branch has never run. */

import * as v from "valibot";
import type { PlacedCase } from "../rules/identity.ts";
import { nameVariant } from "../rules/variants.ts";
import { askPatiently, messageOf, type ServerAddress, ServerAwayError, toPatience } from "./client.ts";
import type { NoAddress } from "./upload_address.ts";

const answered = v.object({
  testCases: v.array(v.object({ suite: v.string(), name: v.string(), file: v.nullable(v.string()) })),
});

/** `suite` names the task if the parameters of the upload do not. Returns why it is unknown if there is no answer. */
export async function askNewTests(
  address: ServerAddress | NoAddress,
  parameters: Readonly<Record<string, string>>,
  { cases, suite }: { cases: readonly PlacedCase[]; suite: string | null },
  { patienceMs, signal }: { patienceMs: number; signal?: AbortSignal | undefined },
): Promise<readonly PlacedCase[] | string> {
  if ("problem" in address) return address.problem;
  const tags = parameters["tag"]?.split(",") ?? [];
  const taskSlug = nameVariant(parameters["task_slug"] ?? suite ?? "default", tags);
  const testCases = cases.map(({ suite, name, file }) => ({ suite, name, file }));
  try {
    const asking = {
      method: "POST",
      path: "/test-cases/new",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ taskSlug, testCases }),
      ...(signal ? { signal } : {}),
    } as const;
    const answer = await askPatiently(address, asking, toPatience({ patienceMs, signal }));
    if (answer.status !== 200) return messageOf(answer);
    const { success, output } = v.safeParse(answered, JSON.parse(answer.text));
    return success ? output.testCases : `${address.url} is not an Assay server`;
  } catch (error) {
    if (signal?.aborted) return "Interrupted";
    if (error instanceof ServerAwayError || error instanceof SyntaxError) return error.message;
    throw error;
  }
}
