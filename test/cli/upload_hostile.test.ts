/** `assay upload` against servers that mean no good, and with tests that are named after the key that it is given. */

import { describe, expect, test } from "bun:test";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ask as askServer } from "../../src/cli/client.ts";
import { createFolder, run, type Variables, variablesOf } from "../commands.ts";
import { createHarness, junit } from "../harness.ts";
import { createReceiver } from "../receiver.ts";

const { ask, acme, addProject, url } = await createHarness();
type Project = Awaited<ReturnType<typeof addProject>>;
type Run = { folder?: string; variables?: Variables };

const upload = (
  of: Project,
  args: string[],
  { folder = createFolder({ "r.xml": junit("pf") }), variables }: Run = {},
) => run(["upload", ...args], { cwd: folder, env: { ...variablesOf(url, of), ...variables } });

const project = await addProject(acme);
/** An answer as the server gives it, for a receiver to give. */
const SAMPLE = (await ask(`POST /projects/${project.project}/test-runs`, { key: project.key, body: junit("pf") })).body;

const GITHUB = { GITHUB_ACTIONS: "true", GITHUB_RUN_ID: "1" };

/** What a browser, GitHub's runner, TeamCity, Azure or a program that reads JSON would make of a text. */
const decodings = (text: string): string[] => [
  text,
  text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code))),
  text.replace(/&(amp|lt|gt|quot);/g, (_, name: string) => ({ amp: "&", lt: "<", gt: ">", quot: '"' })[name]!),
  text.replace(/%([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16))),
  text.replaceAll("%AZP25", "%"),
  text.replace(
    /\|(?:0x([0-9a-f]{4})|(.))/g,
    (_, code, plain) => plain ?? String.fromCharCode(Number.parseInt(code, 16)),
  ),
  text.replace(/\\u([0-9a-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16))),
  text.replace(/\\(.)/g, "$1"),
];

describe("the key", () => {
  // A key is a password that whoever runs the server may choose otherwise some day.
  const keys = ["svc_proj_A-b_c.d~9", `k'e|y[%41]<&>"\\/ü::#1`];

  test.each(keys)("is in nothing that is printed or written, however it is escaped there: %s", async (key) => {
    const names = [
      `x ${key} y`,
      // The names are cut at 300 characters in a summary, and messages at 2,000 in an annotation: within the key.
      `${"n".repeat(290)}${key}`,
    ];
    const file = `src/${key}.test.ts`;
    const failing = { taskSlug: `t ${key}`, file, line: 1, blame: "new", reason: null };
    const causes = [`m ${key}`, `${"m".repeat(1_990)}${key}`, `${"m".repeat(3_990)}${key}`].map((message, at) => ({
      message,
      failures: names.map((name) => ({ ...failing, suite: at === 0 ? key : "s", name })),
    }));
    const newFailures = names.map((name) => ({ suite: key, name, file, testCaseId: "x", taskSlug: "t" }));
    const failed = { taskSlug: `t ${key}`, failed: 2, verdict: "failed", newFailures, warnings: [`w ${key}`] };
    const answer = { ...SAMPLE, ...failed };
    const systems: Record<string, string>[] = [{ ...GITHUB }, { TEAMCITY_VERSION: "2025.03" }, { TF_BUILD: "True" }];
    for (const system of [...systems, { GITLAB_CI: "true" }, { BUILDKITE: "true" }])
      for (const options of [[], ["--json"]]) {
        const receiver = createReceiver({ status: 201, body: answer }, { status: 200, body: { causes } });
        const folder = createFolder({
          "r.xml": junit("pf"),
          "buildkite-agent": `#!/bin/sh\necho "$@" > args; cat > text`,
          ...{ "summary.md": "", args: "", text: "" },
        });
        chmodSync(join(folder, "buildkite-agent"), 0o755);
        const variables = {
          ...system,
          PATH: `${folder}:${process.env["PATH"]}`,
          GITHUB_STEP_SUMMARY: join(folder, "summary.md"),
          ASSAY_URL: receiver.url,
          // The receiver takes any key, and HTTP no characters beyond Latin-1.
          ASSAY_KEY: key,
        };
        const args = ["r.xml", `no ${key}.xml`, ...options];
        const { code, output, errors } = await upload(project, args, { folder, variables });
        expect([code, output.includes("***")]).toEqual([0, true]);
        const written = ["summary.md", "args", "text"].map((name) => readFileSync(join(folder, name), "utf8"));
        expect(written[0]).toContain("***");
        if (system["BUILDKITE"]) expect(written[2]).toContain("&#42;&#42;&#42;");
        for (const text of [output, errors, ...written].flatMap(decodings)) {
          expect(text).not.toContain(key);
          // Nor all but its end.
          expect(text).not.toContain(key.slice(0, 8));
        }
        if (options.length > 0) expect(JSON.parse(output.split("\n")[0]!).taskSlug).toBe("t ***");
      }
  });

  test("is not told by a server that echoes it", async () => {
    const echo = createReceiver(({ headers }) => ({
      status: 400,
      body: { error: { message: `No: ${headers["authorization"]} ${btoa(headers["authorization"]!.slice(7))}` } },
    }));
    const { code, output, errors } = await upload(project, ["r.xml", "--json"], { variables: { ASSAY_URL: echo.url } });
    expect([code, JSON.parse(output)]).toEqual([0, { error: { message: "No: Bearer *** ***" } }]);
    expect(errors).toBe("assay: Results were not uploaded: No: Bearer *** ***\n");
    const github = await upload(project, ["r.xml"], { variables: { ASSAY_URL: echo.url, GITHUB_ACTIONS: "true" } });
    expect(github.output).toBe("::warning title=Assay::Results were not uploaded: No: Bearer *** ***\n");
  });

  test("does not follow a redirect, nor go to where an answer leads", async () => {
    const target = createReceiver({ status: 200, body: SAMPLE });
    for (const status of [301, 302, 303, 307, 308]) {
      const moved = createReceiver({ status, headers: { Location: `${target.url}/x?##vso[a]` } });
      const { code, errors } = await upload(project, ["r.xml", "--strict"], { variables: { ASSAY_URL: moved.url } });
      expect([code, errors]).toEqual([1, expect.stringContaining(`a redirect to ${target.url}/x?# #vso[a]`)]);
    }
    const redirected = { status: 302, headers: { Location: target.url } };
    const later = createReceiver({ status: 201, body: { ...SAMPLE, failed: 1 } }, redirected);
    expect((await upload(project, ["r.xml"], { variables: { ...GITHUB, ASSAY_URL: later.url } })).code).toBe(0);
    expect([later.requests.length, target.requests]).toEqual([2, []]);
  });
});

