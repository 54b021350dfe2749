/** The API for who calls it: what all of it has in common, and every operation with a line for the shell. */

import type { Html } from "../../../http/html.ts";
import { Problem } from "../../../http/problem.ts";
import { type Page, page } from "../../site/page.ts";
import { type Here, choice, contents, findIds, lookAround, namesIn, query } from "./here.tsx";
import { answerSchemas, bodySchemas, isRead, object, section } from "./operation.tsx";
import { lines, overview } from "./overview.tsx";
import { OPERATIONS, TAGS, objectsOf } from "./reference.ts";

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
