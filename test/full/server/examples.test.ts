/** The example of each operation in the OpenAPI document is a request that the server accepts. */

import { describe, expect, test } from "bun:test";
import openapi from "../../../src/server/openapi.json" with { type: "json" };
import { advanceSearches } from "../../../src/work/culprits.ts";
import { createAsking } from "../../asking.ts";
import { createHarness, junit } from "../../harness.ts";

const { url, ask, acme, database } = await createHarness();

type Content = Record<string, { example?: unknown }>;
type Operation = {
  parameters: { name?: string; in?: string; example?: string }[];
  requestBody?: { content: Content };
  responses: Record<string, object>;
};

/** A receiver elsewhere is asked by these, or they do not end. */
const ELSEWHERE = [
  "POST /teams/{teamId}/integrations/{integrationId}/test",
  "POST /teams/{teamId}/integrations/{integrationId}/deliveries/{deliveryId}/redeliver",
  "GET /projects/{projectId}/events",
];

const { project, team } = acme;
const own = createAsking(ask, acme, "unit");
const ofTeam = async (path: string, body: unknown) =>
  (await ask(`POST /teams/${team}${path}`, { key: acme.teamKey, body })).body;
const createExecution = async (): Promise<string> => (await own.upload("pf")).executionId;

/** A runner that can probe asks for so many tasks. */
const syncProbing = async (free: number): Promise<{ id: string; commits?: object }[]> =>
  (await own.post("/leases", { runner: "prober", taskSlugs: ["unit"], probeSlugs: ["unit"], free })).leases;

/** A bug with a range of commits, whose search may have been started. */
async function createSearchable({ isStarted }: { isStarted: boolean }): Promise<string> {
  const suite = `suite ${crypto.randomUUID()}`;
  await own.upload("p", "branch=main&commit=1111111", suite);
  const { bugReports } = await own.upload("f", "branch=main&commit=2222222", suite);
  await syncProbing(0);
  if (isStarted) await own.post(`/bug-reports/${bugReports[0].id}/culprit`, {});
  return bugReports[0].id;
}

/** Creates an object of its own for each request, because a request may delete it. By the names of parameters. */
const THINGS: Record<string, (operation: string) => Promise<string>> = {
  projectId: async () => project,
  teamId: async () => team,
  taskSlug: async () => "unit",
  variableName: async () => "BASE_URL",
  executionId: async (operation) =>
    /\/(complete|cancel)$/.test(operation)
      ? (await own.post("/executions", { tasks: ["unit"] })).id
      : await createExecution(),
  attachmentId: async () => {
    const path = `/executions/${await createExecution()}/test-runs/unit/attachments?path=one.json`;
    return (await own.call("PUT", path, "1")).body.attachment.id;
  },
  testCaseId: async () => {
    await createExecution();
    await syncProbing(0);
    return (await own.list("/test-cases?task_slug=unit"))[0].id;
  },
  bugReportId: async (operation) =>
    operation.includes("culprit")
      ? await createSearchable({ isStarted: !operation.endsWith("/culprit") || operation.startsWith("GET") })
      : (await own.post("/bug-reports", { title: "one" })).id,
  into: async () => (await own.post("/bug-reports", { title: "another" })).id,
  verificationId: async (operation) =>
    (await own.post(`/test-cases/${await THINGS["testCaseId"]!(operation)}/verify`, { commit: "1111111" })).id,
  leaseId: async (operation) => {
    if (operation.endsWith("/commits")) {
      await createSearchable({ isStarted: true });
      await advanceSearches(database);
      return (await syncProbing(8)).find(({ commits }) => commits)!.id;
    }
    await own.post("/executions", { mode: "run", tasks: ["leased"] });
    return (await own.post("/leases", { runner: "one", taskSlugs: ["leased"] })).leases[0].id;
  },
  keyId: async () => (await own.post("/keys", { name: "ci", scope: "upload" })).id,
  environmentId: async () => {
    const { id } = await ofTeam("/environments", { slug: `e${crypto.randomUUID()}` });
    const path = `/teams/${team}/environments/${id}/variables/BASE_URL`;
    await ask(`PUT ${path}`, { key: acme.teamKey, body: { value: "x" } });
    return id;
  },
  infrastructureRuleId: async () =>
    (await ofTeam("/infrastructure-rules", { name: "disk", pattern: "no space left" })).id,
  integrationId: async () =>
    (await ofTeam("/integrations", { kind: "webhook", config: { url: "https://hooks.example/x" } })).id,
  automationId: async (operation) => {
    const actions = [{ type: "notify", integrationId: await THINGS["integrationId"]!(operation) }];
    return (await ofTeam("/automations", { name: "x", trigger: { event: "task.missed" }, actions })).id;
  },
};

