/** The API for who calls it: what all of it has in common, and every operation with a line for the shell. */

import * as v from "valibot";
import type { Html, Piece, Path } from "../../../http/html.ts";
import { Problem, STATUS } from "../../../http/problem.ts";
import { uuid } from "../../../schema/fields.ts";
import type { Visitor } from "../../../request/visitors.ts";
import { selectAutomations } from "../../../store/automations.ts";
import { selectBugReports } from "../../../store/bug_reports.ts";
import type { Sql } from "../../../database/connect.ts";
import { selectEnvironments } from "../../../store/environments.ts";
import { selectIntegrations } from "../../../store/integrations.ts";
import { selectTeamPlaces } from "../../../store/projects.ts";
import { selectTestCases } from "../../../store/test_cases.ts";
import { selectExecutions } from "../../../store/execution_list.ts";
import { type Page, type ProjectPlace, page } from "../../site/page.ts";
import { Breakable } from "../../components/text.tsx";
import { toAddress } from "../../site/paths.ts";
import {
  type Answer,
  ERRORS,
  KEYS,
  OBJECTS,
  OPERATIONS,
  type Operation,
  type Parameter,
  type Schema,
  TAGS,
  branchesOf,
  exampleOf,
  groupsOf,
  mayBeNull,
  objectsOf,
  referenceOf,
  toCurl,
  type SchemaField,
} from "./reference.ts";

const MAX_PROJECTS = 200;

/** What every page of this family knows of who looks at it. */
type Here = {
  /** The address of the API. */
  api: string;
  /** To choose from. */
  projects: readonly ProjectPlace[];
  project: ProjectPlace | undefined;
  isSignedIn: boolean;
};

const query = v.strictObject({ project: v.optional(uuid) });

async function lookAround({
  sql,
  publicUrl,
  visitor,
  query,
}: {
  sql: Sql;
  publicUrl: string;
  visitor: Visitor | undefined;
  query: { project?: string | undefined };
}): Promise<Here> {
  const teams = (visitor?.teams ?? []).map(({ teamId }) => teamId);
  const projects = teams.length === 0 ? [] : await selectTeamPlaces(sql, teams, MAX_PROJECTS);
  return {
    api: `${publicUrl}/api/v1`,
    projects,
    // Whose it is not sees what anybody does.
    project: projects.find(({ id }) => id === query.project) ?? projects[0],
    isSignedIn: visitor !== undefined,
  };
}

/** Where there is a choice it stays the same on all pages. */
const pathTo = ({ project, projects }: Here, tag?: string): Path =>
  toAddress(tag === undefined ? "/docs" : `/docs/${tag}`, {
    project: projects.length > 1 && project !== projects[0] ? project?.id : undefined,
  });

