/** The first page of the documentation of the API. */

import type { Html } from "../../../http/html.ts";
import { STATUS } from "../../../http/problem.ts";
import { CardTable } from "../../components/list.tsx";
import { Breakable } from "../../components/text.tsx";
import { type DocsContext, choice, contents, json, pathTo, shell } from "./context.tsx";
import { ERRORS, KEYS, OBJECTS, OPERATIONS, type Operation, TAGS, exampleOf } from "./reference.ts";
import { row, table } from "./schema.tsx";

const line = (context: DocsContext, operation: Operation, tag: string | undefined): Html => (
  <tr>
    <td class="method">
      <b class="tag">{operation.method}</b>
    </td>
    <td class="long">
      <a href={`${tag === undefined ? pathTo(context, operation.tag) : ""}#${operation.anchor}`}>{operation.summary}</a>{" "}
      <code class="small soft">
        <Breakable text={operation.path.replace(/^\/(?:projects|teams)\/\{\w+\}(?=.)/, "…")} />
      </code>
    </td>
  </tr>
);

export const lines = (context: DocsContext, operations: readonly Operation[], caption: string, tag?: string): Html => (
  <CardTable caption={caption} columns={["Method", "Description and path"]} hidesHead>
    {operations.map((operation) => line(context, operation, tag))}
  </CardTable>
);

const codeOf = (status: number) => Object.entries(STATUS).find(([, value]) => value === status)![0];

const AUTHORIZATION = '-H "Authorization: Bearer $ASSAY_KEY"';

const baseOf = ({ api, project }: DocsContext): string => `${api}/projects/${project ? project.id : "$ASSAY_PROJECT"}`;

const FirstUpload = (context: DocsContext): Html => (
  <>
    <h2 id="start">Upload a report and view the result</h2>
    {shell(
      `curl ${AUTHORIZATION} --data-binary @report.xml \\\n  "${baseOf(context)}/test-runs?execution_key=4711&task_slug=unit&branch=main&complete=true"`,
    )}
    {shell(`curl ${AUTHORIZATION} \\\n  "${baseOf(context)}/test-runs?limit=1"`)}
    <p class="prose">
      With <code>-H "Accept: text/plain"</code>, the response to an upload is one readable line. The{" "}
      <a href={`${pathTo(context, "onboarding")}#get-onboarding`}>onboarding</a> contains lines for each CI system.
    </p>
  </>
);

const Keys = (): Html => (
  <>
    <h2 id="keys">Keys</h2>
    <p class="prose">
      Each request has a header <code>Authorization: Bearer</code> with a key. Generating a new project key revokes the
      previous one immediately, even for requests in progress.
    </p>
    <dl class="facts card padded">
      <dt>Project</dt>
      <dd>
        {KEYS["projectKey"]!.description}. The examples read it from <code>ASSAY_KEY</code>.
      </dd>
      <dt>Named</dt>
      <dd>
        Additional keys of a project, each limited to a scope: <code>read</code> (every GET), <code>upload</code> (also
        uploads reports), <code>run</code> (also runs tasks) or <code>triage</code> (reads, quarantines, triages bugs
        and reruns executions). Each operation names the scopes that it accepts.
      </dd>
      <dt>Team</dt>
      <dd>
        {KEYS["teamKey"]!.description}. The examples read it from <code>ASSAY_TEAM_KEY</code>.
      </dd>
    </dl>
  </>
);

const Lists = (context: DocsContext): Html => (
  <>
    <h2 id="lists">Lists</h2>
    <p class="prose">
      Lists are returned in pages,{" "}
      <code>
        {"{"} "data": […], "pagination": {"{"} "hasMore", "cursor" {"}"} {"}"}
      </code>
      . <code>limit</code> sets the page size: 10 by default, at most 100. If there are more elements, the response has
      a <code>cursor</code>; send it with the next request and the same filters. Elements that existed at the first
      request are returned exactly once, even while others are added, and later pages are as fast as the first. Cursors
      of other lists and unknown parameters are rejected, so a misspelled filter never returns everything.
    </p>
    {shell(`curl ${AUTHORIZATION} \\\n  "${baseOf(context)}/executions?limit=2&cursor=$CURSOR"`)}
  </>
);

const Errors = (): Html => (
  <>
    <h2 id="errors">Errors</h2>
    <p class="prose">
      Errors are always an object like this one, with one of five codes. The message lists all problems at once. A
      failed request changes nothing.
    </p>
    {json(exampleOf(OBJECTS["Error"]!))}
    {table(
      "Error codes",
      ERRORS.map(({ status, description }) => row(codeOf(status), String(status), false, description, {})),
    )}
  </>
);

const RateLimit = (): Html => (
  <>
    <h2 id="rate-limit">Rate limit</h2>
    <p class="prose">
      Each key may send 60 requests in any 60 seconds (<code>RATE_LIMIT_PER_MINUTE</code> of the server). An upload of
      any size is one request. Requests without a valid key count by address. The headers <code>X-RateLimit-Limit</code>
      , <code>X-RateLimit-Remaining</code> and <code>X-RateLimit-Reset</code> show the limit, the remaining requests and
      the time in Unix seconds from which requests are accepted again. A 429 also has <code>Retry-After</code>, and does
      not count.
    </p>
  </>
);

const Idempotency = (context: DocsContext): Html => (
  <>
    <h2 id="idempotency">Idempotent requests</h2>
    <p class="prose">
      A POST with an <code>Idempotency-Key</code>, which is any text of your choice, takes effect once, however often it
      is sent within 24 hours. Retries return the stored response with <code>Idempotent-Replayed: true</code>, and wait
      while the first request is in progress. The same key with another body is a 400. All other methods are safe to
      retry without a key.
    </p>
    {shell(
      `curl ${AUTHORIZATION} -H "Idempotency-Key: build-4711" \\\n  "${baseOf(context)}/executions" \\\n  -d '{"key":"4711","tasks":["unit"]}'`,
    )}
  </>
);

const Bodies = (): Html => (
  <>
    <h2 id="bodies">Bodies</h2>
    <p class="prose">
      Requests may use <code>Content-Encoding: gzip</code> or <code>zstd</code>. Responses over 1 KiB are compressed if{" "}
      <code>Accept-Encoding</code> allows it. Every response has an <code>X-Request-Id</code>, which is yours if you
      send one, and identifies the request in the server's log.
    </p>
  </>
);

const AllOperations = (context: DocsContext): Html => (
  <>
    <h2 id="operations">All operations</h2>
    <div class="packed">
      {TAGS.map(({ name, title }) => (
        <section>
          <h3 class="family">
            <a href={pathTo(context, name)}>{title}</a>
          </h3>
          {lines(
            context,
            OPERATIONS.filter(({ tag }) => tag === name),
            `Operations of ${title}`,
          )}
        </section>
      ))}
    </div>
  </>
);

export const overview = (context: DocsContext): Html => (
  <>
    {contents(context, undefined)}
    <h1>API</h1>
    <p class="prose">
      Everything in Assay is available over HTTP. The base URL is <code>{context.api}</code>. Bodies are JSON in
      camelCase, query parameters use snake_case, ids are UUIDs, times are ISO 8601 in UTC, and durations are
      milliseconds. An <a href="/openapi.json">OpenAPI document</a> is available.
    </p>
    {choice(context, "/docs")}
    <FirstUpload {...context} />
    <Keys />
    <Lists {...context} />
    <Errors />
    <RateLimit />
    <Idempotency {...context} />
    <Bodies />
    <AllOperations {...context} />
  </>
);
