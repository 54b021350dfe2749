/** The first page of the documentation of the API. */

import type { Html } from "../../../http/html.ts";
import { STATUS } from "../../../http/problem.ts";
import { Breakable } from "../../components/text.tsx";
import { type Here, choice, contents, json, pathTo, shell } from "./here.tsx";
import { ERRORS, KEYS, OBJECTS, OPERATIONS, type Operation, TAGS, exampleOf } from "./reference.ts";
import { row, table } from "./schema.tsx";

const line = (here: Here, operation: Operation, tag: string | undefined): Html => (
  <tr>
    <td class="method">
      <b class="tag">{operation.method}</b>
    </td>
    <td class="long">
      <a href={`${tag === undefined ? pathTo(here, operation.tag) : ""}#${operation.anchor}`}>{operation.summary}</a>{" "}
      <code class="small soft">
        <Breakable text={operation.path.replace(/^\/(?:projects|teams)\/\{\w+\}(?=.)/, "…")} />
      </code>
    </td>
  </tr>
);

export const lines = (here: Here, operations: readonly Operation[], caption: string, tag?: string): Html => (
  <div class="card">
    <table>
      <caption class="visually-hidden">{caption}</caption>
      <thead class="visually-hidden">
        <tr>
          <th scope="col">Method</th>
          <th scope="col">What it does, and its path</th>
        </tr>
      </thead>
      <tbody>{operations.map((operation) => line(here, operation, tag))}</tbody>
    </table>
  </div>
);

const codeOf = (status: number) => Object.entries(STATUS).find(([, value]) => value === status)![0];

export function overview(here: Here): Html {
  const { api, project } = here;
  const place = project ? project.id : "$ASSAY_PROJECT";
  const authorization = '-H "Authorization: Bearer $ASSAY_KEY"';
  const base = `${api}/projects/${place}`;
  return (
    <>
      {contents(here, undefined)}
      <h1>API</h1>
      <p class="prose">
        Everything that Assay knows and does is asked for over HTTP, below <code>{api}</code>. Bodies are JSON in
        camelCase, query parameters snake_case, ids UUIDs, times ISO 8601 in UTC, durations milliseconds. This is also
        an <a href="/openapi.json">OpenAPI document</a>.
      </p>
      {choice(here, "/docs")}
      <h2 id="start">Upload a report, see what came of it</h2>
      {shell(
        `curl ${authorization} --data-binary @report.xml \\\n  "${base}/test-runs?execution_key=4711&task_slug=unit&branch=main&complete=true"`,
      )}{" "}
      {shell(`curl ${authorization} \\\n  "${base}/test-runs?limit=1"`)}
      <p class="prose">
        <code>-H "Accept: text/plain"</code> makes one line for people of the answer to an upload. What CI systems need
        is ready to paste in <a href={`${pathTo(here, "onboarding")}#get-onboarding`}>the snippets</a>.
      </p>
      <h2 id="keys">Keys</h2>
      <p class="prose">
        Each request carries <code>Authorization: Bearer</code> and a key. A new key of a project revokes the one
        before, at once and for requests that are under way.
      </p>
      <dl class="facts card padded">
        <dt>Project</dt>
        <dd>
          {KEYS["projectKey"]!.description}. <code>ASSAY_KEY</code> in the lines here.
        </dd>
        <dt>Team</dt>
        <dd>
          {KEYS["teamKey"]!.description}. <code>ASSAY_TEAM_KEY</code> in the lines here.
        </dd>
      </dl>
      <h2 id="lists">Lists</h2>
      <p class="prose">
        A list is answered in pages,{" "}
        <code>
          {"{"} "data": […], "pagination": {"{"} "hasMore", "cursor" {"}"} {"}"}
        </code>
        , of 10 elements unless <code>limit</code> says otherwise, at most 100. <code>cursor</code> is there exactly
        when there is more: give it to the next request, with the same filters. Whoever walks through all pages sees
        what was there at the start exactly once, while more is added, and no page costs more than the first. A cursor
        of another list is refused, and so is a parameter that nobody knows: a filter with a typing error must not
        answer everything.
      </p>
      {shell(`curl ${authorization} \\\n  "${base}/executions?limit=2&cursor=$CURSOR"`)}
      <h2 id="errors">Errors</h2>
      <p class="prose">
        They are always this object, with one of five codes. The message names all that is wrong at once; a request that
        failed has done nothing.
      </p>
      {json(exampleOf(OBJECTS["Error"]!))}{" "}
      {table(
        "Errors by their codes",
        ERRORS.map(({ status, description }) => row(codeOf(status), String(status), false, description, {})),
      )}
      <h2 id="rate-limit">Rate limit</h2>
      <p class="prose">
        A key has 60 requests in any 60 seconds (<code>RATE_LIMIT_PER_MINUTE</code> of the server), an upload of any
        size being one; who has no valid key is counted by his address. Every answer tells in{" "}
        <code>X-RateLimit-Limit</code>, <code>X-RateLimit-Remaining</code> and <code>X-RateLimit-Reset</code> how much
        is left, and when there is more: Unix seconds, until which it is always enough to wait. A 429 says it in{" "}
        <code>Retry-After</code> too, and does not count.
      </p>
      <h2 id="idempotency">Sending again</h2>
      <p class="prose">
        A POST with <code>Idempotency-Key</code>, any text of yours, has one effect however often it is sent within 24
        hours: the stored answer is given again, with <code>Idempotent-Replayed: true</code>. With another body it is a
        400, and while the first is under way the second waits. All other methods may be sent again as they are.
      </p>
      {shell(
        `curl ${authorization} -H "Idempotency-Key: build-4711" \\\n  "${base}/executions" \\\n  -d '{"key":"4711","tasks":["unit"]}'`,
      )}
      <h2 id="bodies">Bodies</h2>
      <p class="prose">
        Requests may be sent with <code>Content-Encoding: gzip</code> or <code>zstd</code>, and answers over 1 KiB come
        so where <code>Accept-Encoding</code> allows it. Every answer has an <code>X-Request-Id</code>, yours where you
        send one: the server's log knows the request by it.
      </p>
      <h2 id="operations">All operations</h2>
      <div class="packed">
        {TAGS.map(({ name, title }) => (
          <section>
            <h3 class="family">
              <a href={pathTo(here, name)}>{title}</a>
            </h3>
            {lines(
              here,
              OPERATIONS.filter(({ tag }) => tag === name),
              `Operations of ${title}`,
            )}
          </section>
        ))}
      </div>
    </>
  );
}
