/** The address that `assay upload` sends results to: read before the tests run, and opened with a key after them. */

import {
  type AddressSource,
  CiKeyRefusedError,
  type KeyRequest,
  readAddressSource,
  toServerAddress,
} from "./ci_key.ts";
import { AnswerTooLongError, type ServerAddress, ServerAwayError } from "./client.ts";
import type { EnvironmentVariables } from "./invocation.ts";
import { UsageError } from "./usage.ts";

/** The results stay where they are, and why. */
export type NoAddress = { end: "refused" | "away"; problem: string };

/** Throws UsageError unless it `mayBeMissing`, as it is in the builds of forks. */
export function findAddress(environment: EnvironmentVariables, mayBeMissing: boolean): AddressSource | NoAddress {
  try {
    return readAddressSource(environment);
  } catch (error) {
    if (!mayBeMissing || !(error instanceof UsageError)) throw error;
    return { end: "away", problem: `${error.message} (the pull request of a fork has no secrets)` };
  }
}

/** After the command: a key that is made for the job lives for some minutes, and tests may take longer. */
export async function openAddress(
  source: AddressSource | NoAddress,
  request: KeyRequest,
): Promise<ServerAddress | NoAddress> {
  if ("problem" in source) return source;
  try {
    return await toServerAddress(source, request);
  } catch (error) {
    if (request.signal?.aborted) return { end: "away", problem: "Interrupted" };
    if (error instanceof CiKeyRefusedError || error instanceof AnswerTooLongError)
      return { end: "refused", problem: error.message };
    if (error instanceof ServerAwayError) return { end: "away", problem: error.message };
    throw error;
  }
}
