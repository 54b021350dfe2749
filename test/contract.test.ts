/** Every endpoint of the route table, present and future, answers as the contract says to those who may not use it. */

import { describe, expect, test } from "bun:test";
import packageJson from "../package.json" with { type: "json" };
import { csvTableOf } from "../src/request/csv_reply.ts";
import { ROUTES } from "../src/server/app.ts";
import { OPENAPI_FILE } from "../src/server/openapi.ts";
import { createKey } from "../src/secrets/keys.ts";
import { createHarness, junit } from "./harness.ts";
import { PATH_IDS } from "../src/store/existence.ts";

const { ask, acme, rival, regenerate, addProject, url } = await createHarness();
/** The other project of Acme. */
const sibling = { ...acme, ...(await addProject(acme)) };
const revoked = acme.key;
acme.key = await regenerate(acme);

/** Something behind every parameter of a path. */
async function createEverything(): Promise<Record<string, string>> {
  const { project, team, key, teamKey } = acme;
  const post = async (path: string, body?: unknown, own = teamKey) =>
    (await ask(`POST ${path}`, { key: own, body: body ?? {} })).body;
  const run = await post(`/projects/${project}/test-runs?task_slug=unit`, junit("f"), key);
  const cases = await ask(`GET /projects/${project}/test-cases`, { key });
  const attachments = `/projects/${project}/executions/${run.executionId}/test-runs/unit/attachments`;
  const { body: file } = await ask(`PUT ${attachments}?path=there.txt`, { key, body: "there" });
  const environment = await post(`/teams/${team}/environments`, { slug: "there" });
  const rule = await post(`/teams/${team}/infrastructure-rules`, { name: "there", pattern: "never said" });
  const config = { url: "https://hooks.invalid/there" };
  const integration = await post(`/teams/${team}/integrations`, { kind: "slack", config });
  const delivery = await post(`/teams/${team}/integrations/${integration.id}/test`);
  const actions = [{ type: "notify", integrationId: integration.id }];
  const notifying = { name: "there", trigger: { event: "execution.failed" }, actions };
  const automation = await post(`/teams/${team}/automations`, notifying);
  await post(`/projects/${project}/executions`, { mode: "run", tasks: ["there"] }, key);
  const { leases } = await post(`/projects/${project}/leases`, { runner: "there" }, key);
  const named = await post(`/projects/${project}/keys`, { name: "there", scope: "read" }, key);
  const testCaseId = cases.body.data[0].id;
  await post(`/projects/${project}/leases`, { runner: "there", free: 0, probeSlugs: ["unit"] }, key);
  const verify = `/projects/${project}/test-cases/${testCaseId}/verify`;
  const verification = await post(verify, { commit: "9f8e7d6c" }, key);
  return {
    ...{ projectId: project, teamId: team, keyId: named.id, leaseId: leases[0].id, taskSlug: "unit" },
    ...{ executionId: run.executionId, attachmentId: file.attachment.id, bugReportId: run.bugReports[0].id },
    ...{ testCaseId, verificationId: verification.id, environmentId: environment.id, infrastructureRuleId: rule.id },
    ...{ integrationId: integration.id, deliveryId: delivery.id, automationId: automation.id },
  };
}
const there = await createEverything();
const fillThere = (path: string) =>
  path.replace(/:(\w+)/g, (_, name: string) => {
    if (name !== "variableName" && !(name in there)) throw new Error(`createEverything makes no ${name}`);
    return there[name] ?? "NAME";
  });

test("every id in a path is looked up where the rest of a request is wrong, and there is one of each here", () => {
  const ids = new Set(ROUTES.flatMap(({ path }) => [...path.matchAll(/:(\w+Id)\b/g)].map(([, name]) => name!)));
  for (const own of ["projectId", "teamId"]) ids.delete(own);
  expect([...ids].sort()).toEqual(PATH_IDS.toSorted());
  expect([...ids].filter((name) => !(name in there))).toEqual([]);
});

