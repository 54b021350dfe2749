/** Types and lookups that the pages of bugs share. */

import type { Sql, Tx } from "../../../database/connect.ts";
import type { Html, Path } from "../../../http/html.ts";
import { editBug } from "../../../operations/bugs/bug_reports.ts";
import type { BugReportDetail, BugReportPatch } from "../../../schema/bug_reports.ts";
import { refuseAbsent } from "../../../schema/refusal.ts";
import { type BugReportRow, selectBugReport } from "../../../store/bug_reports.ts";
import { Mark } from "../../components/status.tsx";
import { write } from "../../site/action.ts";

export const bugsPath = (projectId: string): Path => `/projects/${projectId}/bugs`;

export const STILL_OPEN = ["open", "in_progress"] as const;

export const markOf = ({ status, regressed }: Pick<BugReportRow, "status" | "regressed">): Html => (
  <Mark status={regressed && (status === "open" || status === "in_progress") ? "regressed" : status} />
);

export const onePath = "/projects/:projectId/bugs/:bugId";

export const find = async (sql: Sql, projectId: string, id: string): Promise<BugReportDetail> =>
  (await selectBugReport(sql, projectId, id)) ?? refuseAbsent();

/** Returns undefined if the text does not name a bug. */
export const toNumber = (q: string): number | undefined => {
  const digits = /^\s*(?:bug\s*)?#?(\d{1,9})\s*$/i.exec(q)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

type WriteContext = Parameters<typeof write>[0] & { project: { id: string } };

/** `bug`: the id, or a function that looks it up in the transaction. */
export const change = (context: WriteContext, patch: BugReportPatch, bug: string | ((sql: Tx) => Promise<string>)) =>
  write(
    context,
    "member",
    async (sql) => editBug(sql, context.project.id, typeof bug === "string" ? bug : await bug(sql), patch),
    ({ id, number }) => ({
      action: "bug.changed",
      subject: `Bug ${number}`,
      details: { projectId: context.project.id, bugReportId: id, fields: Object.keys(patch) },
    }),
  );
