/** Helpers for the input of forms. */

import { Problem } from "../../http/problem.ts";
import { Refusal } from "../../schema/refusal.ts";

/** Runs `work` and returns the message if the input is refused, so that the form can be shown again with it. Other errors are thrown. */
export async function tryForm<T>(work: () => Promise<T>): Promise<{ result: T } | { problem: string }> {
  try {
    return { result: await work() };
  } catch (error) {
    const isMistake =
      error instanceof Refusal ? error.kind === "invalid" : error instanceof Problem && error.status === 400;
    if (!isMistake) throw error;
    return { problem: (error as Error).message };
  }
}

/** Splits a list at line breaks or commas, and drops blanks and empty items. */
export const splitList = (text: string | undefined): string[] =>
  (text ?? "")
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** Browsers send the line breaks of a text area as CR LF. */
export const toLines = (text: string): string => text.replaceAll("\r\n", "\n");
