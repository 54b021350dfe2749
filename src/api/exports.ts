/** The export of a project. */

import { exportReply } from "../request/project_export.ts";
import { route, type Route } from "../request/route.ts";
import { exportQuery } from "../schema/exports.ts";
import { selectKeyIsLive } from "../store/keys.ts";

/** `routes` are all other routes, whose answers an export contains. */
export const createExports = (routes: readonly Route[]): Route[] => [
  route(
    "GET /projects/:projectId/export",
    {
      summary: "Export the data of the project as lines of JSON",
      description:
        "Everything that the API answers about the project at one moment: each line is an object with a type, and otherwise the " +
        "fields that the API uses. The first line has the type header, the last one end, with the number of lines of each type. " +
        "An export without it is incomplete: the connection was lost, or the last line has the type error and a message. Read it " +
        "without pauses: it ends after an hour, after a minute in which the client takes nothing, and when the key is revoked. " +
        "One project can have two exports at a time, and one more is answered 429. The content of attachments is not included",
      example: { query: { types: "project,execution" } },
      query: exportQuery,
      answer: null,
      lines: "One JSON object per line, each with a type. docs/export.md describes them",
    },
    async ({ sql, fast, params, query, caller, services, publicUrl }) =>
      await exportReply(
        routes,
        { ...services, sql, publicUrl },
        {
          ...{ projectId: params.projectId, query },
          owner: { key: caller.id, project: params.projectId },
          mayStay: () => selectKeyIsLive(fast, caller),
        },
      ),
  ),
];
