/** Inserts the words that select tests into the command of a task. */

import { scanShell, type Word } from "./shell.ts";
import { type Preset, PRESETS, cannot } from "./rerun_cases.ts";
import { type TestTool, TEST_TOOLS } from "./rerun_tools.ts";

/** Programs that may come before the name of a tool, as in `npx jest`. Any other program may parse the words again, as ssh does. */
const WRAPPERS =
  /^(?:npx|bunx|pnpx|npm|pnpm|yarn|bun|deno|node|env|time|nice|exec|command|timeout|stdbuf|xvfb-run|cross-env|dotenv|dotenvx|bundle|poetry|uv|uvx|pipenv|pdm|hatch|rye|python[\d.]*|coverage|docker|docker-compose|podman|kubectl|php)$/;
const KEYWORDS = /^(?:if|then|elif|else|while|until|do|!|\{)$/;
const INSTALLS = /^(?:i|ci|install|add|remove|uninstall|update|upgrade|build|pull|info|view)$/;
/** Options of npm, pnpm and Yarn that run a script in another folder. */
const ELSEWHERE = /^(?:-w|--workspaces?|--workspace=.*|--prefix(?:=.*)?|-C|--dir|--cwd|--filter|-F|-r|--recursive)$/;
const ASSIGNMENT = /^[A-Za-z_]\w*=/;

const nameOf = (word: Word | undefined) => word?.text?.replace(/^.*\//, "").replace(/\.(?:[cm]?js|cmd|exe)$/, "") ?? "";

/**
 * Returns a function that inserts the words of a preset into the command of a task. `keepsPaths`: the paths and packages of the command
 * stay. Fails if this is impossible.
 */
export function toInsertion(preset: Preset, command: string, keepsPaths = false): (args: string) => string {
  const tool = TEST_TOOLS[preset];
  const { commands: all, problem } = scanShell(command);
  const commands = all.map(withoutPrefix).filter(({ length }) => length > 0);
  if (problem !== null) cannot(`the command of the task cannot be understood: ${problem}`);
  if (commands.some(([first]) => /^(?:cd|pushd)$/.test(first?.text ?? "")))
    cannot('the command of the task goes to another folder, which "workingDirectory" can say instead');
  const found = commands.flatMap((words) => {
    const after = findTool(words, tool);
    return after === undefined ? [] : [{ words, after }];
  });
  if (found.length > 1) cannot(`the command of the task runs ${preset} more than once; a template in "rerun" can tell`);
  const [only] = found;
  const script = only ? undefined : findScript(commands);
  if (!only && (!script || tool.strip || preset === "maven"))
    return cannot(`the command of the task does not run ${preset} itself; a template with {${preset}} in "rerun" can`);
  const { words, after } = only ?? script!;
  const conflict = words.slice(after).find(({ text }) => text !== null && tool.conflict.test(text));
  if (conflict) cannot(`the command of the task has its own ${conflict.text}; a template in "rerun" can do without it`);

  const isScript = only === undefined;
  const elsewhere = isScript && words.find(({ text }) => ELSEWHERE.test(text ?? ""));
  if (elsewhere) cannot(`the command of the task runs in another folder by ${elsewhere.text}`);
  const rest = words.slice(after);
  const split = rest.findIndex(({ text }) => text === "--" || (preset === "go" && /^--?args$/.test(text ?? "")));
  // gotestsum and npm pass on what follows "--"; other tools end their options there.
  const isHandedOn = nameOf(words[after - 1]) === "gotestsum" || (isScript && nameOf(words[0]) === "npm");
  const own = isHandedOn ? (split === -1 ? [] : rest.slice(split + 1)) : split === -1 ? rest : rest.slice(0, split);
  const stripped = tool.strip && !keepsPaths ? tool.strip(own) : [];
  const dashes = isHandedOn && split === -1 ? " --" : "";
  // Inserted before the options of the command, because the last one may need a value; "go -C" must be the first.
  const last = preset === "go" ? own.at(-1) : undefined;
  const before = last ?? (isHandedOn ? rest[split === -1 ? rest.length - 1 : split] : undefined) ?? words[after - 1]!;
  return (args) => {
    const edits = [
      { start: before.end, end: before.end, text: `${dashes} ${args}` },
      ...stripped.map(({ start, end }) => ({ start: startOfGap(command, start), end, text: "" })),
    ];
    // Edits from the end, so that offsets stay valid; an insertion comes after a removed word.
    let text = command;
    for (const edit of edits.sort((a, b) => b.end - a.end || b.start - a.start))
      text = text.slice(0, edit.start) + edit.text + text.slice(edit.end);
    return text;
  };
}

/**
 * Returns the preset of the tool that a command runs, itself or by a script of package.json; undefined: none is known, or it runs several.
 */
export function findPreset(command: string, scripts: Readonly<Record<string, unknown>>): Preset | undefined {
  const commands = scanShell(command)
    .commands.map(withoutPrefix)
    .filter(({ length }) => length > 0);
  const found = PRESETS.filter((preset) => commands.some((words) => findTool(words, TEST_TOOLS[preset]) !== undefined));
  if (found.length > 0) return found.length === 1 ? found[0] : undefined;
  const script = scripts[findScript(commands)?.script ?? ""];
  return typeof script === "string" ? findPreset(script, {}) : undefined;
}

const startOfGap = (text: string, end: number): number => text.slice(0, end).trimEnd().length;

/** Removes the words that may precede any command. */
function withoutPrefix(words: Word[]): Word[] {
  const first = words.findIndex(({ text }) => text === null || !(ASSIGNMENT.test(text) || KEYWORDS.test(text)));
  return first === -1 ? [] : words.slice(first);
}

/** The index of the first word after the tool and its verb. */
function findTool(words: Word[], { name, verb, flag, mode }: TestTool): number | undefined {
  if (flag !== undefined && !words.some(({ text }) => text === flag)) return undefined;
  for (const [at, word] of words.entries()) {
    const called = nameOf(word);
    if (name.test(called)) {
      if (verb === undefined || called === "gotestsum") return mode?.test(words[at + 1]?.text ?? "") ? at + 2 : at + 1;
      const next = words.findIndex(({ text }, index) => index > at && !text?.startsWith("-"));
      if (words[next]?.text === verb) return next + 1;
    }
    // npm takes options as its own unless they follow "--".
    const isNpm = nameOf(words[0]) === "npm" && !words.slice(0, at + 1).some(({ text }) => text === "--");
    if (at === 0 ? !WRAPPERS.test(called) : INSTALLS.test(called)) return undefined;
    if (isNpm && name.test(nameOf(words[at + 1]))) return undefined;
  }
  return undefined;
}

/** Finds a script of package.json: "npm test", "yarn e2e". If there are several, the one named like a test. */
function findScript(commands: Word[][]): { words: Word[]; after: number; script: string } | undefined {
  const scripts = commands.flatMap((words) => {
    const [manager, verb, name] = words.map(({ text }) => text ?? "");
    if (!/^(?:npm|pnpm|yarn|bun)$/.test(manager ?? "")) return [];
    const isRun = /^(?:run|run-script)$/.test(verb ?? "");
    const script = (isRun ? name : verb) ?? "";
    if (script === "" || script.startsWith("-") || INSTALLS.test(script)) return [];
    // Only these two take a script without "run".
    if (!isRun && !(manager === "yarn" || manager === "pnpm" || /^(?:test|t|tst)$/.test(script))) return [];
    return [{ words, after: isRun ? 3 : 2, script }];
  });
  const tests = scripts.length > 1 ? scripts.filter(({ script }) => /test|spec|e2e/i.test(script)) : scripts;
  return tests.length === 1 ? tests[0] : undefined;
}
