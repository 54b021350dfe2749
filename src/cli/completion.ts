/** `assay completion`: prints a script that completes commands and options in a shell. It runs no program while it completes. */

import type { Commands } from "./command_line.ts";
import { choicesOf, type HelpOption, type HelpTopic, isPath, readTopics, wordsOf } from "./help_text.ts";
import type { Invocation } from "./invocation.ts";
import { UsageError } from "./usage.ts";

export const COMPLETION_HELP = `Usage: assay completion bash|zsh|fish

Prints a script that completes commands, options and their values in a shell.

  bash   source <(assay completion bash)
  zsh    source <(assay completion zsh), after compinit
  fish   assay completion fish | source

To have it in every shell, add the line to ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish. See docs/command-line.md.`;

const SHELLS: Record<string, (topics: readonly HelpTopic[]) => string> = { bash: toBash, zsh: toZsh, fish: toFish };

/** Throws UsageError. */
export async function printCompletion(
  [shell, more]: readonly string[],
  { stdout }: Invocation,
  commands: Commands,
): Promise<void> {
  const names = Object.keys(SHELLS).join(", ");
  if (shell === undefined || more !== undefined) throw new UsageError(`Name one shell: ${names}`);
  if (!Object.hasOwn(SHELLS, shell)) throw new UsageError(`Unknown shell "${shell}": expected one of ${names}`);
  await stdout.write(SHELLS[shell]!(await readTopics(commands)));
}

/** A command whose first word is one of several commands, as in "admin list-keys". */
const hasCommands = ({ name }: HelpTopic, topics: readonly HelpTopic[]): boolean =>
  topics.some((other) => other.name.startsWith(`${name} `));

const isTop = ({ name }: HelpTopic): boolean => !name.includes(" ");

const lastWord = ({ name }: HelpTopic): string => name.split(" ").at(-1)!;

/** The words that may follow the command. */
const nextWords = (topic: HelpTopic, topics: readonly HelpTopic[]): string[] =>
  hasCommands(topic, topics) ? wordsOf(topic) : topic.words;

const parents = (topics: readonly HelpTopic[]): string =>
  topics
    .filter((topic) => hasCommands(topic, topics))
    .map(({ name }) => name)
    .join("|");

function toBash(topics: readonly HelpTopic[]): string {
  const lists = topics.map((topic) => {
    const options = topic.options.map(({ name }) => name).join(" ");
    const words = nextWords(topic, topics).join(" ");
    return `    "${topic.name}") options="${options}" words="${words}" files=${topic.takesFiles ? 1 : ""} ;;`;
  });
  const values = topics.flatMap((topic) =>
    topic.options.flatMap(({ name, value }) =>
      value === undefined
        ? []
        : [`    "${topic.name} ${name}") values="${choicesOf(value).join(" ")}" files=${isPath(value) ? 1 : ""} ;;`],
    ),
  );
  return `# Completes assay in bash 3.2 and later.
_assay() {
  COMPREPLY=()
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}"
  local topic="" words="" options="" files="" values=none word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    # The words of a command of its own: files.
    [[ $word == -- ]] && return
  done
  (( COMP_CWORD > 1 )) && topic="\${COMP_WORDS[1]}"
  case "$topic" in ${parents(topics)}) (( COMP_CWORD > 2 )) && topic="$topic \${COMP_WORDS[2]}" ;; esac
  case "$topic $previous" in
${values.join("\n")}
  esac
  if [[ $values != none ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    [[ $files ]] || compopt +o default 2> /dev/null
    return
  fi
  case "$topic" in
    "") options="--help --version" words="${topics
      .filter(isTop)
      .map(({ name }) => name)
      .join(" ")}" ;;
${lists.join("\n")}
    *) return ;;
  esac
  if [[ $current == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ ! $files ]]; then COMPREPLY=($(compgen -W "$options" -- "$current")); fi
  [[ $files ]] || compopt +o default 2> /dev/null
}
complete -o default -F _assay assay
`;
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Colons and brackets end a description. */
const escapeZsh = (text: string): string => text.replaceAll(/[[\]:\\]/g, "\\$&");

function toZshOption({ name, value, text }: HelpOption): string {
  const action = isPath(value) ? "_files" : choicesOf(value).length > 0 ? `(${choicesOf(value).join(" ")})` : " ";
  const argument = value === undefined ? "" : `:${escapeZsh(value)}:${action}`;
  return quote(`*${name}${value === undefined ? "" : "="}[${escapeZsh(text)}]${argument}`);
}

function toZsh(topics: readonly HelpTopic[]): string {
  const describe = (listed: readonly HelpTopic[]) =>
    listed.map((topic) => quote(`${escapeZsh(lastWord(topic))}:${escapeZsh(topic.purpose)}`)).join(" ");
  const below = topics.filter((topic) => hasCommands(topic, topics));
  const lists = topics.map((topic) => {
    const rest =
      topic.words.length > 0 ? `'1:word:(${topic.words.join(" ")})'` : topic.takesFiles ? "'*:file:_files'" : "";
    return `    ${quote(topic.name)}) _arguments ${[...topic.options.map(toZshOption), rest].join(" ").trim()} ;;`;
  });
  return `#compdef assay
_assay() {
  local -a names
  local topic=$words[2]
  if (( CURRENT == 2 )); then
    names=(${describe(topics.filter(isTop))} '--help:print the commands' '--version:print the version')
    _describe command names
    return
  fi
  case $topic in
${below
  .map(
    (parent) => `    ${parent.name})
      if (( CURRENT == 3 )); then
        names=(${describe(topics.filter(({ name }) => name.startsWith(`${parent.name} `)))})
        _describe command names
        return
      fi
      topic="$topic $words[3]"
      shift words
      (( CURRENT-- )) ;;`,
  )
  .join("\n")}
  esac
  shift words
  (( CURRENT-- ))
  case $topic in
${lists.join("\n")}
  esac
}
if [[ $funcstack[1] == _assay ]]; then _assay "$@"; else compdef _assay assay; fi
`;
}

function toFish(topics: readonly HelpTopic[]): string {
  const lines = topics.flatMap((topic) => {
    const when = quote(`__assay_topic ${topic.name}`);
    const options = topic.options.map(({ name, value, text }) => {
      const choices = choicesOf(value);
      const argument =
        value === undefined
          ? ""
          : isPath(value)
            ? " -r -F"
            : choices.length > 0
              ? ` -x -a '${choices.join(" ")}'`
              : " -x";
      return `complete -c assay -n ${when} -l ${name.slice(2)}${argument} -d ${quote(text)}`;
    });
    const parent = topic.name.slice(0, -lastWord(topic).length).trim();
    return [
      `complete -c assay -n ${quote(`__assay_topic ${parent}`.trim())} -a ${lastWord(topic)} -d ${quote(topic.purpose)}`,
      ...topic.words.map((word) => `complete -c assay -n ${when} -a ${word}`),
      ...(topic.takesFiles ? [`complete -c assay -n ${when} -F`] : []),
      ...options,
    ];
  });
  return `# Whether these words are the command so far.
function __assay_topic
    set -l given (commandline -opc)[2..]
    set -l count 1
    contains -- "$given[1]" ${parents(topics).split("|").join(" ")}; and set count 2
    test "$given[1..$count]" = "$argv"
end
complete -c assay -e
complete -c assay -f
complete -c assay -n __assay_topic -l help -d 'print the commands'
complete -c assay -n __assay_topic -l version -d 'print the version'
${lines.join("\n")}
`;
}