describe("an answer", () => {
  const refuses = async (body: string | (() => Response), variables: Record<string, string> = {}) => {
    let requests = 0;
    const server = Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1", development: false },
      async fetch(request) {
        requests++;
        await request.arrayBuffer();
        return typeof body === "function" ? body() : new Response(body, { status: 201 });
      },
    });
    try {
      const ASSAY_URL = `http://127.0.0.1:${server.port}`;
      const args = ["r.xml", "--strict", "--", "sh", "-c", `touch r.xml; printf '%s' "$XML" > r.xml; exit 0`];
      const ended = await upload(project, args, { variables: { XML: junit("p"), ...variables, ASSAY_URL } });
      return { ...ended, requests, address: ASSAY_URL };
    } finally {
      await server.stop(true);
    }
  };

  test("is read up to 1 MiB, also where it never ends or is packed, and is not asked for again", async () => {
    const mebibyte = new Uint8Array(2 ** 20).fill(32);
    let sent = 0;
    const endless = () =>
      new Response(new ReadableStream({ pull: (to) => void (to.enqueue(mebibyte), sent++) }), { status: 201 });
    const { code, errors, requests, address } = await refuses(endless);
    const message = `Cannot read ${address}: the answer has more than 1 MiB`;
    expect([code, errors, requests]).toEqual([1, `assay: Results were not uploaded: ${message}\n`, 1]);
    expect(sent).toBeLessThan(64);
    const bomb = Bun.gzipSync(new Uint8Array(64 * 2 ** 20).fill(32));
    const packed = () => new Response(bomb, { status: 201, headers: { "Content-Encoding": "gzip" } });
    expect((await refuses(packed)).errors).toContain("is not an Assay server");
  });

  test("that is nested deeply, or of other shapes, is no success and no crash", async () => {
    const deep = "[".repeat(200_000) + "]".repeat(200_000);
    for (const body of [
      JSON.stringify({ ...SAMPLE, flakyFailures: "@" }).replace('"@"', deep),
      deep,
      JSON.stringify({ ...SAMPLE, verdict: "\n::stop-commands::x" }),
      JSON.stringify({ ...SAMPLE, status: "##vso[task.complete]" }),
      "null",
      "",
    ]) {
      const { code, errors } = await refuses(body);
      const refused = /^assay: Results were not uploaded: .*is not an Assay/;
      expect([code, errors]).toEqual([1, expect.stringMatching(refused)]);
    }
  });

  test("begins no command of a CI system, and tells a terminal nothing", async () => {
    const words =
      "##vso[task.complete] ##[error]x ##teamcity[x] \r\n::stop-commands::x\u001b[2J\u009b2Jsection_start:1:a\r\u001b[0K";
    const newFailures = [{ suite: words, name: words, file: words }];
    const body = JSON.stringify({ ...SAMPLE, taskSlug: words, warnings: [words], newFailures });
    for (const variables of [{}, GITHUB, { TF_BUILD: "True" }, { TEAMCITY_VERSION: "1" }, { GITLAB_CI: "true" }]) {
      const send = (...args: string[]) => {
        const { url: ASSAY_URL } = createReceiver({ status: 201, body }, { status: 500 });
        return upload(project, ["r.xml", ...args], { variables: { ...variables, ASSAY_URL } });
      };
      const [plain, json] = [await send(), await send("--json")];
      expect([plain.code, json.code]).toEqual([0, 0]);
      const [line] = json.output.split("\n");
      expect(JSON.parse(line!)).toMatchObject({ taskSlug: words, warnings: [words] });
      // The CLI's own commands are those at the start of a line.
      const own = /^\s*(?:::(?!error (?:file|title)=)|##(?!vso\[task\.logissue|teamcity\[buildStatus))/;
      for (const text of [plain.output, plain.errors, json.output, json.errors])
        for (const printed of text.split("\n")) {
          expect(printed).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
          expect(printed.slice(1)).not.toMatch(/##\w*\[/);
          expect(printed).not.toMatch(own);
        }
    }
  });
});

