/** Uploads of `assay upload` that fail: exit codes, further attempts, and what is said. */

import { describe, expect, spyOn, test } from "bun:test";
import { type Reports, sendReports } from "../../src/cli/upload_request.ts";
import { createFolder } from "../commands.ts";
import { createHarness, junit } from "../harness.ts";
import { createReceiver, createResettingReceiver } from "../receiver.ts";
import { createUploads, SOON, type UploadOptions } from "../uploads.ts";

const harness = await createHarness();
const { ask, acme, addProject, regenerate, url } = harness;
const { upload, list, project } = await createUploads(harness);

type Project = Awaited<ReturnType<typeof addProject>>;

describe("an upload that fails breaks no build, unless it is to", () => {
  const folder = createFolder({ "r.xml": junit("p"), "bad.xml": "<html/>" });
  const variants = [[], ["--strict"]];
  /** Exit codes without and with --strict, and what is said. */
  async function both(args: string[], run: UploadOptions = {}, of: Project = project) {
    const ends = await Promise.all(variants.map((more) => upload(of, [...args, ...more], { folder, ...run })));
    expect(ends.map(({ output }) => output)).toEqual(["", ""]);
    expect(ends[1]!.errors).toBe(ends[0]!.errors);
    return { codes: ends.map(({ code }) => code), errors: ends[0]!.errors };
  }

  test("a report that cannot be read", async () => {
    expect(await both(["bad.xml"])).toEqual({
      codes: [0, 1],
      errors: `assay: Results were not uploaded: Cannot read "bad.xml": it is an HTML page, not a test report\n`,
    });
  });

  test("a parameter that cannot be", async () => {
    const { codes, errors } = await both(["r.xml", "--branch", "b".repeat(2_000)]);
    expect([codes, errors]).toEqual([[0, 1], expect.stringContaining('Cannot read "branch"')]);
  });

  test("files and globs that are nothing, each by its name", async () => {
    expect(await both(["no.xml", "no/*.xml"])).toEqual({
      codes: [0, 1],
      errors:
        `assay: File not found: "no.xml"\nassay: No file matches "no/*.xml"\n` +
        `assay: Results were not uploaded: No report found\n`,
    });
    // The files that exist are sent all the same, and a named file that is missing stands for tests that did not run.
    const project = await addProject(acme);
    const { code, output, errors } = await upload(project, ["r.xml", "no.xml", "--strict"], { folder });
    expect([code, output, errors]).toEqual([
      1,
      expect.stringMatching(/^FAILED unit: no report: File not found: "no.xml"; 1 passed, 1 failed /),
      `assay: File not found: "no.xml"\nassay: The missing report is recorded as a failure\n`,
    ]);
    const part = await upload(project, ["r.xml", "no/*.xml"], { folder });
    expect([part.code, part.output]).toEqual([0, expect.stringMatching(/^PASSED /)]);
  });

  test("a key that is no longer valid, and a project that is not there", async () => {
    const old = await addProject(acme);
    await regenerate({ ...acme, project: old.project });
    const { codes, errors } = await both(["r.xml"], {}, old);
    expect([codes, errors]).toEqual([[0, 1], expect.stringContaining("(ASSAY_KEY)\n")]);
    const wrong = await both(["r.xml"], { variables: { ASSAY_PROJECT: crypto.randomUUID() } });
    expect([wrong.codes, wrong.errors]).toEqual([[0, 1], expect.stringContaining("(ASSAY_URL and ASSAY_PROJECT)")]);
  });

  test("a server that is away, or resets every connection", async () => {
    const away = await both(["r.xml", ...SOON], { variables: { ASSAY_URL: "http://127.0.0.1:1" } });
    expect([away.codes, away.errors]).toEqual([
      [0, 3],
      expect.stringContaining("Cannot reach http://127.0.0.1:1: the connection was refused\n"),
    ]);
    const resetting = await createResettingReceiver();
    expect(
      (await upload(project, ["r.xml", "--strict", ...SOON], { folder, variables: { ASSAY_URL: resetting.url } })).code,
    ).toBe(3);
    expect(resetting.count()).toBe(3);
  });

  test("a server that is broken is asked three times, and one that asks for patience beyond that is left", async () => {
    const broken = createReceiver({ status: 500, body: { error: { code: "INTERNAL_ERROR", message: "Broken" } } });
    const { code, errors } = await upload(project, ["r.xml", "--strict", ...SOON], {
      folder,
      variables: { ASSAY_URL: broken.url },
    });
    expect([code, errors]).toEqual([3, "assay: Results were not uploaded: Broken\n"]);
    expect(new Set(broken.requests.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(broken.requests).toHaveLength(3);
    const busy = createReceiver({ status: 429, headers: { "Retry-After": "121" } });
    expect((await upload(project, ["r.xml"], { folder, variables: { ASSAY_URL: busy.url } })).code).toBe(0);
    expect(busy.requests).toHaveLength(1);
    const once = ["r.xml", "--patience", "0"];
    expect((await upload(project, once, { folder, variables: { ASSAY_URL: broken.url } })).code).toBe(0);
    expect(broken.requests).toHaveLength(4);
  });

  test("a server that asks for two seconds is asked again for as long as the fail-over of a database takes", async () => {
    const sleep = spyOn(Bun, "sleep").mockResolvedValue(undefined);
    const random = spyOn(Math, "random").mockReturnValue(0);
    const away = createReceiver({ status: 500, headers: { "Retry-After": "2" } });
    try {
      const sent = await sendReports({ ...project, url: away.url }, [], {}, { patienceMs: 120_000 });
      expect(sent.end).toBe("away");
      const waits = sleep.mock.calls.map(([ms]) => ms as number);
      expect(waits.slice(0, 4)).toEqual([2_000, 3_000, 4_500, 6_750]);
      // As long as without Retry-After: 16 s and 40 s.
      expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeCloseTo(56_000, 3);
      expect(away.requests).toHaveLength(waits.length + 1);
    } finally {
      sleep.mockRestore();
      random.mockRestore();
    }
  });

  test("a server that is started again has some seconds for it, and then some more", async () => {
    const sleep = spyOn(Bun, "sleep").mockResolvedValue(undefined);
    const random = spyOn(Math, "random").mockReturnValue(0.5);
    try {
      const address = { ...project, url: "http://127.0.0.1:1" };
      expect((await sendReports(address, [], {}, { patienceMs: 30_000 })).end).toBe("away");
      const waits = sleep.mock.calls.map(([ms]) => Math.round(ms as number));
      expect(waits).toEqual([4_000, 10_000]);
    } finally {
      sleep.mockRestore();
      random.mockRestore();
    }
  });

  test("what is no server of this kind", async () => {
    const page = createReceiver({ status: 200, body: "<html>Welcome</html>" });
    const { codes, errors } = await both(["r.xml"], { variables: { ASSAY_URL: page.url } });
    expect([codes, errors]).toEqual([[0, 1], expect.stringContaining("check ASSAY_URL")]);
  });

  test("a fork's build has no key", async () => {
    const variables = { ASSAY_KEY: "", GITLAB_CI: "true" };
    const { codes, errors } = await both(["r.xml"], { variables });
    expect([codes, errors]).toEqual([[0, 3], expect.stringContaining("Set ASSAY_KEY (the pull request of a fork")]);
  });

  test("no password of an address is told", async () => {
    const variables = { ASSAY_URL: "http://operator:hunter22@127.0.0.1:1" };
    const { errors } = await upload(project, ["r.xml", ...SOON], { folder, variables });
    expect(errors).toContain("Cannot reach http://***@127.0.0.1:1");
  });
});

test("uploads at once beyond the rate limit all arrive, each once, in the next windows", async () => {
  const real = await addProject(acme);
  const PER_WINDOW = 8;
  const windows = new Map<number, number>();
  const front = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1", development: false },
    async fetch(request) {
      const window = Math.floor(Date.now() / 1_000);
      const made = (windows.get(window) ?? 0) + 1;
      windows.set(window, made);
      if (made > PER_WINDOW) return new Response("", { status: 429, headers: { "Retry-After": "1" } });
      const { pathname, search } = new URL(request.url);
      return await fetch(`${url}${pathname}${search}`, {
        method: "POST",
        headers: request.headers,
        body: await request.bytes(),
      });
    },
  });
  try {
    const address = { ...real, url: `http://127.0.0.1:${front.port}` };
    const reports: Reports = [{ name: "r.xml", bytes: new TextEncoder().encode(junit("p")) }];
    const sent = await Promise.all(
      Array.from({ length: 12 }, (_, at) =>
        sendReports(address, reports, { task_slug: `t${at}`, execution_key: "1" }, { patienceMs: 30_000 }),
      ),
    );
    expect(sent.map(({ end }) => end)).toEqual(sent.map(() => "uploaded"));
  } finally {
    await front.stop(true);
  }
  const { body } = await ask(`GET /projects/${real.project}/executions`, { key: real.key });
  expect(body.data.map(({ tasks }: { tasks: unknown[] }) => tasks.length)).toEqual([12]);
});