function formOrFile(kind: "file" | "files"): string | FormData {
  if (kind === "file") return "there";
  const form = new FormData();
  form.append("attachment", new Blob(["there"]), "there.txt");
  return form;
}

const openapi = await Bun.file(OPENAPI_FILE).json();
const missing = crypto.randomUUID();

/** What keys of each scope open, besides every GET; a runner's opens nothing else. */
const P = "/projects/:projectId";
const RUN = `${P}/executions/:executionId/test-runs/:taskSlug`;
const inProject = (method: string, ...paths: string[]) => paths.map((path) => `${method} ${P}/${path}`);
const OF_RUN = [`POST ${RUN}/batches`, `PUT ${RUN}/attachments`, `POST ${RUN}/attachments`];
const UPLOAD = [
  ...inProject("POST", "test-runs", "executions", "executions/:executionId/complete", "test-cases/new"),
  ...[`POST ${RUN}/plan`, ...OF_RUN, `PUT ${P}/owners`],
];
const OPENED: Record<string, string[]> = {
  read: [],
  upload: UPLOAD,
  run: [
    ...UPLOAD,
    ...inProject("POST", "executions/:executionId/cancel", "executions/:executionId/rerun"),
    ...inProject("POST", "test-cases/:testCaseId/verify", "verifications/:verificationId/cancel"),
    ...inProject(
      "POST",
      "runners",
      "runners/pause",
      "leases",
      "leases/:leaseId/fail",
      "leases/:leaseId/commit",
      "leases/:leaseId/commits",
    ),
  ],
  triage: [
    ...inProject("PATCH", "test-cases", "test-cases/:testCaseId", "bug-reports/:bugReportId"),
    ...inProject("POST", "bug-reports", "bug-reports/:bugReportId/merge", "executions/:executionId/rerun"),
    ...inProject("POST", "bug-reports/:bugReportId/culprit", "bug-reports/:bugReportId/culprit/cancel"),
  ],
  runner: [
    ...inProject(
      "POST",
      "test-runs",
      "leases",
      "leases/:leaseId/fail",
      "leases/:leaseId/commit",
      "leases/:leaseId/commits",
    ),
    ...[`GET ${RUN}/plan`, `POST ${RUN}/plan`, ...OF_RUN],
  ],
};
const scoped: Record<string, string> = {};
for (const scope of ["read", "upload", "run", "triage"]) {
  const { body } = await ask(`POST /projects/${acme.project}/keys`, { key: acme.key, body: { name: scope, scope } });
  scoped[scope] = body.key;
}
const { body: registered } = await ask(`POST /projects/${acme.project}/runners`, {
  ...{ key: acme.key, body: { runner: "one" } },
});
scoped["runner"] = registered.key;

test("every route that scopes name is there", () => {
  const names = ROUTES.map(({ method, path }) => `${method} ${path}`);
  expect(Object.values(OPENED).flatMap((opened) => opened.filter((name) => !names.includes(name)))).toEqual([]);
});
test("every route with pages also answers comma-separated values", () => {
  const paged = ROUTES.filter(({ query }) => "cursor" in query.entries);
  expect(paged.length).toBeGreaterThan(15);
  expect(paged.filter((route) => !csvTableOf(route)).map(({ path }) => path)).toEqual([]);
});
const fillRest = (path: string) => path.replace(":variableName", "NAME").replace(/:\w+/g, missing);
const fill = (path: string, projectId: string, teamId: string) =>
  fillRest(path.replace(":projectId", projectId).replace(":teamId", teamId));

