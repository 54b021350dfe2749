/** Downloads the data of a project as a file of lines of JSON. */

import { exportQuery } from "../../../schema/exports.ts";
import { addressBlock } from "../../../secrets/attempts.ts";
import { page } from "../../site/page.ts";

export const exportPage = page(
  "/projects/:projectId/export",
  { access: "viewer", query: exportQuery },
  async ({ project, query, visitor, address, mayStay, exportProject, now }) =>
    await exportProject({
      ...{ projectId: project.id, query, mayStay },
      owner: { session: visitor.sessionId, address: addressBlock(address()), project: project.id },
      headers: {
        "Content-Disposition": `attachment; filename="assay-export-${now.toISOString().slice(0, 10)}.ndjson"`,
      },
    }),
);
