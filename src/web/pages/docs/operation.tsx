/** One operation of the API: description, parameters, body and response. */

import type { Html } from "../../../http/html.ts";
import { Breakable } from "../../components/text.tsx";
import { type DocsContext, json, shell } from "./context.tsx";
import {
  type Answer,
  OBJECTS,
  OPERATIONS,
  type Operation,
  type Schema,
  exampleOf,
  objectsOf,
  referenceOf,
  toCurl,
} from "./reference.ts";
import { fieldTable, parameterRow, prose, rowOf, sentence, shapeOf, table } from "./schema.tsx";

function bodyOf({ method, path, body }: Operation): Html | null {
  if (!body) return null;
  const { "application/json": given, "text/plain": text } = body.content;
  const schema = given?.schema;
  const hasFields = schema?.properties ?? schema?.oneOf;
  return (
    <>
      <h3>Body{body.required ? "" : " (optional)"}</h3>
      {body.description === undefined ? null : <p class="prose">{sentence(body.description)}</p>}
      {schema?.description === undefined ? null : <p class="prose">{sentence(schema.description)}</p>}
      {schema && hasFields ? fieldTable(`Fields of the body of ${method} ${path}`, schema, false) : null}
      {text ? (
        <div class="columns">
          {given && json(given.example)}
          <pre>{String(text.example)}</pre>
        </div>
      ) : null}
    </>
  );
}

function answerOf({ method, path }: Operation, answers: readonly Answer[]): Html {
  const [{ content }] = answers as [Answer, ...Answer[]];
  const schema = content["application/json"]?.schema;
  const text = content["text/plain"]?.schema.description;
  const inner = schema && (rowOf(schema) ?? schema);
  const isInline = inner !== undefined && referenceOf(inner) === undefined;
  return (
    <>
      <h3>Response</h3>
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
      )}
      {isInline ? (
        <>
          {fieldTable(`Fields of the response to ${method} ${path}`, inner, true)}
          <details>
            <summary>Example</summary>
            {json(exampleOf(schema!))}
          </details>
        </>
      ) : null}
    </>
  );
}

/** Sections that do not depend on the visitor, rendered once. */
const rendered = new Map<string, Html>();

const once = (key: string, make: () => Html): Html => {
  const section = rendered.get(key) ?? make();
  rendered.set(key, section);
  return section;
};

/** Only examples that change nothing contain ids of the team. Requesting a plan creates it, so its ids are left out. */
export const isRead = ({ method, path }: Operation): boolean => method === "GET" && !path.endsWith("/plan");

/** Returns "the team key", "the project key or any named key", or "the project key or one of scope triage". */
function keysOf({ key, scopes, method }: Operation): string {
  if (method === "GET" && key === "project") return "the project key or any named key";
  return scopes.length === 0 ? `the ${key} key` : `the ${key} key or one of scope ${scopes.join(" or ")}`;
}

export function section(operation: Operation, context: DocsContext, ids: Record<string, string>): Html {
  const { anchor, method, path, summary, description } = operation;
  const parameters = operation.parameters.filter(({ name }) => name !== "projectId" && name !== "teamId");
  const own: Record<string, string> = context.project
    ? { projectId: context.project.id, teamId: context.project.teamId, ...(isRead(operation) ? ids : {}) }
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
        <span class="soft">with {keysOf(operation)}</span>
      </p>
      {prose(description)}
      {shell(toCurl(operation, context.api, own))}
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

export const object = (name: string): Html =>
  once(name, () => (
    <section class="operation" id={name}>
      <h2>
        <a href={`#${name}`}>{name}</a>
      </h2>
      {OBJECTS[name]!.description === undefined ? null : <p class="prose">{sentence(OBJECTS[name]!.description)}</p>}
      {fieldTable(`Fields of ${name}`, OBJECTS[name]!, !REQUEST_OBJECTS.has(name))}
      <details>
        <summary>Example</summary>
        {json(exampleOf(OBJECTS[name]!))}
      </details>
    </section>
  ));

export const bodySchemas = (operation: Operation): Schema[] =>
  Object.values(operation.body?.content ?? {}).map(({ schema }) => schema);

export const answerSchemas = (operation: Operation): Schema[] =>
  operation.answers.flatMap(({ content }) => Object.values(content).map(({ schema }) => schema));

/** The objects that occur only in requests. */
const REQUEST_OBJECTS = new Set(objectsOf(OPERATIONS.flatMap(bodySchemas)));
