/** Says what an unknown command or option was probably meant to be. */

import { findNearest } from "../misspelt.ts";
import type { Commands } from "./command_line.ts";
import { readTopic, wordsOf } from "./help_text.ts";

/** The messages about unknown names of `command_line.ts`, `usage.ts` and the commands of commands. */
const UNKNOWN = /^Unknown (?:option '(--[\w-]+)'|command: (?:\w+ )?([\w-]+))$/;

/** Returns the message about a wrong command line with the name that is most similar. */
export async function addSuggestion(
  message: string,
  [name = "", ...words]: readonly string[],
  commands: Commands,
): Promise<string> {
  const [, option, word] = UNKNOWN.exec(message) ?? [];
  const given = option ?? word;
  if (given === undefined) return message;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  const topic = command && (await readTopic(name, command, words));
  const known = !topic ? Object.keys(commands) : option ? topic.options.map(({ name }) => name) : wordsOf(topic);
  const nearest = findNearest(given, known);
  return nearest === undefined ? message : `${message}; did you mean ${nearest}?`;
}
