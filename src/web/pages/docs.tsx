/** The reference of the API: rules that hold for all requests, the list of operations, and a viewer that tries them. */

import { type Html, raw } from "../../http/html.ts";
import { STATUS } from "../../http/problem.ts";
import { Reply } from "../../request/reply.ts";
import openapi from "../../server/openapi.json" with { type: "text" };
import { selectTeamProjectRefs } from "../../store/projects.ts";
import { CardTable } from "../components/list.tsx";
import { Breakable } from "../components/text.tsx";
import { ICON, VIEWER_SCRIPT, VIEWER_STYLE } from "../site/assets.ts";
import { type Page, page, type View } from "../site/page.ts";
import { PAGE_HEADERS } from "../site/page_reply.ts";

const MAX_PROJECTS = 200;

type Operation = { operationId: string; summary: string; tags: [string]; security: [Record<string, string[]>] };
type Document = {
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    securitySchemes: Record<string, { description: string }>;
    responses: Record<string, { description: string }>;
  };
};

const AUTHORIZATION = '-H "Authorization: Bearer $ASSAY_KEY"';

const shell = (text: string): Html => (
  <div class="copied">
    <pre data-copy>{text}</pre>
  </div>
);

const toTitle = (tag: string) => `${tag[0]!.toUpperCase()}${tag.slice(1).replaceAll("-", " ")}`;

/** Returns "team key", "project key or any named key", or "project key or one of scope triage". */
function keysOf(method: string, security: Record<string, string[]>): string {
  const [[name, scopes]] = Object.entries(security) as [[string, string[]]];
  if (name === "teamKey") return "team key";
  if (method === "get") return "project key or any named key";
  return scopes.length === 0 ? "project key" : `project key or one of scope ${scopes.join(" or ")}`;
}

const line = (path: string, method: string, { operationId, summary, tags: [tag], security }: Operation): Html => (
  <tr>
    <td class="method">
      <b class="tag">{method.toUpperCase()}</b>
    </td>
    <td class="long">
      <a href={`/docs/operations#/${tag}/${operationId}`}>{summary}</a>{" "}
      <code class="small soft">
        <Breakable text={path} />
      </code>{" "}
      <span class="small soft">with the {keysOf(method, security[0])}</span>
    </td>
  </tr>
);

function writeOperations({ tags, paths }: Document): Html {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ tag: operation.tags[0], path, method, operation })),
  );
  return (
    <>
      {tags.map(({ name, description }) => (
        <section id={name}>
          <h3>{toTitle(name)}</h3>
          <p class="prose">{description.endsWith(".") ? description : `${description}.`}</p>
          <CardTable caption={`Operations of ${toTitle(name)}`} columns={["Method", "Description and path"]} hidesHead>
            {all.filter(({ tag }) => tag === name).map(({ path, method, operation }) => line(path, method, operation))}
          </CardTable>
        </section>
      ))}
    </>
  );
}

const Keys = ({ securitySchemes }: Document["components"]): Html => (
  <>
    <h2 id="keys">Keys</h2>
    <p class="prose">
      Each request has a header <code>Authorization: Bearer</code> with a key. Generating a new project key revokes the
      previous one immediately, even for requests in progress.
    </p>
    <dl class="facts card padded">
      <dt>Project</dt>
      <dd>{securitySchemes["projectKey"]!.description}.</dd>
      <dt>Named</dt>
      <dd>
        Additional keys of a project, each limited to a scope: <code>read</code> (every GET), <code>upload</code> (also
        uploads reports), <code>run</code> (also runs tasks) or <code>triage</code> (reads, quarantines, triages bugs
        and reruns executions). Each operation names the scopes that it accepts.
      </dd>
      <dt>Team</dt>
      <dd>{securitySchemes["teamKey"]!.description}.</dd>
    </dl>
  </>
);

const Errors = ({ responses }: Document["components"]): Html => (
  <>
    <h2 id="errors">Errors</h2>
    <p class="prose">
      Errors are always an object like this one, with one of five codes. The message lists all problems at once. A
      failed request changes nothing.
    </p>
    <pre>{'{ "error": { "code": "NOT_FOUND", "message": "Execution not found" } }'}</pre>
    <dl class="facts card padded">
      {Object.values(responses).map(({ description }, index) => (
        <>
          <dt>
            {Object.values(STATUS)[index]} <code>{Object.keys(STATUS)[index]}</code>
          </dt>
          <dd>{description}.</dd>
        </>
      ))}
    </dl>
  </>
);

