/** The ownership file of a project. */

import { readOwners, storeOwners } from "../operations/projects/owners.ts";
import { fail } from "../http/problem.ts";
import { route, type Route } from "../request/route.ts";
import { MAX_OWNERS_BYTES, MAX_OWNERS_LINES, ownersFile, ownersQuery, storedOwners } from "../schema/owners.ts";

export const owners: Route[] = [
  route(
    "GET /projects/:projectId/owners",
    {
      summary: "The ownership file",
      description:
        "The CODEOWNERS file that test cases take their owners from, and how many of them it leaves without one.",
      answer: ownersFile,
    },
    async ({ sql, params }) => await readOwners(sql, params.projectId),
  ),

  route(
    "PUT /projects/:projectId/owners",
    {
      scope: "upload",
      record: "owners.changed",
      summary: "Store the ownership file",
      description:
        `Takes a CODEOWNERS file as the body, at most ${MAX_OWNERS_BYTES / 1_024} KiB and ${MAX_OWNERS_LINES} lines, in place of the one before; an empty ` +
        "one removes it. All test cases follow at once, except those whose owner was set by hand. " +
        "By the rules of GitHub the last pattern that matches decides; by those of GitLab the last one of each section, and the " +
        "owners of all sections add up. Patterns that begin with class: are of classes and packages, such as " +
        "class:com.acme.cart.** for reports that name no files. Lines that cannot be read are warnings. assay upload sends the " +
        "file of the repository by itself",
      query: ownersQuery,
      example: { body: "# The last pattern that matches decides\n* @acme/web\n/src/cart/ @acme/cart\n" },
      body: "text",
      answer: storedOwners,
    },
    async ({ sql, params: { projectId }, body, query, transact }) => {
      if (/^application\/(?:[\w.-]+\+)?json\b/i.test(body.contentType))
        fail(
          "VALIDATION_ERROR",
          "Cannot read the body: expected the text of a CODEOWNERS file as text/plain, got JSON",
        );
      const stored = await storeOwners(sql, transact, projectId, body.text, query);
      return { ...(await readOwners(sql, projectId)), stored };
    },
  ),
];