describe("the address of the run", () => {
  const told = async (answered: string, base = "", variables: Record<string, string> = {}) => {
    const receiver = createReceiver({ status: 201, body: { ...SAMPLE, url: answered } });
    const own = { ASSAY_URL: `${receiver.url}${base}`, ...variables };
    const { output, errors } = await upload(project, ["r.xml", "--json"], { variables: own });
    return { shown: (JSON.parse(output) as { url: string }).url.replace(receiver.url, "OWN"), errors };
  };
  const page = `/projects/${project.project}/executions/${SAMPLE.executionId}`;

  test.each([
    ...["https://evil.test/projects/x", "javascript:alert(1)", "data:text/html,x", "//evil.test"],
    ...["http://127.0.0.1:1@evil.test/", "file:///etc/passwd", ""],
  ])("is at ASSAY_URL, whatever an answer says: %j", async (answered) => {
    expect((await told(answered)).shown).toBe(`OWN${page}`);
    expect((await told(answered, "/assay/")).shown).toBe(`OWN/assay${page}`);
  });

  test("may be at ASSAY_PUBLIC_URL, which a note asks for where people reach the server elsewhere", async () => {
    const outside = `https://assay.example.com${page}`;
    const note = `The public address of the server is "https://assay.example.com", not ASSAY_URL`;
    expect((await told(outside)).errors).toContain(note);
    const named = await told(outside, "", { ASSAY_PUBLIC_URL: "https://assay.example.com/" });
    expect(named).toEqual({ shown: outside, errors: "" });
  });

  test("of the server itself is the one that it says", async () => {
    const { output, errors } = await upload(project, ["r.xml", "--json"]);
    const answer = JSON.parse(output);
    expect([answer.url, errors]).toEqual([`${url}/projects/${project.project}/executions/${answer.executionId}`, ""]);
  });
});

test("an answer that drips is given up after the time for one try", async () => {
  const server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1", development: false },
    fetch: () => new Response(new ReadableStream({ start: (to) => to.enqueue(new Uint8Array([32])) })),
  });
  try {
    const address = { url: `http://127.0.0.1:${server.port}`, project: "p", key: "k" };
    await expect(askServer(address, { path: "/x", timeoutMs: 50 })).rejects.toThrow("no answer within 0.05 s");
  } finally {
    await server.stop(true);
  }
});