describe.each(ROUTES.map((route) => ({ ...route, name: `${route.method} ${route.path}` })))("$name", (route) => {
  const [own, wrong, rivals] =
    route.access === "project" ? [acme.key, acme.teamKey, rival.key] : [acme.teamKey, acme.key, rival.teamKey];
  const target = `${route.method} ${fill(route.path, acme.project, acme.team)}`;

  test("is a 401 without a valid key of the right kind", async () => {
    const flipped = `${own.slice(0, -1)}${own.endsWith("A") ? "B" : "A"}`;
    const bearers = [
      `${own}, Bearer ${own}`,
      own.toLowerCase(),
      flipped,
      `${own} x`,
      revoked,
      wrong,
      "svc_pat_abcdefgh",
    ];
    const authorizations = [
      ...[undefined, "", "Bearer", own, `Basic ${btoa(`x:${own}`)}`],
      ...[...bearers, createKey(route.access).key].map((bearer) => `Bearer ${bearer}`),
    ];
    for (const authorization of authorizations) {
      const given = authorization === undefined ? {} : { authorization };
      const { status, body, headers } = await ask(target, { headers: given });
      expect([authorization, status, body.error.code]).toEqual([authorization, 401, "UNAUTHORIZED"]);
      expect(headers.get("www-authenticate")).toBe("Bearer");
    }
    const personal = await ask(target, { headers: { authorization: "Bearer svc_pat_abcdefgh" } });
    expect(personal.body.error.message).toContain("not available yet");
    expect((await ask(`${target}?key=${own}`)).status).toBe(401);
  });

  test.each(Object.keys(OPENED))(
    "is open to a key of the scope %s if that says so, and a 401 otherwise",
    async (scope) => {
      const reads = scope !== "runner" && route.method === "GET";
      const isOpen = route.access === "project" && (OPENED[scope]!.includes(route.name) || reads);
      // A query that is wrong keeps it from having any effect.
      const { status, body } = await ask(`${target}?nope=1`, { key: scoped[scope]! });
      if (isOpen) expect(status).toBeOneOf([400, 404]);
      else expect([status, body.error.code]).toEqual([401, "UNAUTHORIZED"]);
    },
  );

  test("is one and the same 404 for what is missing and what is somebody else's", async () => {
    const rivalTarget = `${route.method} ${fill(route.path, rival.project, rival.team)}`;
    const nowhere = `${route.method} ${fill(route.path, crypto.randomUUID(), crypto.randomUUID())}`;
    // Bad input besides must not make a difference: access comes before it.
    const answers = await Promise.all([
      ask(rivalTarget, { key: own }),
      ask(nowhere, { key: own }),
      ask(`${rivalTarget}?nope=1`, { key: own, ...(route.body ? { body: "{" } : {}) }),
      ask(target, { key: rivals }),
    ]);
    for (const { status, text } of answers) expect([status, text]).toEqual([404, answers[0]!.text]);
  });

  test("is a 400 for a malformed id and for an unknown query parameter", async () => {
    for (const id of ["x", "%00", "%ff", "%2F", `{${acme.project}}`, `%20${acme.project}`, "a".repeat(7_000)]) {
      const path = fillRest(route.path.replace(/:\w+Id/, id));
      expect([id, (await ask(`${route.method} ${path}`, { key: own })).status]).toEqual([id, 400]);
    }
    const { status, body } = await ask(`${route.method} ${fillThere(route.path)}?nope=1`, { key: own });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(`"nope"`)]);
  });

  if (/:(?!projectId|teamId)\w+Id/.test(route.path))
    test("is a 404 for what is missing, whatever else is wrong", async () => {
      const answers = await Promise.all([
        ask(`${target}?nope=1`, { key: own }),
        ...(route.body && route.body !== "upload" ? [ask(target, { key: own, body: `{"nope":1}` })] : []),
      ]);
      for (const { status, body } of answers) expect([status, body.error.code]).toEqual([404, "NOT_FOUND"]);
    });

  if (/:(?!projectId|teamId)\w+Id/.test(route.path))
    test("is a 404 for what is another project's or team's, with valid input and with what is wrong", async () => {
      const { query = {}, body: example } = route.example;
      const valid = new URLSearchParams(query).toString();
      const body = route.body === "file" || route.body === "files" ? formOrFile(route.body) : example;
      const owners = route.access === "project" ? [rival, sibling] : [rival];
      for (const { project, key, team, teamKey } of owners) {
        const path = fillThere(route.path).replace(acme.project, project).replace(acme.team, team);
        const own = route.access === "project" ? key : teamKey;
        const answers = [
          await ask(`${route.method} ${path}?${valid}`, { key: own, body }),
          await ask(`${route.method} ${path}?nope=1`, { key: own }),
        ];
        for (const { status, body } of answers) expect([status, body.error.code]).toEqual([404, "NOT_FOUND"]);
      }
    });

  test("knows its project or team in upper case, too", async () => {
    const path = fill(route.path, acme.project.toUpperCase(), acme.team.toUpperCase());
    const [lower, upper] = await Promise.all([ask(target, { key: own }), ask(`${route.method} ${path}`, { key: own })]);
    // What the first of the two has created, the second finds: 201 and 200.
    expect(Math.floor(upper.status / 100)).toBe(Math.floor(lower.status / 100));
  });

  test("is a 404 with Allow for a method that it does not have", async () => {
    for (const method of ["OPTIONS", "TRACE", "PROPFIND"]) {
      const { status, headers } = await ask(`${method} ${fill(route.path, acme.project, acme.team)}`, { key: own });
      expect([method, status]).toEqual([method, 404]);
      expect(headers.get("allow")).toContain(route.method);
    }
  });

  if (route.method === "GET")
    test("answers HEAD like GET, without the body", async () => {
      const path = fill(route.path, acme.project, acme.team);
      const [get, head] = [await ask(`GET ${path}`, { key: own }), await ask(`HEAD ${path}`, { key: own })];
      expect([head.status, head.text]).toEqual([get.status, ""]);
      expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
    });

  const table = csvTableOf(route);
  if (table)
    test("is a list that also comes as comma-separated values, page by page", async () => {
      const path = fillThere(route.path);
      const answer = await ask(`GET ${path}?limit=1`, { key: own });
      const csv = await ask(`GET ${path}?limit=1`, { key: own, headers: { accept: "text/csv" } });
      expect([csv.status, csv.headers.get("content-type")]).toEqual([200, "text/csv; charset=utf-8; header=present"]);
      expect(csv.headers.get("x-next-cursor")).toBe(answer.body.pagination.cursor ?? null);
      const [names, ...rows] = csv.text.split("\r\n").slice(0, -1);
      expect(names).toBe(table.columns.join(","));
      expect(table.columns.length).toBeGreaterThan(2);
      expect(rows.length > 0).toBe(answer.body[table.rows].length > 0);
      for (const row of answer.body[table.rows])
        expect(Object.keys(row).filter((name) => !table.columns.includes(name))).toEqual([]);
      const { responses, description } = openapi.paths[route.path.replace(/:(\w+)/g, "{$1}")].get;
      expect(Object.keys(responses["200"].content)).toEqual(["application/json"]);
      expect(description).toContain("With Accept: text/csv");
    });

  if (route.method === "PATCH")
    test("is a 400 that names the editable fields where it would change nothing", async () => {
      const here = `PATCH ${fillThere(route.path)}`;
      const { entries } = route.body as unknown as { entries: Record<string, { type: string }> };
      const named = Object.keys(entries)
        .map((name) => `"${name}"`)
        .join(", ");
      // What must be there anyway is missed first.
      const needed = Object.keys(entries).filter((name) => entries[name]!.type !== "optional");
      if (needed.length > 0) {
        const { status, body } = await ask(here, { key: own, body: {} });
        expect([status, body.error.message]).toEqual([400, needed.map((name) => `Missing field "${name}"`).join("; ")]);
        return;
      }
      for (const body of [undefined, "", "{}"]) {
        const { status, body: answer } = await ask(here, { key: own, ...(body === undefined ? {} : { body }) });
        const message = `Cannot read the body: expected at least one of ${named}`;
        expect(status).toBe(400);
        expect([message, `${message}, got an empty object`]).toContain(answer.error?.message);
      }
      const { patch } = openapi.paths[route.path.replace(/:(\w+)/g, "{$1}")];
      expect(patch.requestBody.required).toBe(true);
      expect(patch.requestBody.content["application/json"].schema.minProperties).toBe(1);
    });

  // An ownership file is any text.
  const isAnyText = route.name === `PUT ${P}/owners`;
  const isJson = route.body !== undefined && !["upload", "file", "files"].includes(route.body as string);
  if (isJson && !isAnyText)
    test("is a 400 for an unknown field and for what is no JSON object", async () => {
      const nowhere = await ask(target, { key: own, body: {} });
      expect(nowhere.status).not.toBe(500);
      const here = `${route.method} ${fillThere(route.path)}`;
      const hidden = [`{"constructor":1}`, `{"__proto__":1}`];
      for (const body of [`{"nope":1}`, "[]", "{", "\0", ...hidden]) {
        const { status } = await ask(here, { key: own, body });
        expect([body, status]).toEqual([body, 400]);
      }
      if (route.body !== "text")
        for (const type of ["application/xml", "text/html", "multipart/form-data; boundary=x", "image/png"]) {
          const { status } = await ask(here, { key: own, body: "{}", headers: { "content-type": type } });
          expect([type, status]).toEqual([type, 400]);
        }
    });
});

