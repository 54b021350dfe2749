/** Reads help texts: completion, the manual page and suggestions are made from the texts that --help prints. */

import type { Command, Commands } from "./command_line.ts";

/** A paragraph, or a list of terms with their descriptions. */
type HelpBlock = { text: string } | { items: { term: string; text: string }[] };

export type HelpOption = {
  /** With the dashes. */
  name: string;
  /** The placeholder of its value, such as FILE or quarantine|new; undefined: a flag, or unknown. */
  value: string | undefined;
  text: string;
};

/** A command that has a help text of its own, such as "admin list-keys". */
export type HelpTopic = {
  name: string;
  purpose: string;
  /** The ways to call it. */
  synopses: string[];
  /** The help text without its synopses. */
  blocks: HelpBlock[];
  options: HelpOption[];
  /** Words that may follow the command, where these are the only ones. */
  words: string[];
  takesFiles: boolean;
};

const HELP_OPTION: HelpOption = { name: "--help", value: undefined, text: "print the options of the command" };

const CHOICES = /^[a-z]+(?:\|[a-z]+)*$/;

/** Returns the words that a placeholder lists, or none if it stands for any value. */
export const choicesOf = (placeholder: string | undefined): string[] =>
  placeholder !== undefined && CHOICES.test(placeholder) ? placeholder.split("|") : [];

export const isPath = (placeholder: string | undefined): boolean => /\b(?:FILE|DIR|GLOB)\b/.test(placeholder ?? "");

/** The first clause of a description, for menus. */
const shorten = (text: string): string =>
  text
    .replace(/^with(?:out)? \S+: /, "")
    .split(/ \(default| \(see|[;:.] |, such as/)[0]!
    .trim();

function toBlock(text: string): HelpBlock {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => /^ {2}\S/.test(line));
  if (first !== 0) return { text: lines.map((line) => line.trim()).join(" ") };
  const items: { term: string; text: string }[] = [];
  for (const line of lines) {
    const [, term, described = ""] = /^ {2}(\S.*?)(?: {2,}(.*))?$/.exec(line) ?? [];
    const last = items.at(-1)!;
    if (term !== undefined) items.push({ term, text: described });
    else if (last.text === "" && line.trim().startsWith("[")) last.term += ` ${line.trim()}`;
    else last.text = `${last.text} ${line.trim()}`.trim();
  }
  return { items };
}

function optionsOf(call: string, text: string): HelpOption[] {
  const found = call.matchAll(/(--[a-z][a-z-]*)(?:[ =]([A-Za-z0-9+][^\s\],]*(?:,\w)?))?/g);
  return [...found].map(([, name, value]) => ({ name: name!, value, text: text === "" ? "" : shorten(text) }));
}

/** Returns one option of each name: the one that says most. */
function mergeOptions(options: readonly HelpOption[]): HelpOption[] {
  const merged = new Map<string, HelpOption>();
  for (const option of options) {
    const known = merged.get(option.name);
    merged.set(option.name, {
      name: option.name,
      value: known?.value ?? option.value,
      text: known?.text || option.text,
    });
  }
  return [...merged.values()];
}

const SYNOPSES = /^(?:Usage:|\s+)? *assay (.*)$/;

/** Reads the help text of a command. Lines such as "admin list-keys --team ID" are further calls. */
function toTopic(name: string, purpose: string, help: string): HelpTopic {
  const [head = "", ...rest] = help.split("\n\n");
  const blocks = rest.map(toBlock);
  const items = blocks.flatMap((block) => ("items" in block ? block.items : []));
  const calls = items.filter(({ term }) => term === name || term.startsWith(`${name} `));
  const listed = head.split("\n").flatMap((line) => SYNOPSES.exec(line)?.[1] ?? []);
  const synopses = calls.length > 0 ? calls.map(({ term }) => term) : listed;
  const isParent = calls.length > 0 && !name.includes(" ");
  const described = items.filter(({ term }) => term.startsWith("--"));
  const word = synopses[0]?.slice(name.length + 1).split(" ")[0];
  return {
    name,
    purpose:
      purpose || shorten(calls.find(({ text }) => text !== "")?.text ?? name.split(" ").at(-1)!.replaceAll("-", " ")),
    synopses,
    blocks,
    // A command of commands, such as admin, has no options of its own.
    options: isParent
      ? [HELP_OPTION]
      : mergeOptions([
          ...described.flatMap(({ term, text }) => optionsOf(term, text)),
          ...synopses.flatMap((call) => optionsOf(call, "")),
          HELP_OPTION,
        ]),
    words: choicesOf(word).length > 1 ? choicesOf(word) : [],
    takesFiles: synopses.some((call) => isPath(call.replaceAll(/--\S+ \S+/g, ""))),
  };
}

const purposeOf = ({ usage }: Command): string =>
  shorten(
    usage
      .split("\n")
      .filter((line) => /^ {6}\S/.test(line))
      .map((line) => line.trim())
      .join(" "),
  );

/** Returns the topic of a command that has a help text; `words` follow the command and may name one of its commands. */
export async function readTopic(name: string, command: Command, words: readonly string[] = []): Promise<HelpTopic> {
  const topic = (await command.helpTopic?.(words)) ?? name;
  return toTopic(topic, topic === name ? purposeOf(command) : "", await command.help!(words));
}

/** Returns all topics in the order of the usage text. The commands of a command, such as those of admin, follow it. */
export async function readTopics(commands: Commands): Promise<HelpTopic[]> {
  const topics: HelpTopic[] = [];
  for (const [name, command] of Object.entries(commands)) {
    const topic = await readTopic(name, command);
    topics.push(topic);
    for (const word of command.helpTopic ? wordsOf(topic) : []) topics.push(await readTopic(name, command, [word]));
  }
  return topics;
}

/** The commands of a command. */
export const wordsOf = ({ name, synopses }: HelpTopic): string[] => [
  ...new Set(synopses.flatMap((call) => call.slice(name.length + 1).split(" ")[0]!)),
];
