/** What the command line says of itself. */

import { expect, test } from "bun:test";
import packageJson from "../../package.json" with { type: "json" };
import { run } from "../commands.ts";
import { createReceiver } from "../receiver.ts";

test("--version and -V print the version of package.json", async () => {
  for (const word of ["--version", "-V"])
    expect(await run([word])).toEqual({ code: 0, output: `${packageJson.version}\n`, errors: "" });
});

test("start refuses options and arguments, which it would ignore", async () => {
  for (const words of [["--port", "9"], ["extra"]]) {
    const { code, errors } = await run(["start", ...words]);
    expect([code, errors]).toEqual([2, expect.stringContaining(`Unknown option: ${words[0]}.`)]);
  }
});

test("the usage names all commands, and a wrong command line where its help is", async () => {
  const help = await run(["--help"]);
  expect([help.code, help.errors]).toEqual([0, ""]);
  for (const command of ["start", "health", "doctor", "upload", "import", "split", "runner", "why", "bisect", "export"])
    expect(help.output).toContain(`\n  ${command}`);
  for (const command of ["backup FILE", "restore FILE", "admin COMMAND [options]"])
    expect(help.output).toContain(`\n  ${command}`);
  expect(await run([])).toEqual({ code: 2, output: "", errors: 'Missing command\nRun "assay --help" for usage\n' });
  expect(await run(["no-such"])).toMatchObject({
    code: 2,
    errors: expect.stringContaining("Unknown command: no-such"),
  });
  const wrong = await run(["admin", "list-keys", "--no-such"]);
  expect([wrong.code, wrong.errors]).toEqual([
    2,
    expect.stringContaining('Run "assay admin list-keys --help" for usage'),
  ]);
});

test("what commands print and say holds no secret that a server repeats, and no command to the terminal", async () => {
  const secrets = ["svc_proj_of_this_build", "the password"];
  const message = `\u001b[2J ${secrets.join(" ")}`;
  const server = createReceiver({ status: 400, body: { error: { message } } });
  const env = {
    ASSAY_URL: server.url.replace("//", `//user:${encodeURIComponent(secrets[1]!)}@`),
    ...{ ASSAY_PROJECT: "p", ASSAY_KEY: secrets[0]! },
  };
  expect(await run(["why"], { env })).toEqual({ code: 3, output: "", errors: " [2J *** ***\n" });
  const json = await run(["why", "--json"], { env });
  expect([json.code, JSON.parse(json.output), json.errors]).toEqual([3, { error: { message: " [2J *** ***" } }, ""]);
});

test("a misspelt command or option is answered with the one that is most similar, and one that resembles none is not", async () => {
  const answers: Record<string, string> = {
    uplaod: "Unknown command: uplaod; did you mean upload?",
    "admin list-key": "Unknown command: admin list-key; did you mean list-keys?",
    "upload --brnach main": "Unknown option '--brnach'; did you mean --branch?",
    "why --exec 1": "Unknown option '--exec'; did you mean --execution?",
    "admin list-keys --taem 1": "Unknown option '--taem'; did you mean --team?",
    "admin list-keys --other 1": "Unknown option '--other'",
    toString: "Unknown command: toString",
  };
  for (const [words, message] of Object.entries(answers)) {
    const { code, errors } = await run(words.split(" "));
    expect([code, errors.split("\n")[0]]).toEqual([2, message]);
  }
});

/** Options by command, from the script for fish. */
async function listOptions(): Promise<[command: string, option: string][]> {
  const { output } = await run(["completion", "fish"]);
  return [...output.matchAll(/-n '__assay_topic ([^']+)' -l (\S+)/g)].map(([, command, option]) => [
    command!,
    `--${option}`,
  ]);
}

test("each command takes the options that its help lists, and only those that report nothing have no --json", async () => {
  const options = await listOptions();
  expect(options.length).toBeGreaterThan(100);
  for (const [command, option] of options.filter(([, option]) => option !== "--help")) {
    // The option after it is refused first, unless the command knows this one.
    const [flag, text] = await Promise.all(
      [option, `${option}=1`].map((word) => run([...command.split(" "), word, "--no-such"])),
    );
    expect([command, option, flag!.errors + text!.errors]).toEqual([
      ...[command, option],
      expect.stringContaining("Unknown option '--no-such'"),
    ]);
  }
  const commands = [...new Set(options.map(([command]) => command))];
  const withoutJson = commands.filter((command) => !options.some((pair) => pair.join(" ") === `${command} --json`));
  expect(withoutJson).toEqual(["start", "runner", "admin", "completion", "man", "licenses"]);
});