/** The newest thing of each kind, for lines that only read. */
async function findIds(
  sql: Sql,
  { id, teamId }: ProjectPlace,
  wanted: ReadonlySet<string>,
): Promise<Record<string, string>> {
  const find = async <Row,>(name: string, select: () => Promise<readonly Row[]>): Promise<Row | undefined> =>
    wanted.has(name) ? (await select())[0] : undefined;
  const one = { limit: 1 };
  const [execution, testCase, bug, environment, integration, automation] = await Promise.all([
    find("executionId", () => selectExecutions(sql, id, 1, {})),
    find("testCaseId", () => selectTestCases(sql, id, one)),
    find("bugReportId", () => selectBugReports(sql, id, one)),
    find("environmentId", () => selectEnvironments(sql, teamId, 1, undefined)),
    find("integrationId", () => selectIntegrations(sql, teamId, one, undefined)),
    find("automationId", () => selectAutomations(sql, teamId, 1, undefined)),
  ]);
  const found = {
    executionId: execution?.id,
    taskSlug: execution?.tasks[0]?.slug,
    testCaseId: testCase?.id,
    bugReportId: bug?.id,
    environmentId: environment?.id,
    integrationId: integration?.id,
    automationId: automation?.id,
  };
  return Object.fromEntries(Object.entries(found).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

const namesIn = ({ path }: Operation) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);

const shell = (text: string): Html => (
  <div class="copied">
    <pre data-copy>{text}</pre>
  </div>
);
const json = (value: unknown): Html => <pre>{JSON.stringify(value, null, 2)}</pre>;

/** Tells where this is, and leads to the rest. */
const contents = (here: Here, current: string | undefined): Html => (
  <nav class="contents" aria-label="API">
    <a href={pathTo(here)} aria-current={current === undefined ? "page" : undefined}>
      Overview
    </a>{" "}
    {TAGS.map(({ name, title }) => (
      <a href={pathTo(here, name)} aria-current={current === name ? "page" : undefined}>
        {title}
      </a>
    ))}
  </nav>
);

/** Whose ids stand in the lines, and how to have another's. */
function choice({ projects, project, isSignedIn }: Here, path: Path): Html {
  if (!isSignedIn)
    return (
      <p class="hint">
        The lines below take <code>ASSAY_PROJECT</code>, <code>ASSAY_KEY</code> and so on from the environment of your
        shell; <a href={`/login?${new URLSearchParams({ next: path }).toString()}`}>sign in</a> to have your own ids in
        them.
      </p>
    );
  if (!project) return <p class="hint">As soon as you have a project, its id stands in the lines below.</p>;
  const key = (
    <>
      The key is taken from <code>ASSAY_KEY</code>, that of the team from <code>ASSAY_TEAM_KEY</code>; see{" "}
      <a href={`/projects/${project.id}/settings`}>settings</a>.
    </>
  );
  if (projects.length === 1)
    return (
      <p class="hint">
        The lines below hold the ids of {project.name}. {key}
      </p>
    );
  return (
    <>
      <form class="filters" action={path}>
        <label>
          Ids of
          <select name="project">
            {projects.map(({ id, name, teamName }) => (
              <option value={id} selected={id === project.id}>
                {teamName} / {name}
              </option>
            ))}
          </select>
        </label>{" "}
        <button>Fill in</button>
      </form>
      <p class="hint">{key}</p>
    </>
  );
}

const link = (name: string): Html =>
  name === "Pagination" ? <a href="/docs#lists">Pagination</a> : <a href={`#${name}`}>{name}</a>;

const FORMATS: Record<string, string> = {
  uuid: "UUID",
  "date-time": "time",
  date: "day",
  uri: "address",
  cron: "cron schedule",
  "iana-time-zone": "IANA time zone",
  dotenv: ".env file",
  binary: "bytes",
};

/** "integer from 1 to 100", "list of Execution", `"a" or "b"`. */
function typeOf(schema: Schema): Piece {
  const name = referenceOf(schema);
  if (name !== undefined) return link(name);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(", ");
  const branches = branchesOf(schema);
  if (branches.length > 0) {
    const types = branches.map(typeOf).flatMap((type, index): Piece[] => (index === 0 ? [type] : [" or ", type]));
    return mayBeNull(schema) ? [...types, " or null"] : types;
  }
  if (schema.items) return ["list of ", typeOf(schema.items)];
  return plainType(schema);
}

function plainType({ type, format, minimum, maximum, maxLength, additionalProperties }: Schema): string {
  if (format !== undefined && FORMATS[format]) return FORMATS[format];
  if (type === "string") return maxLength === undefined ? "text" : `text, at most ${maxLength.toLocaleString("en-US")}`;
  if (type === "boolean") return "true or false";
  if (type === "object") return additionalProperties ? "object by names" : "object";
  if (type === "integer" && minimum !== undefined && maximum !== undefined && maximum < 1e9)
    return `integer from ${minimum} to ${maximum.toLocaleString("en-US")}`;
  return type ?? "anything";
}

const NOTHING = ["null", "{}", "[]", '""'];

/** A default that is told in words already, or is nothing, needs no other word. */
const standard = ({ default: value, description = "" }: Schema): Html | null =>
  value === undefined || description.includes("Default:") || NOTHING.includes(JSON.stringify(value)) ? null : (
    <>
      {" "}
      Default: <code>{typeof value === "string" ? value : JSON.stringify(value)}</code>.
    </>
  );

/** A sentence of the document ends with a stop only where another follows. */
const sentence = (text: string | undefined): string =>
  text === undefined || /[.:]$/.test(text) ? (text ?? "") : `${text}.`;

/** Paragraphs stand apart in the document. */
const prose = (text: string): Html[] =>
  text.split("\n\n").map((paragraph) => <p class="prose">{sentence(paragraph)}</p>);

const descriptionOf = (schema: Schema): string | undefined => {
  const name = referenceOf(schema);
  return schema.description ?? (name === undefined ? undefined : OBJECTS[name]!.description);
};

const row = (
  name: Piece,
  type: Piece,
  isRequired: boolean,
  text: string | undefined,
  schema: Schema,
  more: Piece = null,
) => (
  <tr>
    <th scope="row">
      <code>{name}</code>
      <span>
        {type}
        {isRequired ? ", required" : null}
      </span>
    </th>
    <td>
      {sentence(text)}
      {standard({ ...schema, description: text ?? "" })}
      {more}
    </td>
  </tr>
);

const PLACES = { path: "in the path", query: "in the query", header: "a header" };

const parameterRow = ({ name, in: place, required, description, schema }: Parameter): Html => {
  if (place === "header" && name === "Idempotency-Key")
    return row(name, "a header", false, undefined, {}, <a href="/docs#idempotency">So that it may be sent again</a>);
  // An id says nothing, and what a path takes comes from an answer.
  const [example] = place === "path" || schema.format === "uuid" ? [] : (schema.examples ?? []);
  const type = [typeOf(schema), place === "query" ? null : `, ${PLACES[place]}`];
  const shown =
    example === undefined ? null : (
      <>
        {" "}
        Such as <code>{String(example)}</code>.
      </>
    );
  return row(name, type, required && place !== "path", description, schema, shown);
};

/** Fields of an answer are always there unless it says otherwise; those of a request are left out unless they are required. */
const fieldRow =
  (isAnswer: boolean) =>
  ({ prefix, name, schema, isRequired }: SchemaField): Html => {
    const place = [
      prefix === "" ? null : (
        <span class="soft">
          <Breakable text={prefix} />
        </span>
      ),
      <Breakable text={name} />,
    ];
    const type = [typeOf(schema), isAnswer && !isRequired ? ", not always there" : null];
    return row(place, type, isRequired && !isAnswer, descriptionOf(schema), isAnswer ? {} : schema);
  };

const table = (caption: string, rows: Piece): Html => (
  <div class="card">
    <table class="reference">
      <caption class="visually-hidden">{caption}</caption>
      <colgroup>
        <col class="name" />
        <col />
      </colgroup>
      <thead class="visually-hidden">
        <tr>
          <th scope="col">Name and type</th>
          <th scope="col">What it is</th>
        </tr>
      </thead>
      <tbody>{rows}</tbody>
    </table>
  </div>
);

function fieldTable(caption: string, schema: Schema, isAnswer: boolean): Html {
  const rows = groupsOf(schema).map(({ when, fields }) => [
    when === undefined ? null : (
      <tr>
        <th scope="rowgroup" colspan={2}>
          Where <code>{when.name}</code> is <code>{when.value}</code>
          {describedAs(schema, when)}
        </th>
      </tr>
    ),
    fields.map(fieldRow(isAnswer)),
  ]);
  return table(caption, rows);
}

/** What is said of the value that makes the difference, where each says something else. */
function describedAs({ oneOf = [] }: Schema, { name, value }: { name: string; value: string }): string {
  const texts = oneOf.map(({ properties }) => properties![name]!.description);
  const own = oneOf.find(({ properties }) => properties![name]!.const === value)?.properties![name]!.description;
  return own !== undefined && new Set(texts).size > 1 ? `: ${own}` : "";
}

function bodyOf({ method, path, body }: Operation): Html | null {
  if (!body) return null;
  const { "application/json": given, "text/plain": text } = body.content;
  const schema = given!.schema;
  const isTold = schema.properties ?? schema.oneOf;
  return (
    <>
      <h3>Body{body.required ? "" : ", which may be left out"}</h3>
      {body.description === undefined ? null : <p class="prose">{sentence(body.description)}</p>}{" "}
      {schema.description === undefined ? null : <p class="prose">{sentence(schema.description)}</p>}{" "}
      {isTold ? fieldTable(`Fields of the body of ${method} ${path}`, schema, false) : null}{" "}
      {text ? (
        <div class="columns">
          {json(given!.example)}
          <pre>{String(text.example)}</pre>
        </div>
      ) : null}
    </>
  );
}

/** `{ data: list of Row, pagination }` says nothing that the row does not. */
const rowOf = ({ properties: { data, pagination } = {} }: Schema): Schema | undefined =>
  pagination ? data?.items : undefined;

function shapeOf(schema: Schema): Piece {
  const row = rowOf(schema);
  if (row === undefined) return typeOf(schema);
  return [
    <>
      <a href="/docs#lists">a page</a> of{" "}
    </>,
    referenceOf(row) === undefined ? "these" : typeOf(row),
  ];
}

function answerOf({ method, path }: Operation, answers: readonly Answer[]): Html {
  const [{ content }] = answers as [Answer, ...Answer[]];
  const schema = content["application/json"]?.schema;
  const text = content["text/plain"]?.schema.description;
  const inner = schema && (rowOf(schema) ?? schema);
  const isInline = inner !== undefined && referenceOf(inner) === undefined;
  return (
    <>
      <h3>Answer</h3>
      <p>
        {answers
          .toSorted((a, b) => Number(b.status === 201) - Number(a.status === 201))
          .map(({ status, description }, index) => (
            <>
              {index === 0 ? null : " · "}
              <b>{status}</b> {description}
            </>
          ))}
        {schema && (!isInline || rowOf(schema)) ? [": ", shapeOf(schema)] : null}
      </p>
      {text === undefined ? null : (
        <p>
          <code>Accept: text/plain</code>: {text}
        </p>
      )}{" "}
      {isInline ? (
        <>
          {fieldTable(`Fields of the answer to ${method} ${path}`, inner, true)}
          <details>
            <summary>Example</summary>
            {json(exampleOf(schema!))}
          </details>
        </>
      ) : null}
    </>
  );
}

/** What does not depend on who looks is made once. */
const told = new Map<string, Html>();
const once = (key: string, make: () => Html): Html => {
  const known = told.get(key) ?? make();
  told.set(key, known);
  return known;
};

/** Only lines that change nothing lead to things of the team: a plan is made by whoever asks first. */
const isRead = ({ method, path }: Operation): boolean => method === "GET" && !path.endsWith("/plan");

function section(operation: Operation, here: Here, ids: Record<string, string>): Html {
  const { anchor, method, path, summary, description, key } = operation;
  const parameters = operation.parameters.filter(({ name }) => name !== "projectId" && name !== "teamId");
  const own: Record<string, string> = here.project
    ? { projectId: here.project.id, teamId: here.project.teamId, ...(isRead(operation) ? ids : {}) }
    : {};
  return (
    <section class="operation" id={anchor}>
      <h2>
        <a href={`#${anchor}`}>{summary}</a>
      </h2>
      <p class="endpoint">
        <b class="tag">{method}</b>{" "}
        <code>
          <Breakable text={path} />
        </code>{" "}
        <span class="soft">with the key of the {key}</span>
      </p>
      {prose(description)} {shell(toCurl(operation, here.api, own))}{" "}
      {once(`${method} ${path}`, () => (
        <>
          {parameters.length === 0 ? null : (
            <>
              <h3>Parameters</h3>
              {table(`Parameters of ${method} ${path}`, parameters.map(parameterRow))}
            </>
          )}
          {bodyOf(operation)}
          {answerOf(operation, operation.answers)}
        </>
      ))}
    </section>
  );
}

const object = (name: string): Html =>
  once(name, () => (
    <section class="operation" id={name}>
      <h2>
        <a href={`#${name}`}>{name}</a>
      </h2>
      {OBJECTS[name]!.description === undefined ? null : <p class="prose">{sentence(OBJECTS[name]!.description)}</p>}{" "}
      {fieldTable(`Fields of ${name}`, OBJECTS[name]!, !REQUESTED.has(name))}
      <details>
        <summary>Example</summary>
        {json(exampleOf(OBJECTS[name]!))}
      </details>
    </section>
  ));

const bodySchemas = (operation: Operation): Schema[] =>
  Object.values(operation.body?.content ?? {}).map(({ schema }) => schema);
const answerSchemas = (operation: Operation): Schema[] =>
  operation.answers.flatMap(({ content }) => Object.values(content).map(({ schema }) => schema));
/** Objects that are parts of requests. */
const REQUESTED = new Set(objectsOf(OPERATIONS.flatMap(bodySchemas)));

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

const lines = (here: Here, operations: readonly Operation[], caption: string, tag?: string): Html => (
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

function family(here: Here, tag: (typeof TAGS)[number], ids: Record<string, string>): Html {
  const operations = OPERATIONS.filter((operation) => operation.tag === tag.name);
  const objects = objectsOf(
    operations.flatMap((operation) => [...bodySchemas(operation), ...answerSchemas(operation)]),
  );
  const shown = objects.filter((name) => name !== "Pagination");
  return (
    <>
      {contents(here, tag.name)}
      <h1>{tag.title}</h1>
      <p class="prose">{tag.description}</p>
      {choice(here, `/docs/${tag.name}`)} {lines(here, operations, `Operations of ${tag.title}`, tag.name)}{" "}
      {operations.map((operation) => section(operation, here, ids))} {shown.map(object)}
    </>
  );
}

const codeOf = (status: number) => Object.entries(STATUS).find(([, value]) => value === status)![0];

function overview(here: Here): Html {
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

export const docs: Page[] = [
  page("/docs", { access: "public", query }, async (context) => {
    const here = await lookAround(context);
    return { title: "API", body: overview(here) };
  }),
  page("/docs/:tag", { access: "public", query }, async (context) => {
    const tag = TAGS.find(({ name }) => name === context.params.tag);
    if (!tag) throw new Problem("NOT_FOUND", "There is no such page");
    const here = await lookAround(context);
    const wanted = new Set(
      OPERATIONS.filter((operation) => operation.tag === tag.name && isRead(operation)).flatMap(namesIn),
    );
    const ids = here.project ? await findIds(context.sql, here.project, wanted) : {};
    return { title: `${tag.title} · API`, body: family(here, tag, ids) };
  }),
];