test("a server that asks for patience gets the same upload again, under the same key: it is one run", async () => {
  const real = await addProject(acme);
  const seen: string[] = [];
  // A server in front of the server, which is too busy at first, and then loses an answer on its way.
  const front = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    async fetch(request) {
      seen.push(request.headers.get("idempotency-key")!);
      if (seen.length === 1) return new Response("", { status: 429, headers: { "Retry-After": "0" } });
      const { pathname } = new URL(request.url);
      const answer = await fetch(`${url}${pathname}`, {
        method: request.method,
        headers: request.headers,
        body: await request.bytes(),
      });
      if (seen.length === 2) return new Response("", { status: 502, headers: { "Retry-After": "0" } });
      return new Response(await answer.text(), { status: answer.status, headers: { "X-Seen": "1" } });
    },
  });
  try {
    const variables = { ASSAY_URL: `http://127.0.0.1:${front.port}` };
    const { code, output } = await upload(real, ["r.xml"], {
      folder: createFolder({ "r.xml": junit("pp") }),
      variables,
    });
    expect([code, output]).toEqual([0, expect.stringMatching(/^PASSED unit: 2 passed.*attempt 1 /)]);
    expect([seen.length, new Set(seen).size]).toEqual([3, 1]);
    expect(await list(real)).toHaveLength(1);
  } finally {
    await front.stop(true);
  }
});
