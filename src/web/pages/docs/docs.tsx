/** The documentation of the API: general rules, and every operation with an example for the shell. */

import type { Html } from "../../../http/html.ts";
import { Problem } from "../../../http/problem.ts";
import { type Page, page } from "../../site/page.ts";
import { type DocsContext, choice, contents, findIds, loadContext, namesIn, query } from "./context.tsx";
import { answerSchemas, bodySchemas, isRead, object, section } from "./operation.tsx";
import { lines, overview } from "./overview.tsx";
import { OPERATIONS, TAGS, objectsOf } from "./reference.ts";

function family(context: DocsContext, tag: (typeof TAGS)[number], ids: Record<string, string>): Html {
  const operations = OPERATIONS.filter((operation) => operation.tag === tag.name);
  const objects = objectsOf(
    operations.flatMap((operation) => [...bodySchemas(operation), ...answerSchemas(operation)]),
  );
  const shown = objects.filter((name) => name !== "Pagination");
  return (
    <>
      {contents(context, tag.name)}
      <h1>{tag.title}</h1>
      <p class="prose">{tag.description}</p>
      {choice(context, `/docs/${tag.name}`)}
      {lines(context, operations, `Operations of ${tag.title}`, tag.name)}
      {operations.map((operation) => section(operation, context, ids))}
      {shown.map(object)}
    </>
  );
}

export const docs: Page[] = [
  page("/docs", { access: "public", query }, async (request) => {
    const context = await loadContext(request);
    return { title: "API", body: overview(context) };
  }),
  page("/docs/:tag", { access: "public", query }, async (request) => {
    const tag = TAGS.find(({ name }) => name === request.params.tag);
    if (!tag) throw new Problem("NOT_FOUND", "Page not found");
    const context = await loadContext(request);
    const wanted = new Set(
      OPERATIONS.filter((operation) => operation.tag === tag.name && isRead(operation)).flatMap(namesIn),
    );
    const ids = context.project ? await findIds(request.sql, context.project, wanted) : {};
    return { title: `${tag.title} · API`, body: family(context, tag, ids) };
  }),
];
