/** The pages and forms of links and badges, and the public pages to which they lead. */

import * as v from "valibot";
import { findShared } from "../../../operations/people/shares.ts";
import { refuseAbsent } from "../../../schema/refusal.ts";
import { causeCursor } from "../../components/causes.ts";
import { type Page, page } from "../../site/page.ts";
import { badgePage } from "./badge.tsx";
import { badgeForm, revokeForm, shareExecutionForm, shareProjectForm, sharesPage } from "./links.tsx";
import { sharedExecution } from "./shared_execution.tsx";
import { sharedProject } from "./shared_project.tsx";

const sharedQuery = v.strictObject({ cursor: causeCursor });

const sharedPage = page(
  "/shared/:token",
  { access: "public", query: sharedQuery },
  async ({ sql, begin, fast, params, query, path, now }) => {
    const shared = (await findShared({ fast }, params.token, ["execution", "project"])) ?? refuseAbsent();
    const context = { sql, begin, path, now, cursor: query.cursor };
    return await (shared.kind === "project" ? sharedProject : sharedExecution)(shared, context);
  },
);

export const shares: Page[] = [
  sharesPage,
  shareExecutionForm,
  shareProjectForm,
  badgeForm,
  revokeForm,
  sharedPage,
  badgePage,
];