test("a path that nobody has is a 404, after the key", async () => {
  for (const path of ["", "/", "/nope", "/projects", `/projects/${acme.project}/nope`, `/projects/${acme.project}/`]) {
    expect((await ask(`GET ${path}`, { key: acme.key })).status).toBe(404);
    expect((await ask(`GET ${path}`)).status).toBe(401);
  }
});

test("a request id is kept when it is well-formed", async () => {
  const send = async (id: string) =>
    (await fetch(`${url}/healthz`, { headers: { "x-request-id": id } })).headers.get("x-request-id");
  expect(await send("build-7.1:a_b")).toBe("build-7.1:a_b");
  expect(await send("<script>")).toMatch(/^[0-9a-f-]{36}$/);
  expect(await send("a".repeat(129))).toMatch(/^[0-9a-f-]{36}$/);
});

test("answers over 1 KiB are compressed for those who accept it", async () => {
  for (let index = 0; index < 10; index++)
    await ask(`POST /projects/${acme.project}/executions`, { key: acme.key, body: { key: `compressed ${index}` } });
  const get = (encoding: string) => {
    const headers = { authorization: `Bearer ${acme.key}`, "accept-encoding": encoding };
    const path = `${url}/api/v1/projects/${acme.project}/executions`;
    return fetch(path, { headers, decompress: false } as RequestInit);
  };
  const plain = await (await get("identity")).text();
  for (const [accepted, encoding] of [
    ["gzip", "gzip"],
    ["deflate, gzip, br, zstd", "zstd"],
    ["gzip;q=0, zstd;q=0.5", "zstd"],
  ] as const) {
    const response = await get(accepted);
    expect(response.headers.get("content-encoding")).toBe(encoding);
    const bytes = new Uint8Array(await response.arrayBuffer());
    const text = encoding === "gzip" ? Bun.gunzipSync(bytes) : Bun.zstdDecompressSync(bytes);
    expect(new TextDecoder().decode(text)).toBe(plain);
  }
});

test("outside the API there are health, readiness and the OpenAPI document", async () => {
  for (const [path, status] of [
    ["/healthz", 200],
    ["/readyz", 200],
    ["/openapi.json", 200],
    ["/nope", 404],
  ] as const) {
    const response = await fetch(`${url}${path}`);
    expect([path, response.status]).toEqual([path, status]);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    if (path === "/healthz") expect(await response.json()).toEqual({ status: "ok", version: packageJson.version });
  }
});
