/** README and docs: their shell blocks run, in the order of each document, in an empty directory; their YAML and JSON is read. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readRunnerConfig } from "../../src/runner/config.ts";
import { createHarness, junit, databaseVariables } from "../harness.ts";
import { readOutput } from "../places.ts";

const ROOT = join(import.meta.dir, "../..");
const DOCUMENTS = [
  "README.md",
  ...readdirSync(join(ROOT, "docs")).flatMap((name) => (name.endsWith(".md") ? [`docs/${name}`] : [])),
];

const home = mkdtempSync(join(tmpdir(), "assay-docs-"));
const tools = join(home, "tools");
const pids = join(home, "pids");

const { acme, rival, addProject, ask, connection, url } = await createHarness({ ownDatabase: true });

type Block = { document: string; line: number; language: string; text: string };

function blocksOf(document: string): Block[] {
  const lines = readFileSync(join(ROOT, document), "utf8").split("\n");
  const blocks: Block[] = [];
  for (let index = 0; index < lines.length; index++) {
    const language = /^\s*```(.*)$/.exec(lines[index]!)?.[1];
    if (language === undefined) continue;
    const end = lines.findIndex((line, at) => at > index && /^\s*```\s*$/.test(line));
    blocks.push({ document, line: index + 1, language, text: lines.slice(index + 1, end).join("\n") });
    index = end;
  }
  return blocks;
}

/** Blocks that are not run, by a line of theirs, each with the reason. */
const NOT_RUN: Record<string, string> = {
  "bun install && bun start": "starts the server: test/full/start.test.ts does",
  "assay restore before-upgrade.assay":
    "needs an empty database: test/full/cli/backup.test.ts restores and starts a server",
  "assay doctor":
    "fails for the PostgreSQL of the tests, which does not wait for the disk; see test/cli/doctor.test.ts",
  "admin resume": "needs a server that was restored: test/full/cli/backup.test.ts resumes one",
  "stanza-create": "needs pgBackRest and a PostgreSQL of the system",
  "--target-action=promote": "needs pgBackRest and a PostgreSQL of the system",
  "bun run ok": "runs the tests, of which this is one",
  "bun tools/npm_packages.ts": "packs the npm packages: test/full/packages.test.ts does",
  "npx --no-install assay-server": "installs the npm packages: test/full/packages.test.ts does",
  "systemctl enable": "installs a service of systemd as root; test/deploy/files.test.ts checks the units",
  "bun tools/executable.ts": "builds executables for minutes; test/full/executable.test.ts builds and starts them",
  "assay start":
    "starts the server from /usr/local/bin; test/full/executable.test.ts does it in an empty root directory",
  "docker build": "needs a container engine; test/lab/container.ts builds and starts the image without one",
  "docker cp": "needs a container engine; test/lab/container.ts runs the commands inside the image",
  "docker compose": "needs Docker; test/deploy/files.test.ts checks the files",
  kubectl: "needs a cluster; test/deploy/files.test.ts and test/full/deploy/helm.test.ts check the files",
  "claude mcp add": "needs Claude Code; test/mcp/clients.test.ts connects the official clients",
  "gemini mcp add": "needs Gemini CLI; test/mcp/clients.test.ts connects the official clients",
  "vendor/bin/phpunit": "needs PHPUnit; test/cli/upload_gate.test.ts runs commands with other exit codes",
  "/verify":
    "needs a runner with a repository: test/full/operations/verifications.test.ts verifies a test case with one",
  "npx jest": "needs Jest from the network; test/full/cli/split.test.ts runs its commands",
  "go list ./...": "needs Go; test/api/plans.test.ts plans packages",
  "--timings bun": "needs a later version of Bun than the tests",
  "gh run download": "needs GitHub; test/cli/import.test.ts imports such a folder",
  "npx playwright test": "needs Playwright from the network; test/cli/split.test.ts runs its commands",
  "assay upload 'reports/**/*.xml' -- npm test": "two ways of one line: test/cli/upload_command.test.ts runs each",
};

/** Commands that the reader's machine has and that of the tests has not, or that would not end. */
const TOOLS: Record<string, string> = {
  // A refused request fails its block; a stream of a whole project does not end by itself.
  curl: `case "$*" in */events) "${Bun.which("curl")}" -sS --fail-with-body --max-time 1 "$@" || [ $? = 28 ]; exit;; esac
exec "${Bun.which("curl")}" -sS --fail-with-body --max-time 60 "$@"`,
  // A runner goes on beside the next blocks, until the tests end.
  assay: `if [ "$1" = runner ]; then "${process.execPath}" "${ROOT}/src/cli/assay.ts" "$@" > runner.log 2>&1 & echo $! >> "${pids}"; exit 0; fi
exec "${process.execPath}" "${ROOT}/src/cli/assay.ts" "$@"`,
  bun: `if [ "$1 $2" = "run assay" ]; then shift 2; exec assay "$@"; fi
exec "${process.execPath}" "$@"`,
  npm: "cp passing.xml report.xml",
};