type Ids = Record<string, string>;

const idOf = async (ids: Ids, name: string, operation: string) => (ids[name] ??= await THINGS[name]!(operation));

/** Replaces the ids of an example, which do not exist. A field of several ids is named after one: `integrationIds`. */
async function replaceIds(value: unknown, ids: Ids, operation: string, name = ""): Promise<unknown> {
  if (Array.isArray(value)) return await Promise.all(value.map((one) => replaceIds(one, ids, operation, name)));
  if (typeof value === "string")
    return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value)
      ? await idOf(ids, name.replace(/Ids$/, "Id"), operation)
      : value;
  if (typeof value !== "object" || value === null) return value;
  const replaced = Object.entries(value).map(async ([key, inner]) => [
    key,
    await replaceIds(inner, ids, operation, key),
  ]);
  return Object.fromEntries(await Promise.all(replaced));
}

const REPORT = junit("ppf");
const isText = (content: Content) => content["text/plain"]?.example !== undefined;

async function toBody(
  content: Content,
  ids: Ids,
  operation: string,
): Promise<[type: string, body: string | FormData] | undefined> {
  const json = content["application/json"];
  if (isText(content)) return ["text/plain", String(content["text/plain"]!.example)];
  if (content["*/*"]) return ["application/octet-stream", json ? REPORT : "1"];
  if (!content["multipart/form-data"])
    return json?.example === undefined
      ? undefined
      : ["application/json", JSON.stringify(await replaceIds(json.example, ids, operation))];
  const form = new FormData();
  form.append("attachment", new File(["1"], "cart-actual.png"));
  return ["", form];
}

/** Returns the state after a request whose answer does not show it. */
const EFFECTS: Record<string, (ids: Ids, text: string) => Promise<void>> = {
  "PUT /projects/{projectId}/owners": async (_, content) =>
    expect(await own.get("/owners")).toMatchObject({ content, syntax: "github", warnings: [] }),
  "PUT /teams/{teamId}/environments/{environmentId}/variables": async ({ environmentId }, content) => {
    const { body } = await ask(`GET /teams/${team}/environments/${environmentId}/variables`, { key: acme.teamKey });
    const names = [...content.matchAll(/^(\w+)=/gm)].map(([, name]) => name!);
    expect(body.data.map(({ name }: { name: string }) => name).sort()).toEqual(names.sort());
  },
};

const all = Object.entries(openapi.paths as unknown as Record<string, Record<string, Operation>>).flatMap(
  ([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
);

describe("the example is accepted", () => {
  const tried = all.filter(({ name }) => !ELSEWHERE.includes(name));
  test("by all operations but those that ask others", () => expect(all.length - tried.length).toBe(ELSEWHERE.length));

  test.each(tried.map(({ name, operation }) => [name, operation] as const))("%s", async (name, operation) => {
    const [method, pattern] = name.split(" ") as [string, string];
    const ids: Ids = {};
    let path = pattern;
    for (const [part, parameter] of pattern.matchAll(/\{(\w+)\}/g))
      path = path.replace(part, await idOf(ids, parameter!, name));
    const query = operation.parameters.filter((one) => one.in === "query" && one.example !== undefined);
    const search = new URLSearchParams(query.map((one): [string, string] => [one.name!, one.example!]));
    const [type, body] = (await toBody(operation.requestBody?.content ?? {}, ids, name)) ?? [];
    const response = await fetch(`${url}/api/v1${path}?${search.toString()}`, {
      method,
      headers: {
        Authorization: `Bearer ${pattern.startsWith("/teams/") ? acme.teamKey : acme.key}`,
        ...(type ? { "Content-Type": type } : {}),
      },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    const successes = Object.keys(operation.responses).filter((status) => status.startsWith("2"));
    expect([name, text.slice(0, 500), successes.includes(String(response.status))]).toEqual([
      name,
      expect.any(String),
      true,
    ]);
    // The simple fields that the answer repeats have the values that were sent.
    if (type === "application/json" && text.startsWith("{") && typeof body === "string") {
      const answer: Record<string, unknown> = JSON.parse(text);
      for (const [field, value] of Object.entries(JSON.parse(body)))
        if (typeof value !== "object" && field in answer) expect([field, answer[field]]).toEqual([field, value]);
    }
    await EFFECTS[name]?.(ids, String(body));
  });
});
