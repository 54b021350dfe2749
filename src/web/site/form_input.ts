/** What the handlers of forms do with the fields that were sent. */

import { Problem } from "../../http/problem.ts";
import { Refusal } from "../../schema/refusal.ts";

/** Returns the message if the input is refused, so that the form can be shown again with it; every other error is thrown. */
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

/** The items of a list that lines or commas separate; blanks around items and empty items are left out. */
export const splitList = (text: string | undefined): string[] =>
  (text ?? "")
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** Browsers send the line breaks of a text area as CR LF. */
export const toLines = (text: string): string => text.replaceAll("\r\n", "\n");