const Rules = ({ base }: { base: string }): Html => (
  <>
    <h2 id="lists">Lists</h2>
    <p class="prose">
      Lists are returned in pages,{" "}
      <code>
        {"{"} "data": […], "pagination": {"{"} "hasMore", "cursor" {"}"} {"}"}
      </code>
      . <code>limit</code> sets the page size: 10 by default, at most 100. If there are more elements, the response has
      a <code>cursor</code>; send it with the next request and the same filters. Elements that existed at the first
      request are returned exactly once, even while others are added. Cursors of other lists and unknown parameters are
      rejected, so a misspelled filter never returns everything.
    </p>
    <h2 id="rate-limit">Rate limit</h2>
    <p class="prose">
      Each key may send 60 requests in any 60 seconds (<code>RATE_LIMIT_PER_MINUTE</code> of the server). An upload of
      any size is one request. Requests without a valid key count by address. The headers <code>X-RateLimit-Limit</code>
      , <code>X-RateLimit-Remaining</code> and <code>X-RateLimit-Reset</code> show the limit, the remaining requests and
      the time in Unix seconds from which requests are accepted again. A 429 also has <code>Retry-After</code>, and does
      not count.
    </p>
    <h2 id="idempotency">Idempotent requests</h2>
    <p class="prose">
      A POST with an <code>Idempotency-Key</code>, which is any text of your choice, takes effect once, however often it
      is sent within 24 hours. Retries return the stored response with <code>Idempotent-Replayed: true</code>, and wait
      while the first request is in progress. The same key with another body is a 400. All other methods are safe to
      retry without a key.
    </p>
    {shell(
      `curl ${AUTHORIZATION} -H "Idempotency-Key: build-4711" \\\n  "${base}/executions" \\\n  -d '{"key":"4711","tasks":["unit"]}'`,
    )}
    <h2 id="bodies">Bodies</h2>
    <p class="prose">
      Requests may use <code>Content-Encoding: gzip</code> or <code>zstd</code>. Responses over 1 KiB are compressed if{" "}
      <code>Accept-Encoding</code> allows it. Every response has an <code>X-Request-Id</code>, which is yours if you
      send one, and identifies the request in the server's log.
    </p>
  </>
);

/** The parts of the page that come from the document, which is not kept in memory. */
let written: Record<"keys" | "errors" | "operations", Html> | undefined;

function writeOnce(): NonNullable<typeof written> {
  if (written) return written;
  const document = JSON.parse(String(openapi)) as Document;
  const { components } = document;
  return (written = { keys: Keys(components), errors: Errors(components), operations: writeOperations(document) });
}

function overview(api: string): View {
  const { keys, errors, operations } = writeOnce();
  const base = `${api}/projects/$ASSAY_PROJECT`;
  const body = (
    <>
      <h1>API</h1>
      <p class="prose">
        Everything in Assay is available over HTTP. The base URL is <code>{api}</code>. Bodies are JSON in camelCase,
        query parameters use snake_case, ids are UUIDs, times are ISO 8601 in UTC, and durations are milliseconds.{" "}
        <a href="/docs/operations">Parameters, fields and a form to try each operation</a>, also as an{" "}
        <a href="/openapi.json">OpenAPI document</a>.
      </p>
      <h2 id="start">Upload a report and view the result</h2>
      {shell(
        `curl ${AUTHORIZATION} --data-binary @report.xml \\\n  "${base}/test-runs?execution_key=4711&task_slug=unit&branch=main&complete=true"`,
      )}
      {shell(`curl ${AUTHORIZATION} \\\n  "${base}/test-runs?limit=1"`)}
      {keys}
      {errors}
      <Rules base={base} />
      <h2 id="operations">Operations</h2>
      {operations}
    </>
  );
  return { title: "API", body };
}

/** Style and script of the viewer are separate from those of all other pages. Its icons are data in its style sheet. */
const VIEWER_HEADERS = {
  ...PAGE_HEADERS,
  "Content-Security-Policy": PAGE_HEADERS["Content-Security-Policy"].replace("img-src 'self'", "img-src 'self' data:"),
};

/** An id that the viewer offers for a path parameter, with its name. */
type Offer = { name: string; id: string };

const viewer = (projects: readonly Offer[], teams: readonly Offer[]): Html => (
  <>
    {raw("<!doctype html>")}
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Operations · API · Assay</title>
        <link rel="stylesheet" href={VIEWER_STYLE} />
        <link rel="icon" href={ICON} type="image/svg+xml" />
      </head>
      <body>
        <header>
          <a href="/">Assay</a> / <a href="/docs">API</a>
        </header>
        <main>
          <h1>Operations of the API</h1>
          <div id="viewer" data-ids={JSON.stringify({ projectId: projects, teamId: teams })}>
            This page needs JavaScript. The <a href="/docs#operations">list of operations</a> and the{" "}
            <a href="/openapi.json">OpenAPI document</a> do not.
          </div>
        </main>
        <script src={VIEWER_SCRIPT} />
      </body>
    </html>
  </>
);

export const docs: Page[] = [
  page("/docs", { access: "public" }, async ({ publicUrl }) => overview(`${publicUrl}/api/v1`)),
  page("/docs/operations", { access: "public" }, async ({ sql, visitor }) => {
    const teams = (visitor?.teams ?? []).map(({ teamId, teamName }) => ({ name: teamName, id: teamId }));
    const ids = teams.map(({ id }) => id);
    const refs = ids.length === 0 ? [] : await selectTeamProjectRefs(sql, ids, MAX_PROJECTS);
    const projects = refs.map(({ id, name, teamName }) => ({ name: `${teamName} / ${name}`, id }));
    return new Reply(200, viewer(projects, teams).text, "text/html; charset=utf-8", VIEWER_HEADERS);
  }),
];
