/** tools/assay-upload.sh reads the variables that the table of CI systems states, in the same order, and finds the build in them. */

import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { detectBuild } from "../../../src/cli/ci.ts";
import { CI_SYSTEM_LIST, type CiField, type CiSystemName } from "../../../src/rules/ci_systems.ts";
import { BUILDS, type BuildOfCi } from "../../cli/ci_builds.ts";
import { createShells, type Shell } from "./shells.ts";

const SCRIPT = join(import.meta.dir, "../../../tools/assay-upload.sh");
const home = mkdtempSync(join(tmpdir(), "assay-upload-systems-"));
afterAll(() => rmSync(home, { recursive: true }));

writeFileSync(join(home, "report.xml"), "<testsuites/>");
// A curl that keeps its configuration, and answers as a server that takes the upload.
writeFileSync(join(home, "curl"), `#!/bin/sh\ncat > "$RECORD"\n: > "$5"\nprintf 200\n`);
// A git that prints the file of its last argument, if there is one.
const GIT = `#!/bin/sh\nfor last; do :; done\ncat "$ANSWERS/$(printf %s "$last" | tr / _)"\n`;
writeFileSync(join(home, "git"), GIT);
for (const tool of ["curl", "git"]) chmodSync(join(home, tool), 0o755);

/** The script has no part for these. */
const NOT_IN_SCRIPT: CiSystemName[] = ["woodpecker", "bitbucket", "drone", "teamcity"];
const FORM_NAMES: Record<CiField, string> = {
  executionKey: "execution_key",
  commit: "commit",
  branch: "branch",
  pullRequest: "pull_request",
  baseBranch: "base_branch",
  baseCommit: "base_commit",
  buildUrl: "build_url",
};
const FIELDS = Object.keys(FORM_NAMES) as CiField[];

type Variables = Record<string, string>;
const namesIn = (source: string) => source.match(/(?<=\$)[A-Z_]+/g) ?? [source];
// CircleCI's value is an address that ends with a number.
const valueOf = (name: string) =>
  name === "CIRCLE_PULL_REQUEST"
    ? "https://ci.test/pull/7"
    : /URL|URI/.test(name)
      ? `https://ci.test/${name}`
      : `value-of-${name}`;
const expand = (source: string) =>
  source.includes("$") ? source.replace(/\$([A-Z_]+)/g, (_, name: string) => valueOf(name)) : valueOf(source);

const shells = createShells(home);

let runs = 0;
/** Returns the fields of the upload. */
async function upload(variables: Variables, { command, path }: Shell = shells[0]): Promise<Variables> {
  const record = join(home, `record-${++runs}`);
  const child = Bun.spawn([...command, SCRIPT, "report.xml"], {
    cwd: home,
    env: {
      PATH: `${home}:${path}`,
      TMPDIR: home,
      RECORD: record,
      ...{ ASSAY_URL: "http://assay.test", ASSAY_PROJECT: "p", ASSAY_KEY: "secret" },
      ...variables,
    },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  expect(await child.exited).toBe(0);
  const fields = readFileSync(record, "utf8").matchAll(/^form-string = "(\w+)=(.*)"$/gm);
  return Object.fromEntries([...fields].map(([, name, value]) => [name, value]));
}

const inScript = CI_SYSTEM_LIST.filter(([name]) => !NOT_IN_SCRIPT.includes(name));

test("the script has a part for each system of the table but those that it is known to leave out", () => {
  const script = readFileSync(SCRIPT, "utf8");
  const found = [...script.matchAll(/^(?:el)?if \[ -n "\$(\w+)" \]; then/gm)].map(([, variable]) => variable);
  expect(found).toEqual(inScript.map(([, { recognisedBy }]) => recognisedBy.variable));
  expect(found).toHaveLength(6);
});

test.each(inScript)("%s: the first variable of the table that is set is the one that counts", async (_, system) => {
  const { recognisedBy } = system;
  let compared = 0;
  for (const field of FIELDS) {
    const sources = system.sources[field].filter((source) => source !== "CIRCLE_PR_NUMBER");
    for (const [index, source] of sources.entries()) {
      const names = sources.slice(index).flatMap(namesIn);
      const variables = Object.fromEntries(names.map((name) => [name, valueOf(name)]));
      const sent = await upload({ [recognisedBy.variable]: "true", ...variables });
      const value = source === "CIRCLE_PULL_REQUEST" ? "7" : expand(source);
      expect([field, source, sent[FORM_NAMES[field]]]).toEqual([field, source, value]);
      const build = detectBuild(
        { [recognisedBy.variable]: "true", ...variables },
        () => undefined,
        () => undefined,
      );
      expect([field, source, build[field]]).toEqual([field, source, value]);
      compared++;
    }
  }
  expect(compared).toBeGreaterThanOrEqual(5);
});

/** What the script should send of a build; the server encodes addresses. */
const fieldsOf = ({ build: { system: _, task, ...build } }: BuildOfCi): Variables =>
  JSON.parse(
    JSON.stringify({
      ...Object.fromEntries(FIELDS.map((field) => [FORM_NAMES[field], build[field]?.replaceAll("%20", " ")])),
      ...{ task_slug: task, shard: build.shard },
      ...(build.untrusted ? { untrusted: "true" } : {}),
    }),
  );

/** The variables of a build, with what git and the event file say. */
function variablesOf({ variables, event, git = {} }: BuildOfCi, indent = 0): Variables {
  const path = join(home, `event-${++runs}.json`);
  let text = event;
  if (event !== undefined && indent > 0) text = JSON.stringify(JSON.parse(event), null, indent);
  if (text !== undefined) writeFileSync(path, text);
  const ANSWERS = mkdtempSync(join(home, "answers-"));
  for (const [name, text] of Object.entries(git)) writeFileSync(join(ANSWERS, name.replace("/", "_")), text);
  return { ...variables, GITHUB_EVENT_PATH: path, ANSWERS };
}

const inBoth = BUILDS.filter(({ build, notInScript }) => !notInScript && !NOT_IN_SCRIPT.includes(build.system!));

test.each(inBoth.map((build) => [build.name, build] as const))("%s", async (_, build) => {
  expect(await upload(variablesOf(build))).toEqual(fieldsOf(build));
});

test.each(shells.map((shell) => [shell.name, shell] as const))(
  "%s reads each event, however it is laid out",
  async (_, shell) => {
    const builds = inBoth.filter(({ event }) => event?.endsWith("}"));
    expect(builds.length).toBeGreaterThan(5);
    for (const build of builds)
      for (const indent of [0, 2])
        expect([build.name, await upload(variablesOf(build, indent), shell)]).toEqual([build.name, fieldsOf(build)]);
  },
);