/** What the reader has before the first block. */
const FILES: Record<string, string> = {
  "report.xml": junit("pp"),
  "passing.xml": junit("pp"),
  "cart-actual.png": "\x89PNG",
  "server.log": "Listening\n",
  "example.test.ts": `import { test } from "bun:test";\ntest("adds", () => {});\n`,
  "assay.yaml":
    "tasks:\n  unit: { command: bun test --reporter=junit --reporter-outfile=report.xml, report: report.xml }\n",
};

const write = (folder: string, files: Record<string, string>) => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
};

beforeAll(() => {
  mkdirSync(tools);
  write(tools, Object.fromEntries(Object.entries(TOOLS).map(([name, text]) => [name, `#!/bin/bash\n${text}\n`])));
  for (const name of Object.keys(TOOLS)) chmodSync(join(tools, name), 0o755);
});

afterAll(() => {
  const started = existsSync(pids) ? readFileSync(pids, "utf8").trim().split("\n").map(Number) : [];
  for (const pid of started) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
  rmSync(home, { recursive: true, force: true });
});

type Reader = Record<"project" | "key" | "environment" | "integration" | "projectKey" | "user", string>;

/** The documents' addresses and placeholders, as the reader would fill them in. */
const fillIn = (text: string, reader: Reader): string =>
  text
    .replaceAll(/https?:\/\/(?:127\.0\.0\.1:8080|assay\.example\.com)/g, url)
    .replaceAll("ASSAY_PROJECT=…", `ASSAY_PROJECT=${reader.project}`)
    .replaceAll("ASSAY_PROJECT=0192…", `ASSAY_PROJECT=${reader.project}`)
    .replaceAll("ASSAY_KEY=svc_proj_…", `ASSAY_KEY=${reader.key}`)
    .replaceAll("ASSAY_KEY=…", `ASSAY_KEY=${reader.key}`)
    .replaceAll("environments/ID/", `environments/${reader.environment}/`)
    .replaceAll('"integrationId":"ID"', `"integrationId":"${reader.integration}"`)
    .replaceAll("https://hooks.slack.com/services/…", "https://hooks.slack.com/services/T0/B0/x")
    .replaceAll(/\[(--\w+ \w+)\]/g, "$1")
    .replaceAll("add-user --email EMAIL --team ID", `add-user --email ${reader.user} --team ${rival.team}`)
    .replaceAll("--team ID", `--team ${acme.team}`)
    .replaceAll("--project ID", `--project ${reader.projectKey}`)
    .replaceAll(
      "revoke-key --id ID",
      `revoke-key --id $(assay admin list-keys --team ${acme.team} | awk '$2 == "team" { print $1; exit }')`,
    )
    .replaceAll("delete-project --id ID --confirm NAME", `delete-project --id ${reader.projectKey} --confirm other`)
    .replaceAll("--name NAME", `--name docs-${Bun.randomUUIDv7()}`)
    .replaceAll("--email EMAIL", `--email ${reader.user}`);

