/** Uploads that were refused, or accepted with warnings: the list. */

import { toPage } from "../request/page.ts";
import { route, type Route } from "../request/route.ts";
import { KEPT_HOURS, uploadFilter, uploadPage } from "../schema/uploads.ts";
import { selectUploads } from "../store/uploads.ts";

export const uploads: Route[] = [
  route(
    "GET /projects/:projectId/uploads",
    {
      summary: `List the uploads of the last ${KEPT_HOURS} hours that were refused or accepted with warnings, newest first`,
      description:
        "Each with the reason and with the parameters as they were sent. Uploads without a valid key belong to no " +
        "project and are not listed. The last 200 are kept.",
      query: uploadFilter,
      answer: uploadPage,
    },
    async (context) => {
      const { fast, params, query, page } = context;
      const rows = await selectUploads(fast, params.projectId, KEPT_HOURS, { ...query, after: page.after });
      return toPage(context, rows, ({ id }) => [id]);
    },
  ),
];
