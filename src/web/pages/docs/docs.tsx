/** The documentation of the API: general rules, and every operation with an example for the shell. */

import type { Html } from "../../../http/html.ts";
import { Problem } from "../../../http/problem.ts";
import { FixedReply } from "../../../request/reply.ts";
import { type Page, page, type View } from "../../site/page.ts";
import { toPageReply } from "../../site/page_reply.ts";
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

/** The pages as they are without a session, by base URL and tag. */
const written = new Map<string, FixedReply>();

/** Writes a page for everybody who is not signed in once. */
function writeOnce({ api, isSignedIn }: DocsContext, tag: string, view: () => View): FixedReply | View {
  if (isSignedIn) return view();
  const name = `${api} ${tag}`;
  let reply = written.get(name);
  if (!reply) {
    const frame = { visitor: undefined, project: null, team: null, role: null, csrf: "" };
    const { body, type, headers } = toPageReply(view(), frame, {});
    written.set(name, (reply = new FixedReply(body!, type!, headers)));
  }
  return reply;
}

export const docs: Page[] = [
  page("/docs", { access: "public", query }, async (request) => {
    const context = await loadContext(request);
    return writeOnce(context, "", () => ({ title: "API", body: overview(context) }));
  }),
  page("/docs/:tag", { access: "public", query }, async (request) => {
    const tag = TAGS.find(({ name }) => name === request.params.tag);
    if (!tag) throw new Problem("NOT_FOUND", "Page not found");
    const context = await loadContext(request);
    const wanted = new Set(
      OPERATIONS.filter((operation) => operation.tag === tag.name && isRead(operation)).flatMap(namesIn),
    );
    const ids = context.project ? await findIds(request.sql, context.project, wanted) : {};
    return writeOnce(context, tag.name, () => ({ title: `${tag.title} · API`, body: family(context, tag, ids) }));
  }),
];