describe.each(DOCUMENTS)("%s", (document) => {
  const blocks = blocksOf(document);
  const shell = blocks.filter(({ language }) => ["sh", "bash", "console", "shell"].includes(language));

  test("has no block of a kind that is not tested", () => {
    // test/full/client.test.ts runs those of JavaScript.
    const known = ["sh", "js", "nginx", "caddyfile", "yaml", "json", "ini", "sql", "groovy", "text", ""];
    expect(blocks.filter(({ language }) => !known.includes(language))).toEqual([]);
  });

  test("its shell blocks run one after the other", async () => {
    const { project, key } = await addProject(acme);
    const other = await addProject(acme);
    const owner = { key: acme.teamKey };
    const make = async (path: string, body: object): Promise<string> =>
      (await ask(`POST /teams/${acme.team}/${path}`, { ...owner, body })).body.id;
    const environment = await make("environments", { slug: `docs-${Bun.randomUUIDv7()}` });
    const slack = { kind: "slack", config: { url: "https://hooks.slack.com/services/T0/B0/x" } };
    const integration = await make("integrations", slack);
    const config = { repository: "acme/shop", token: "github_pat_XXXX", workflow: "tests.yml" };
    const pipelines = await make("integrations", { kind: "github", config });
    const user = `docs-${Bun.randomUUIDv7()}@example.com`;
    const reader = { project, key, environment, integration, projectKey: other.project, user };
    const folder = mkdtempSync(join(home, "reader-"));
    write(folder, FILES);
    const run = shell.filter(({ text }) => !Object.keys(NOT_RUN).some((part) => text.includes(part)));
    const execution = `EXECUTION=$(curl -H "Authorization: Bearer $ASSAY_KEY" "$ASSAY_URL/api/v1/projects/$ASSAY_PROJECT/executions" -d '{"tasks":["unit"]}' | grep -o '"id":"[^"]*"' | head -1 | cut -d'"' -f4)`;
    const end = `curl -o /dev/null -H "Authorization: Bearer $ASSAY_KEY" -X POST "$ASSAY_URL/api/v1/projects/$ASSAY_PROJECT/executions/$EXECUTION/complete"`;
    const script = [
      "set -euo pipefail",
      // Documents other than the README take an execution from it.
      ...(["docs/events.md", "docs/gate.md"].includes(document) ? [execution, end] : []),
      ...run.map(({ line, text }) => `echo "--- line ${line}" >&2\n${fillIn(text, reader)}`),
    ].join("\n");
    const child = Bun.spawn(["bash", "-c", script], {
      cwd: folder,
      env: {
        ...{ PATH: `${tools}:${process.env["PATH"]}`, HOME: folder, GIT_CEILING_DIRECTORIES: home },
        ...databaseVariables(connection),
        ...{ ASSAY_URL: url, ASSAY_PROJECT: project, ASSAY_KEY: key },
        ...{ ASSAY_TEAM: acme.team, ASSAY_TEAM_KEY: acme.teamKey },
        ...{ INTEGRATION: pipelines, TESTS_EXIT_CODE: "0", BUILD_ID: "1", BUILD_URL: "https://ci.example.com/1" },
        COMMIT: "0123456789abcdef0123456789abcdef01234567",
      },
      stdin: new Blob(["a long password\n".repeat(4)]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const { code, output, errors } = await readOutput(child);
    const said = code === 0 ? "" : `${output.slice(-2_000)}\n${errors.slice(-2_000)}`;
    expect([code, said]).toEqual([0, ""]);
  }, 60_000);

  test("its YAML and JSON is valid, and its assay.yaml is taken by a runner", () => {
    for (const { language, line, text } of blocks) {
      if (language === "json" && !text.includes("…")) JSON.parse(text);
      if (language !== "yaml") continue;
      const content = Bun.YAML.parse(text.replaceAll(/^\s*…$/gm, "")) as Record<string, unknown>;
      if (content?.["tasks"] === undefined) continue;
      expect(readRunnerConfig(text, `${document}:${line}`).tasks).toBeDefined();
    }
  });
});

test("every reason for which a block is not run is that of a block", () => {
  const shell = DOCUMENTS.flatMap(blocksOf).filter(({ language }) => language === "sh");
  expect(Object.keys(NOT_RUN).filter((part) => !shell.some(({ text }) => text.includes(part)))).toEqual([]);
});

/** The anchor that GitHub and GitLab generate from a heading. */
const toAnchor = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-");

const textOf = (document: string) => readFileSync(join(ROOT, document), "utf8").replaceAll(/```.*?```/gs, "");

test("every relative link has a target, and its anchor is a heading of it", () => {
  const broken = [...DOCUMENTS, "CONTRIBUTING.md"].flatMap((document) =>
    [...textOf(document).matchAll(/\]\((?!https?:|mailto:)([^)\s]*)\)/g)].flatMap(([, link]) => {
      const [path, anchor] = link!.split("#") as [string, string?];
      const target = path === "" ? document : join(dirname(document), path);
      if (!existsSync(join(ROOT, target))) return [`${document}: ${link}`];
      if (anchor === undefined) return [];
      const anchors = [...textOf(target).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => toAnchor(heading!));
      return anchors.includes(anchor) ? [] : [`${document}: ${link}`];
    }),
  );
  expect(broken).toEqual([]);
});

test("the manual's table of contents lists every page", () => {
  const contents = textOf("docs/README.md");
  const pages = DOCUMENTS.filter((document) => document.startsWith("docs/") && document !== "docs/README.md");
  expect(pages.filter((page) => !contents.includes(`](${page.slice("docs/".length)})`))).toEqual([]);
});

/** `test/api/keys.test.ts`: "is shown once", "has expired", as security.md and promises.md name tests. */
function namedTests(document: string): { file: string; title: string }[] {
  const text = textOf(document).replace(/\s+/g, " ");
  return [...text.matchAll(/`(test\/[\w./]+)`((?:[:,] "[^"]+")*)/g)].flatMap(([, file, titles]) => {
    const named = [...titles!.matchAll(/"([^"]+)"/g)].map(([, title]) => ({ file: file!, title: title! }));
    return named.length > 0 ? named : [{ file: file!, title: "" }];
  });
}

describe.each(["docs/security.md", "docs/promises.md"])("the tests that %s names", (document) => {
  const named = namedTests(document);

  test("are there", () => {
    expect(named.length).toBeGreaterThan(30);
    const missing = named.filter(({ file, title }) => {
      return (
        title === "" ||
        !existsSync(join(ROOT, file)) ||
        !readFileSync(join(ROOT, file), "utf8")
          .replace(/\(\s+"/g, '("')
          .includes(`("${title}"`)
      );
    });
    expect(missing).toEqual([]);
  });

  test("are in every row of a table of statements", () => {
    let isOfStatements = false;
    const rows = textOf(document)
      .split("\n")
      .filter((line) => {
        if (!line.startsWith("|")) isOfStatements = false;
        else if (/^\| (?:statement|promise) +\| test +\|$/.test(line)) isOfStatements = true;
        else return isOfStatements && !/^\| -+ \|/.test(line);
        return false;
      });
    expect(rows.length).toBeGreaterThan(30);
    expect(rows.filter((row) => !/`test\/[\w./]+`: "/.test(row))).toEqual([]);
  });
});
